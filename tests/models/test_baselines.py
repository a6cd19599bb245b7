"""The two baselines, against counting by hand."""

import itertools

import numpy as np
import pytest
import tiny

from neurise import Independent, Memorize, exact

X = np.array([["a", "b"], ["a", "b"], ["c", "b"], ["a", "c"]])
WEIGHTS = [1, 2, 3, 4]


def law(rows: dict[str, float]) -> list[float]:
    return [rows.get("".join(row), 0.0) for row in itertools.product("abc", repeat=2)]


def test_memorising_by_hand() -> None:
    model = Memorize().fit(X, weights=WEIGHTS)
    assert exact.law(model).tolist() == pytest.approx(law({"ab": 0.3, "cb": 0.3, "ac": 0.4}))
    assert np.exp(model.log_prob([["a", "b"], ["a", "c"]])).tolist() == pytest.approx([0.3, 0.4])
    assert model.log_prob([["b", "b"]]) == -np.inf
    assert set(map("".join, model.sample(200, seed=0))) == {"ab", "cb", "ac"}
    assert model.stopped_ == "solved"


def test_the_product_of_marginals_by_hand() -> None:
    model = Independent().fit(X, weights=WEIGHTS)
    first, second = {"a": 0.7, "c": 0.3}, {"b": 0.6, "c": 0.4}
    expected = {a + b: first[a] * second[b] for a in first for b in second}
    assert exact.law(model).tolist() == pytest.approx(law(expected))
    assert np.exp(model.log_prob([["c", "c"]])).tolist() == pytest.approx([0.12])
    assert model.log_prob([["b", "b"]]) == -np.inf
    assert model.num_parameters_ == 2 * 3


@pytest.mark.parametrize("kind", [Memorize, Independent])
def test_labels_by_hand(kind: type) -> None:
    model = kind().fit(X, ["u", "u", "v", "v"], weights=WEIGHTS)
    assert exact.law(model, y="u").tolist() == pytest.approx(law({"ab": 1.0}))
    of_v = {"cb": 3 / 7, "ac": 4 / 7}
    if kind is Independent:
        of_v = {"ab": 12 / 49, "ac": 16 / 49, "cb": 9 / 49, "cc": 12 / 49}
    assert exact.law(model, y="v").tolist() == pytest.approx(law(of_v))
    mixed = 0.3 * exact.law(model, y="u") + 0.7 * exact.law(model, y="v")
    assert exact.law(model).tolist() == pytest.approx(mixed.tolist())
    rows = [["a", "b"], ["a", "c"]]
    assert np.exp(model.log_prob(rows, "v")).tolist() == pytest.approx([of_v.get("ab", 0.0), of_v["ac"]])
    assert np.exp(model.log_prob(rows)).tolist() == pytest.approx([float(mixed[1]), float(mixed[2])])
    assert set(map("".join, model.sample(50, "u", seed=0))) == {"ab"}
    assert set(map("".join, model.sample(300, ["v"] * 300, seed=0))) == set(of_v)


@pytest.mark.parametrize("kind", [Memorize, Independent])
def test_a_clamp_tells_about_labels(kind: type) -> None:
    model = kind().fit(X, ["u", "u", "v", "v"], weights=WEIGHTS)
    given = np.ma.array(["c", "b"], mask=[False, True])
    drawn = model.sample(4000, clamp=given, seed=0)
    assert (drawn[:, 0] == "c").all()  # so the label is v
    share = 1.0 if kind is Memorize else 3 / 7
    assert abs((drawn[:, 1] == "b").mean() - share) <= 5 * np.sqrt(0.25 / 4000)
    nobody = np.ma.array(["b", "b"], mask=[False, True])
    with pytest.raises(ValueError, match="nothing can be drawn"):
        model.sample(5, clamp=nobody)


def test_every_row_may_be_given_something_of_its_own() -> None:
    model = Memorize().fit(X, weights=WEIGHTS)
    given = np.ma.array([["a", "c"], ["c", "b"], ["a", "b"]], mask=[[1, 0], [0, 1], [0, 0]])
    assert list(map("".join, model.sample(3, clamp=given, seed=0))) == ["ac", "cb", "ab"]


def test_many_sites_are_no_trouble() -> None:
    rows = np.random.default_rng(0).integers(0, 5, (300, 700))
    model = Memorize().fit(np.vstack([rows, rows[:100]]))
    log_prob = model.log_prob(rows)
    assert np.exp(log_prob[:100]).tolist() == pytest.approx([2 / 400] * 100)
    assert np.exp(log_prob[100:]).tolist() == pytest.approx([1 / 400] * 200)
    assert {row.tobytes() for row in model.sample(500, seed=0)} <= {row.tobytes() for row in rows}


def test_no_steps_are_taken() -> None:
    for kind in (Memorize, Independent):
        model = kind().fit(tiny.spins(), max_steps=3, max_seconds=1, validation=tiny.spins(seed=1), verbose=True)
        assert model.history_ == []
