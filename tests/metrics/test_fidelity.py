import math

import numpy as np
import pytest
import torch
from oracles import configurations, random_law

from neurise import povm
from neurise.datasets import ghz
from neurise.metrics import fidelity
from neurise.space import Space


class Table:
    """A model whose law is written out."""

    def __init__(self, space: Space, law: np.ndarray) -> None:
        self.place = {x: i for i, x in enumerate(configurations(space))}
        with np.errstate(divide="ignore"):
            self.log_law = np.log(law)

    def log_prob(self, X: np.ndarray) -> np.ndarray:
        return np.array([self.log_law[self.place[tuple(row)]] for row in X.tolist()])


def counted(space: Space, seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """A law of whole multiples of 1/n, and n rows which hold every configuration just as often."""
    counts = np.random.default_rng(seed).multinomial(n, random_law(space, seed))
    return counts / n, np.repeat(np.array(configurations(space)), counts, axis=0)


@pytest.mark.parametrize("space", [Space(3, 2), Space(2, 3)], ids=["spins", "three-states"])
def test_rows_in_proportion_give_the_exact_sum(space: Space) -> None:
    p, real = counted(space, 0, 200)
    q, drawn = counted(space, 1, 300)
    exact = np.sqrt(p * q).sum()
    truth, model = Table(space, p), Table(space, q)
    from_data = fidelity(model, real, truth.log_prob).classical
    from_model = fidelity(model, drawn, truth.log_prob, drawn_from="model").classical
    assert from_data == pytest.approx(exact)
    assert from_model == pytest.approx(exact)
    # E_P[Q/P] is the mass of Q on the support of P, so both errors are known as well.
    for found, mass, n in ((from_data, q[p > 0].sum(), 200), (from_model, p[q > 0].sum(), 300)):
        assert found.error == pytest.approx(math.sqrt((mass - exact**2) / (n - 1)))
        assert found.floor == 1


def test_a_perfect_model_scores_one() -> None:
    data = ghz(6)
    rows = data.sample(50, seed=0)
    result = fidelity(data.log_weight(rows), rows, data.log_weight)
    assert result.classical == pytest.approx(1)
    assert result.classical.error == pytest.approx(0, abs=1e-9)
    assert result.quantum is None


def test_arrays_tensors_and_functions_are_the_same() -> None:
    space = Space(2, 3)
    p, rows = counted(space, 2, 100)
    truth, model = Table(space, p), Table(space, random_law(space, 3))
    expected = fidelity(model, rows, truth.log_prob)
    log_p, log_q = torch.tensor(truth.log_prob(rows)), torch.tensor(model.log_prob(rows), requires_grad=True)
    assert fidelity(log_q, torch.tensor(rows), log_p) == expected


def test_the_error_covers_repeated_draws() -> None:
    data, other, runs = ghz(3), ghz(3, visibility=0.5), 200
    results = [
        fidelity(other.log_weight(x), x, data.log_weight).classical for x in np.split(data.sample(40 * runs, 0), runs)
    ]
    exact = np.sqrt(data.pmf * other.pmf).sum()
    # A standard deviation from 200 draws is good to 1/√400 = 5 %: four of these.
    assert np.std(results) == pytest.approx(np.sqrt(np.mean([r.error**2 for r in results])), rel=0.2)
    assert np.mean(results) == pytest.approx(exact, abs=5 * np.std(results) / runs**0.5)


def test_the_state_is_that_of_the_dual_frame() -> None:
    data, noisy = ghz(3), ghz(3, visibility=0.6)
    rows, outcomes, real = data.sample(100, seed=0), noisy.sample(4000, seed=1), data.sample(5000, seed=2)
    result = fidelity(data.log_weight(rows), rows, data.log_weight, outcomes=outcomes, other=real).quantum
    expected = povm.ghz_fidelity(outcomes)
    assert result == pytest.approx(expected.value)
    assert result.error == pytest.approx(expected.standard_error)
    # ⟨GHZ|ρ|GHZ⟩ = v + (1−v)/2^q for visibility v; the real rows are the pure state.
    assert result == pytest.approx(0.6 + 0.4 / 8, abs=5 * result.error)
    assert result.floor == pytest.approx(1, abs=6 * povm.predicted_error("fidelity", 3, 4000))
    assert fidelity(data.log_weight(rows), rows, data.log_weight, outcomes=outcomes).quantum.floor == 1


def test_the_state_is_refused_where_its_variance_is_too_large() -> None:
    data = ghz(20)
    rows = data.sample(100, seed=0)
    with pytest.raises(ValueError, match="standard error"):
        fidelity(data.log_weight(rows), rows, data.log_weight, outcomes=rows)


def test_laws_that_do_not_sum_to_one_are_found_out() -> None:
    data = ghz(3)
    rows = data.sample(50, seed=0)
    log_p = data.log_weight(rows)
    with pytest.raises(ValueError, match="not normalised"):
        fidelity(log_p, rows, log_p - 1)


def test_bad_input_is_refused() -> None:
    rows, log_p = np.array([[0, 1], [1, 1]]), np.log([0.5, 0.5])
    with pytest.raises(ValueError, match="drawn_from must be 'data' or 'model', got 'both'"):
        fidelity(log_p, rows, log_p, drawn_from="both")
    with pytest.raises(ValueError, match=r"log_p has the shape \(3,\), and there are 2 rows"):
        fidelity(log_p, rows, np.zeros(3))
    with pytest.raises(ValueError, match="the model's log_prob has the shape"):
        fidelity(log_p[:1], rows, log_p)
    with pytest.raises(ValueError, match="log_p is -inf at row 1"):
        fidelity(log_p, rows, np.array([0, -np.inf]))
    with pytest.raises(ValueError, match="at least 2"):
        fidelity(log_p[:1], rows[:1], log_p[:1])
    with pytest.raises(ValueError, match="rows"):
        fidelity(log_p[:0], np.empty((0, 2), int), log_p[:0])
    with pytest.raises(ValueError, match="give outcomes as well"):
        fidelity(log_p, rows, log_p, other=rows)
    with pytest.raises(ValueError, match="outcomes has 2 sites, and other has 3"):
        fidelity(log_p, rows, log_p, outcomes=rows, other=np.ones((2, 3), int), max_error=np.inf)
