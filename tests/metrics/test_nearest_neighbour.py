import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from neurise.metrics import _hamming, nearest_neighbour


def test_hand_worked_case() -> None:
    training = np.array([[0, 0, 0], [2, 1, 1]])
    samples = np.array([[0, 0, 0], [0, 1, 2], [2, 1, 0], [2, 1, 1]])  # distances 0, 2, 1, 0
    held_out = np.array([[1, 2, 2], [0, 0, 1]])  # distances 3, 1
    result = nearest_neighbour(samples, training, held_out)
    assert result.distance == pytest.approx(3 / 4)
    assert result.distance.error == pytest.approx(np.std([0, 2, 1, 0], ddof=1) / 2)
    assert result.distance.units == "sites"
    assert result.copies == 0.5
    assert result.copies.error == pytest.approx((0.5 * 0.5 / 4) ** 0.5)
    assert result.held_out_distance == result.distance.floor == 2
    assert result.held_out_copies == result.copies.floor == 0
    assert result.held_out_copies.error == pytest.approx((0.25 * 0.75 / 2) ** 0.5)  # as one copy in four


@pytest.mark.parametrize("states", [2, 3])
def test_distances_are_those_of_scipy(states: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_hamming, "TILE", 8)  # several tiles, the last ones not full
    monkeypatch.setattr(_hamming, "TILE_BYTES", 8 * 100)
    rng = np.random.default_rng(states)
    samples, training, held_out = (rng.integers(0, states, (n, 7)) for n in (40, 25, 30))
    result = nearest_neighbour(samples, training, held_out)
    for rows, distance, copies in (
        (samples, result.distance, result.copies),
        (held_out, result.held_out_distance, result.held_out_copies),
    ):
        nearest = np.rint(7 * cdist(rows, training, "hamming")).min(axis=1)
        assert distance == pytest.approx(nearest.mean())
        assert copies == np.mean(nearest == 0)


def test_a_memorising_model_is_found_out() -> None:
    rng = np.random.default_rng(0)
    training, held_out, fresh = (rng.integers(0, 2, (50, 30)) for _ in range(3))
    memorised = nearest_neighbour(training[rng.integers(0, 50, 40)], training, held_out)
    assert memorised.distance == 0
    assert memorised.copies == 1
    assert memorised.distance.floor > 5
    good = nearest_neighbour(fresh, training, held_out)
    spread = np.hypot(good.distance.error, good.held_out_distance.error)
    assert abs(good.distance - good.distance.floor) < 5 * spread


def test_the_error_covers_repeated_draws() -> None:
    rng = np.random.default_rng(1)
    training, held_out = rng.integers(0, 3, (20, 6)), rng.integers(0, 3, (20, 6))
    results = [nearest_neighbour(rng.integers(0, 3, (50, 6)), training, held_out) for _ in range(200)]
    # A standard deviation from 200 draws is good to 1/√400 = 5 %: four of these.
    for field in ("distance", "copies"):
        values = [getattr(result, field) for result in results]
        errors = [value.error for value in values]
        # (k+1)/(n+2) instead of k/n widens the bar of a fraction of a few hundredths by about a fifth.
        assert np.std(values) == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=0.2 + 0.2 * (field == "copies"))


def test_tensors_and_letters_are_rows_too() -> None:
    rng = np.random.default_rng(2)
    x, y, z = (rng.integers(0, 3, (8, 4)) for _ in range(3))
    letters = np.array(["a", "b", "c"])
    expected = nearest_neighbour(x, y, z)
    assert nearest_neighbour(torch.tensor(x), torch.tensor(y), torch.tensor(z)) == expected
    assert nearest_neighbour(letters[x], letters[y], letters[z]) == expected


def test_bad_input_is_refused() -> None:
    rows = np.array([[0, 1], [1, 1]])
    with pytest.raises(ValueError, match="samples has 1 row"):
        nearest_neighbour(rows[:1], rows, rows)
    with pytest.raises(ValueError, match="held_out has 1 row"):
        nearest_neighbour(rows, rows, rows[:1])
    with pytest.raises(ValueError, match="2 sites, and held_out has 3"):
        nearest_neighbour(rows, rows, np.ones((2, 3), int))
    with pytest.raises(ValueError, match="training"):
        nearest_neighbour(rows, np.empty((0, 2), int), rows)
    with pytest.raises(ValueError, match="not in the alphabet"):
        nearest_neighbour(rows, rows + 1, rows, alphabet=[0, 1])
    assert nearest_neighbour(rows, rows[:1], rows).distance == 0.5  # one training row is enough
