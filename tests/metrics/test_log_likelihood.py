from typing import Any

import numpy as np
import oracles
import pytest
import torch

from neurise.metrics import log_likelihood
from neurise.space import Space

SPACES = [Space(sites=3, states=2), Space(sites=2, states=3)]
IDS = ["p=2", "p=3"]


class Known:
    """A model that knows its law."""

    def __init__(self, space: Space, law: np.ndarray) -> None:
        self.space, self.law = space, law

    def log_prob(self, X: Any, y: Any = None) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.law[self.space.index(torch.as_tensor(X)).numpy()])


class Labelled(Known):
    def log_prob(self, X: Any, y: Any = None) -> np.ndarray:
        return super().log_prob(X) - np.asarray(y)


def draw(space: Space, law: np.ndarray, n: int, seed: int) -> np.ndarray:
    return np.array(oracles.configurations(space))[np.random.default_rng(seed).choice(space.size, n, p=law)]


def test_hand_worked() -> None:
    model = Known(Space(1, 2), np.array([0.25, 0.75]))
    found = log_likelihood(model, [[0], [1], [1], [1]], pmf_log_prob=lambda X: np.full(len(X), np.log(0.5)))
    mean = (np.log(0.25) + 3 * np.log(0.75)) / 4
    assert (found.nats, found.nats.units, found.nats.floor) == (pytest.approx(mean), "nats", pytest.approx(np.log(0.5)))
    assert (found.bits_per_site, found.bits_per_site.floor) == (pytest.approx(-mean / np.log(2)), pytest.approx(1))
    # The deviations are −3/4 and three times 1/4 of log 3; over 4·3.
    assert found.nats.error == pytest.approx(np.log(3) * np.sqrt((9 / 16 + 3 / 16) / 12))
    assert found.impossible == 0


@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_means_and_errors_are_those_of_numpy(space: Space) -> None:
    law = oracles.random_law(space, 1)
    rows = draw(space, law, 50, 0)
    values = Known(space, law).log_prob(rows)
    found = log_likelihood(Known(space, law), rows, pmf_log_prob=values)
    assert found.nats == found.nats.floor == pytest.approx(values.mean())
    assert found.nats.error == pytest.approx(values.std(ddof=1) / np.sqrt(50))
    assert found.bits_per_site == pytest.approx(-values.mean() / np.log(2) / space.sites)
    assert found.bits_per_site.error == pytest.approx(found.nats.error / np.log(2) / space.sites)
    assert found.bits_per_site.units == "bits"


@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_the_mean_converges_to_the_cross_entropy_within_its_error(space: Space) -> None:
    truth, law = oracles.random_law(space, 2), oracles.random_law(space, 3)
    found = log_likelihood(Known(space, law), draw(space, truth, 20_000, 0), pmf_log_prob=Known(space, truth).log_prob)
    # A mean of 20 000 rows is normal: five standard errors.
    assert abs(found.nats - truth @ np.log(law)) < 5 * found.nats.error
    exact = np.sqrt(truth @ np.log(law) ** 2 - (truth @ np.log(law)) ** 2) / np.sqrt(20_000)
    assert found.nats.error == pytest.approx(exact, rel=0.1)
    assert found.nats < found.nats.floor


def test_counts_are_as_good_as_repeated_rows() -> None:
    space = SPACES[1]
    model = Known(space, oracles.random_law(space, 4))
    rows, counts = draw(space, model.law, 20, 0), np.arange(20) % 4
    weighted, repeated = (
        log_likelihood(model, rows, weights=counts),
        log_likelihood(model, np.repeat(rows, counts, axis=0)),
    )
    assert weighted == pytest.approx(repeated)
    assert weighted.nats.error == pytest.approx(repeated.nats.error)


def test_importances_weigh_the_rows() -> None:
    space = SPACES[0]
    model = Known(space, oracles.random_law(space, 5))
    rows, weights = draw(space, model.law, 20, 0), np.random.default_rng(0).random(20)
    values = model.log_prob(rows)
    found = log_likelihood(model, torch.from_numpy(rows), weights=torch.from_numpy(weights))
    mean, size = np.average(values, weights=weights), weights.sum() ** 2 / (weights**2).sum()
    assert found.nats == pytest.approx(mean)
    assert found.nats.error == pytest.approx(np.sqrt(np.average((values - mean) ** 2, weights=weights) / (size - 1)))


def test_labels_are_handed_on() -> None:
    model = Labelled(SPACES[0], np.full(8, 1 / 8))
    assert log_likelihood(model, np.zeros((2, 3), int), [1.0, 3.0]).nats == pytest.approx(-np.log(8) - 2)


def test_impossible_rows_make_the_mean_infinite_and_are_counted() -> None:
    model = Known(Space(1, 3), np.array([0.5, 0.0, 0.5]))
    found = log_likelihood(model, [[0], [1], [2], [1]])
    assert (found.nats, found.nats.error, found.bits_per_site, found.impossible) == (-np.inf, None, np.inf, 2)
    spared = log_likelihood(model, [[0], [1], [2], [1]], weights=[1, 0, 1, 0])
    assert (spared.nats, spared.impossible) == (pytest.approx(np.log(0.5)), 0)


def test_a_single_row_has_no_error() -> None:
    assert log_likelihood(Known(Space(1, 2), np.array([0.5, 0.5])), [[1]]).nats.error is None


def test_a_model_without_likelihood_says_so() -> None:
    class Silent:
        def log_prob(self, X: Any, y: Any = None) -> np.ndarray:
            raise NotImplementedError("no likelihood")

    with pytest.raises(NotImplementedError, match="no likelihood"):
        log_likelihood(Silent(), [[0]])


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        ([[0], [1]], {"weights": [1.0]}, "weights must give one number for each of the 2 rows"),
        ([[0], [1]], {"weights": [1.0, np.nan]}, "weights has nan at position 1"),
        ([[0], [1]], {"weights": [0, 0]}, "weights are all zero"),
        ([[0], [1]], {"pmf_log_prob": np.zeros(3)}, r"pmf_log_prob gave log-probabilities of shape \(3,\) for 2 rows"),
        ([[0], [1]], {"pmf_log_prob": np.array([0, np.nan])}, "pmf_log_prob gave nan for row 1"),
        (np.zeros((0, 1), int), {}, "X is empty"),
    ],
)
def test_what_makes_no_sense_is_refused(X: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        log_likelihood(Known(Space(1, 2), np.array([0.5, 0.5])), X, **options)
