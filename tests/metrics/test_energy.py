import numpy as np
import pytest
import torch
from scipy.stats import wasserstein_distance

from neurise.dataset import Dataset
from neurise.datasets import edwards_anderson, potts
from neurise.metrics import energy


def first_site(rows: np.ndarray) -> np.ndarray:
    return rows[:, 0].astype(float)


def column(values: list[float]) -> np.ndarray:
    """Rows whose energy is their first symbol."""
    return np.stack([values, np.zeros(len(values))], axis=1).astype(int)


def test_hand_worked_case() -> None:
    result = energy(column([0, 0, 3, 3]), column([0, 1]), first_site)
    assert result.mean == 1.5
    assert result.mean.error == pytest.approx(3**0.5 / 2)  # s² = 4 · 1.5² / 3
    assert result.spread == pytest.approx(3**0.5)
    assert result.reference_mean == result.mean.floor == 0.5
    assert result.reference_spread == result.spread.floor == pytest.approx(0.5**0.5)
    assert result.difference == pytest.approx(1 / (3 / 4 + 0.5 / 2) ** 0.5)
    assert result.difference.error == 1
    assert result.difference.floor == 0
    assert result.wasserstein == pytest.approx(1)  # half the mass moves from 1 to 3


@pytest.mark.parametrize("data", [edwards_anderson(3, seed=1), potts(2, seed=1)], ids=["spins", "three-states"])
def test_of_known_couplings(data: Dataset) -> None:
    x, y = data.sample(300, seed=2), data.sample(400, seed=3)
    result = energy(x, y, data.energy)
    first, second = data.energy(x), data.energy(y)
    assert result.wasserstein == pytest.approx(wasserstein_distance(first, second))
    assert result.mean == pytest.approx(first.mean())
    assert result.reference_spread == pytest.approx(second.std(ddof=1))
    assert abs(result.difference) < 5
    # Energies that are too high by one unit are seen as such.
    shifted = energy(x, y, lambda rows: data.energy(rows) + (len(rows) == 300))
    assert shifted.mean - result.mean == pytest.approx(1)
    assert shifted.wasserstein > 3 * shifted.wasserstein.floor


def test_errors_and_floors_cover_repeated_draws() -> None:
    rng, runs = np.random.default_rng(0), 150

    def draw(n: int) -> np.ndarray:
        return column(rng.poisson(4, n).tolist())

    apart = [energy(draw(60) * 2, draw(90), first_site) for _ in range(runs)]
    # A standard deviation from 150 draws is good to 1/√300 = 6 %: four of these, and a twentieth for second orders.
    for field in ("mean", "spread", "wasserstein"):
        values = [getattr(result, field) for result in apart]
        assert np.sqrt(np.mean([v.error**2 for v in values])) == pytest.approx(np.std(values), rel=0.29)
    same = [energy(draw(60), draw(90), first_site, other=draw(60)) for _ in range(runs)]
    z = [result.difference for result in same]
    assert np.std(z) == pytest.approx(1, rel=0.29)
    scores = [result.wasserstein for result in same]
    perfect, spread = np.mean(scores), np.std(scores) / runs**0.5
    assert np.mean([score.floor for score in scores]) == pytest.approx(perfect, abs=6 * spread)
    resampled = [energy(draw(60), draw(90), first_site).wasserstein.floor for _ in range(runs)]
    assert np.mean(resampled) == pytest.approx(perfect, abs=6 * spread)


def test_the_floor_is_the_score_of_other_rows() -> None:
    rng = np.random.default_rng(1)
    x, y, z = (rng.integers(0, 5, (n, 2)) for n in (20, 30, 10))
    result, real = energy(x, y, first_site, other=z), energy(z, y, first_site)
    for field in ("mean", "spread", "difference", "wasserstein"):
        assert getattr(result, field).floor == pytest.approx(float(getattr(real, field)))


def test_the_same_seed_gives_the_same_bars() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.integers(0, 5, (20, 2)), rng.integers(0, 5, (30, 2))
    first, second = energy(x, y, first_site, seed=3), energy(torch.tensor(x), y, first_site, seed=3)
    assert first.wasserstein.error == second.wasserstein.error
    assert first.wasserstein.floor == second.wasserstein.floor


def test_constant_energies_have_no_spread() -> None:
    result = energy(column([1, 1]), column([1, 1, 1]), first_site)
    assert result.spread == result.spread.error == result.difference == result.wasserstein == 0
    assert energy(column([2, 2]), column([1, 1]), first_site).difference == np.inf
    assert energy(column([0, 0]), column([1, 1]), first_site).difference == -np.inf


def test_bad_input_is_refused() -> None:
    rows = np.array([[0, 1], [1, 1]])
    with pytest.raises(ValueError, match=r"gives \(2, 2\) for the 2 rows of samples"):
        energy(rows, rows, lambda x: x)
    with pytest.raises(ValueError, match="row 1 of samples is inf"):
        energy(rows, rows, lambda x: np.where(x[:, 0] == 1, np.inf, 0))
    with pytest.raises(ValueError, match="samples has 1 row"):
        energy(rows[:1], rows, first_site)
    with pytest.raises(ValueError, match="2 sites, and reference has 3"):
        energy(rows, np.ones((2, 3), int), first_site)
    with pytest.raises(ValueError, match="not in the alphabet"):
        energy(rows, rows + 1, first_site, alphabet=[0, 1])
