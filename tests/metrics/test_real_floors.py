"""What real data scores against itself: the figures that every model of it is held against."""

import numpy as np
import pytest
from real_data import real_file

from neurise.datasets import dwave, mnist
from neurise.metrics import cross_correlation, mmd


@pytest.mark.slow
def test_correlations_of_mnist_training_images_against_test_images() -> None:
    real_file("mnist/train-images-idx3-ubyte.gz")
    data, rng, scores = mnist(), np.random.default_rng(0), []
    for _ in range(3):  # which thousand of the images it is moves the mean by a few percent
        for digit in range(10):
            train, test = data.train[data.labels == digit], data.test[data.test_labels == digit]
            some = train[rng.choice(len(train), 1000, replace=False)]
            scores.append(cross_correlation(some, test).mean_abs)
    assert 0.030 < np.mean(scores) < 0.033


def test_annealer_reads_against_other_reads() -> None:
    real_file("dwave/advantage41_q2084_train20000.npz")
    data = dwave("advantage41_q2084")
    rows = data.train[np.random.default_rng(0).permutation(len(data.train))]
    first, second = rows[:5000], rows[5000:10_000]
    on_couplers = cross_correlation(first, second, couplers=data.edges).mean_abs
    assert 0.008 < on_couplers < 0.011
    assert on_couplers.floor is not None
    # Both halves are equally good, so the floor, from halves of the reference alone, says the same.
    assert abs(on_couplers.floor - on_couplers) < 0.002
    discrepancy = mmd(first[:2500], second[:2500])
    assert abs(discrepancy) < 5 * discrepancy.error
    assert discrepancy.error < 0.01
