"""Every member of a committee has rows that it never learns from, and is judged by those."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from neurise.models._folds import with_folds, without_folds

import neurise
from neurise.modeling.model import Run
from neurise.models import _many
from neurise.rows import Rows

FOLDS = 5
MEMBERS = 3


def rows(n: int = 23, *, labels: bool = False, weights: torch.Tensor | None = None) -> Rows:
    x = torch.from_numpy((tiny.spins(n) > 0).astype(np.uint8))
    return Rows(x, torch.arange(n) % 2 if labels else None, weights)


def objective(states: int = 2) -> Any:
    """A committee with weights that make every context differ, in float64; its training has been done with."""
    X = np.random.default_rng(0).integers(states, size=(40, 3))
    model = tiny.model(members=MEMBERS, loss="cross_entropy").fit(X, max_steps=1)
    generator = torch.Generator().manual_seed(1)
    network = model.objective_.network.double().requires_grad_(True)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    return replace(model.objective_, folds=FOLDS)


def drawn_from(one: Any, states: int = 2, n: int = 40) -> Any:
    """Examples of n rows, the same of all folds."""
    x = torch.randint(states, (n, 3), generator=torch.Generator().manual_seed(2), dtype=torch.uint8)
    return one.draw(x, None, generator=torch.Generator().manual_seed(3))


# --- the rows ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folds", [2, 5, 23])
def test_folds_are_balanced_and_the_rows_stay_as_they_are(folds: int) -> None:
    given = rows(labels=True, weights=torch.rand(23).double())
    found = with_folds(given, folds, seed=1)
    x, fold = without_folds(found.x, 3)
    assert torch.equal(x, given.x)
    assert found.x.dtype == torch.uint8
    assert torch.equal(found.y, given.y)
    assert torch.equal(found.weights, given.weights)
    sizes = torch.bincount(fold, minlength=folds)
    assert len(sizes) == folds
    assert int(sizes.max() - sizes.min()) <= 1


def test_the_seed_decides() -> None:
    first, again, other = (with_folds(rows(), FOLDS, seed=seed).x for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert without_folds(rows().x, 3)[1] is None


def test_of_counts_every_observation_falls_into_a_fold_of_its_own() -> None:
    counts = torch.arange(23, dtype=torch.float64) * 40 + 1
    given = rows(labels=True, weights=counts)
    given = replace(given, x=torch.arange(69, dtype=torch.uint8).reshape(23, 3))  # so that rows can be told apart
    found = with_folds(given, FOLDS, seed=1)
    x, fold = without_folds(found.x, 3)
    place = x[:, 0].long() // 3
    assert torch.equal(x, given.x[place])
    assert torch.equal(found.y, given.y[place])
    assert len(torch.unique(place * FOLDS + fold)) == len(found)
    table = torch.zeros(23, FOLDS, dtype=torch.float64).index_put_((place, fold), found.weights, accumulate=True)
    assert torch.equal(table.sum(1), counts)
    # Binomial(m, 1/5) of each row: its standard deviation is 0.4 √m, and 115 of them are within five.
    assert ((table - counts[:, None] / FOLDS).abs() <= 5 * 0.4 * counts[:, None].sqrt()).all()


def test_counts_teach_a_committee_what_repeated_rows_do() -> None:
    X = np.array([[a, b] for a in range(4) for b in range(4)])
    counts = np.random.default_rng(1).multinomial(4000, np.random.default_rng(0).dirichlet(np.ones(16)))
    scores = []
    for data, weights in ((X, counts), (np.repeat(X, counts, axis=0), None)):
        model = tiny.model(members=2, learning_rate=0.05).fit(data, weights=weights, max_steps=100)
        scores.append(float(counts @ model.log_prob(X)) / 4000)
    best = float(counts[counts > 0] @ np.log(counts[counts > 0] / 4000)) / 4000
    # A committee whose members had each been kept from a tenth of the configurations would miss them by far more.
    assert best - scores[0] < 0.05
    assert abs(scores[0] - scores[1]) < 0.03


# --- what is learnt, and by what it is judged --------------------------------------------------------------------------


@pytest.mark.parametrize("states", [2, 3])
def test_a_member_learns_nothing_from_its_own_fold(states: int) -> None:
    one = objective(states)
    for k in range(FOLDS):
        example = drawn_from(one, states)._replace(fold=torch.full((40,), k))
        one.network.zero_grad()
        one.losses(one.network, example).sum().backward()
        for name in ("token", "head", "head_bias"):
            size = one.network.members[name].grad.flatten(1).norm(dim=1)
            assert torch.equal(size > 0, torch.arange(MEMBERS) != k)


@pytest.mark.parametrize("states", [2, 3])
def test_on_average_a_member_learns_from_the_other_folds_alone(states: int) -> None:
    one = objective(states)
    example = drawn_from(one, states)._replace(fold=torch.arange(40) % FOLDS)  # eight of each
    with torch.no_grad():
        logits = one.network(*example[:5])  # (n, members, states)
        truth = (
            -torch.log_softmax(logits, -1)
            .gather(-1, example.x_u.long()[:, None, None].expand(-1, MEMBERS, 1))
            .squeeze(-1)
        )
        others = [truth[example.fold != k, k].mean() for k in range(MEMBERS)]
        found = one.losses(one.network, example).mean()
    torch.testing.assert_close(found, torch.stack(others).mean(), rtol=1e-12, atol=0)


@pytest.mark.parametrize("states", [2, 3])
def test_a_row_is_judged_by_the_member_of_its_fold_alone(states: int) -> None:
    one = objective(states)
    one.network.requires_grad_(False)
    example = drawn_from(one, states)._replace(fold=torch.arange(40) % MEMBERS)
    before = one.scores(one.network, example)
    own = torch.log_softmax(one.network(*example[:5]), -1)[torch.arange(40), example.fold, example.x_u.long()]
    torch.testing.assert_close(before, -own, rtol=1e-12, atol=0)
    for k in range(MEMBERS):
        kept = {name: parameter.clone() for name, parameter in one.network.members.items()}
        for parameter in one.network.members.values():
            parameter[k] += 0.5
        same = one.scores(one.network, example) == before
        assert torch.equal(same, example.fold != k)
        for name, parameter in one.network.members.items():
            parameter.copy_(kept[name])


# --- models ------------------------------------------------------------------------------------------------------------

RUN = Run(5, None, False, 20, None, False)


def divided(X: np.ndarray | None = None, validation: Any = None, **params: Any) -> tuple[Rows, Rows | None]:
    trial = _many._trial(
        tiny.model(**params),
        tiny.spins() if X is None else X,
        None,
        None,
        validation,
        run=RUN,
        place=torch.device("cpu"),
    )
    return trial.model.divide(trial.rows, trial.held, RUN.seed)


@pytest.mark.parametrize(
    ("params", "folds"),
    [
        ({"members": 3}, 10),
        ({"members": 12}, 12),
        ({"members": 2, "validation_fraction": 0.9}, 2),
        ({"members": 2, "validation_fraction": 0.3}, 3),
        ({"members": 2, "validation_fraction": 1e-4}, 256),
    ],
    ids=str,
)
def test_there_are_folds_enough_for_all_members(params: dict[str, Any], folds: int) -> None:
    learnt, held = divided(tiny.spins(600), **params)
    fold = learnt.x[:, -1]
    assert torch.equal(fold.unique().long(), torch.arange(folds))
    assert torch.equal(held.x, learnt.x[fold < params["members"]])


@pytest.mark.parametrize(
    "given",
    [
        {"members": 1},
        {"members": 3, "validation_fraction": 0},
        {"members": 3, "validation": tiny.spins(20, seed=1)},
        {"members": 12, "X": tiny.spins(11)},
        {"members": 300, "X": tiny.spins(400)},
    ],
    ids=[
        "one network",
        "nothing held back",
        "an own validation set",
        "fewer rows than folds",
        "more members than bytes",
    ],
)
def test_elsewhere_rows_are_held_back_as_ever(given: dict[str, Any]) -> None:
    learnt, held = divided(**given)
    plain, aside = divided(**{**given, "members": 1})
    assert learnt.x.shape[1] == 3
    assert torch.equal(learnt.x, plain.x)
    assert (held is None) == (aside is None)
    assert held is None or torch.equal(held.x, aside.x)


@pytest.mark.parametrize(
    "given",
    [{"validation_fraction": 0}, {"X": tiny.spins(11)}, {"validation": tiny.spins(20, seed=1)}],
    ids=["nothing held back", "few rows", "an own validation set"],
)
@pytest.mark.parametrize("skip", [False, True])
def test_the_plain_way_gives_a_model_too(given: dict[str, Any], skip: bool) -> None:
    own = dict(given)
    X, validation = own.pop("X", tiny.spins()), own.pop("validation", None)
    model = tiny.model(members=12 if len(X) < 12 else 2, skip=skip, **own).fit(X, validation=validation, max_steps=10)
    assert ("validation" in model.history_[-1]) == (own.get("validation_fraction") != 0)
    assert float(neurise.exact.law(model).sum()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("skip", [False, True])
def test_one_committee_through_the_machinery_for_many_is_what_fit_makes(
    monkeypatch: pytest.MonkeyPatch, skip: bool
) -> None:
    X = tiny.spins()
    y, weights, params = X[:, 0] > 0, np.arange(60) % 3 + 1, {"members": 3, "skip": skip}
    monkeypatch.setattr(_many, "_joint_seed", lambda seeds: next(iter(seeds)))
    trial = _many._trial(tiny.model(**params), X, y, weights, None, run=RUN, place=torch.device("cpu"))
    _many._together([trial.model], [trial], begin_only=False)  # type: ignore[list-item]
    alone = tiny.model(**params).fit(X, y, weights=weights, seed=5, max_steps=20, device="cpu")
    assert alone.objective_.folds == 10
    for ours, theirs in zip(trial.model.history_, alone.history_, strict=True):
        assert ours["validation"] == pytest.approx(theirs["validation"], rel=1e-5)
    # The same draws and the same arithmetic, summed in another order; Adam's first steps magnify rounding.
    for key, weight in tiny.weights(alone).items():
        np.testing.assert_allclose(tiny.weights(trial.model)[key], weight, atol=2e-4)


@pytest.mark.parametrize(
    ("sizes", "validation"),
    [((8, 60), (None, None)), ((60, 50), (None, tiny.spins(20, seed=1)))],
    ids=["few rows and many", "an own validation set and none"],
)
def test_data_with_folds_and_without_are_not_trained_as_one(sizes: Any, validation: Any) -> None:
    Xs = [tiny.spins(n) for n in sizes]
    fitted = neurise.fit_many(tiny.model(members=2), Xs, validation=validation, max_steps=10)
    for seed, (model, X, held) in enumerate(zip(fitted, Xs, validation, strict=True)):
        assert tiny.same_weights(model, tiny.model(members=2).fit(X, validation=held, seed=seed, max_steps=10))
