import math

import pytest
import torch

from neurise.rows import Rows, digest, likeness, split


def source(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def numbered(n: int, weights: list[float] | None = None, *, labels: bool = False) -> Rows:
    """Rows that know their number: row i is (i, i)."""
    x = torch.arange(n, dtype=torch.uint8)[:, None].expand(n, 2)
    return Rows(x, torch.arange(n) if labels else None, None if weights is None else torch.tensor(weights).double())


@pytest.mark.parametrize("weights", [None, [0.5, 0.0, 3.0, 1.5], [1e-9, 2e-9, 3e-9, 4e-9], [1e12, 1.0, 1e12, 1.0]])
def test_rows_are_drawn_in_proportion_to_their_weight(weights: list[float] | None) -> None:
    n = 40_000
    x, y, fold, _ = numbered(4, weights, labels=True).draw(n, generator=source())
    assert y is not None
    assert fold is None
    assert torch.equal(x[:, 0].long(), y)  # labels go with their rows
    share = torch.tensor(weights or [1.0] * 4).double()
    share = share / share.sum()
    counts = torch.bincount(y, minlength=4)
    # Binomial(n, share): five standard deviations are exceeded once in 10^6; a share below 1/n is seen once at most.
    assert ((counts - n * share).abs() <= 5 * (n * share * (1 - share)).sqrt() + (share > 0)).all()
    assert (counts[share == 0] == 0).all()


def test_a_row_of_weight_zero_is_never_drawn_even_at_the_ends() -> None:
    rows = numbered(3, [0.0, 1.0, 0.0])
    for level in (0.0, 0.5, 1 - 2**-53):
        assert rows.at(torch.tensor([level], dtype=torch.float64))[0][0, 0] == 1


@pytest.mark.parametrize(("weights", "n"), [(None, 103), ([1.0, 2.0, 5.0, 0.5], 170), (None, 3)])
def test_spreading_gives_each_row_its_share_to_within_one(weights: list[float] | None, n: int) -> None:
    x, _, _, _ = numbered(4, weights).spread(n, generator=source())
    share = torch.tensor(weights or [1.0] * 4)
    counts = torch.bincount(x[:, 0].long(), minlength=4)
    assert ((counts - n * share / share.sum()).abs() <= 1).all()
    assert counts.sum() == n


def test_spreading_mixes_the_rows() -> None:
    x, _, _, _ = numbered(4).spread(100, generator=source())
    assert not torch.equal(x[:, 0], x[:, 0].sort().values)


def test_rows_are_split_without_loss_or_repetition() -> None:
    kept, held = split(numbered(50, labels=True), 0.2, generator=source())
    assert held is not None
    assert (len(kept), len(held)) == (40, 10)
    assert sorted([*kept.x[:, 0].tolist(), *held.x[:, 0].tolist()]) == list(range(50))
    for side in (kept, held):
        assert torch.equal(side.x[:, 0].long(), side.y)
    assert held.x[:, 0].tolist() != list(range(10))  # shuffled


def test_weights_that_are_no_counts_go_with_whole_rows() -> None:
    rows = numbered(50, [0.5 + i for i in range(50)])
    kept, held = split(rows, 0.2, generator=source())
    assert held is not None
    assert len(held) == 10
    for side in (kept, held):
        assert side.weights is not None
        assert side.weights.tolist() == [0.5 + i for i in side.x[:, 0].tolist()]


def test_weights_of_one_are_split_as_rows() -> None:
    kept, held = split(numbered(50, [1.0] * 50), 0.2, generator=source())
    assert held is not None
    assert (len(kept), len(held)) == (40, 10)


def test_counts_are_split_by_observation() -> None:
    counts = [float(3 * i + 1) for i in range(30)]
    kept, held = split(numbered(30, counts, labels=True), 0.3, generator=source())
    assert held is not None
    total = torch.zeros(30, dtype=torch.float64)
    for side in (kept, held):
        assert side.weights is not None
        assert (side.weights > 0).all()
        assert torch.equal(side.weights, side.weights.round())
        assert torch.equal(side.x[:, 0].long(), side.y)
        total[side.x[:, 0].long()] += side.weights
    assert total.tolist() == counts


def test_counts_held_back_are_binomial() -> None:
    runs, count, fraction = 4000, 20, 0.3
    held = torch.zeros(runs)
    generator = source()
    for run in range(runs):
        part = split(numbered(2, [20.0, 1e6]), fraction, generator=generator)[1]
        assert part is not None
        held[run] = sum(w for i, w in zip(part.x[:, 0], part.weights, strict=True) if i == 0)  # type: ignore[arg-type]
    mean, variance = count * fraction, count * fraction * (1 - fraction)
    # The mean of the runs has the variance v/runs; their sample variance has, for fourth central moment
    # m4 = v (1 + 3 v (1 - 2/count)), the variance (m4 - v²)/runs to first order. Five standard deviations each.
    fourth = variance * (1 + 3 * variance * (1 - 2 / count))
    assert abs(float(held.mean()) - mean) < 5 * math.sqrt(variance / runs)
    assert abs(float(held.var()) - variance) < 5 * math.sqrt((fourth - variance**2) / runs)


@pytest.mark.parametrize(
    ("rows", "fraction"),
    [
        (numbered(50), 0.0),
        (numbered(4), 0.1),  # rounds to no row at all
        (numbered(2), 0.9),  # rounds to all of them
        (numbered(2, [2.0, 1.0]), 1e-9),  # counts: none is held back
        (numbered(2, [2.0, 1.0]), 1 - 1e-9),  # counts: all would be
        (numbered(2, [1.0, 0.0]), 0.5),  # one side would have no weight
    ],
)
def test_no_side_is_ever_empty(rows: Rows, fraction: float) -> None:
    kept, held = split(rows, fraction, generator=source())
    assert held is None
    assert kept is rows


def test_splitting_is_reproducible() -> None:
    rows = numbered(50)
    assert torch.equal(split(rows, 0.2, generator=source(1))[0].x, split(rows, 0.2, generator=source(1))[0].x)
    assert not torch.equal(split(rows, 0.2, generator=source(1))[0].x, split(rows, 0.2, generator=source(2))[0].x)


def test_a_digest_tells_data_apart() -> None:
    x = torch.zeros((6, 2), dtype=torch.uint8)
    variants = [
        (Rows(x), None),
        (Rows(x.reshape(4, 3)), None),
        (Rows(x, weights=torch.ones(6)), None),
        (Rows(x, torch.ones(6)), None),
        (Rows(x), Rows(x)),
        (Rows(x + 1), None),
    ]
    assert len({digest(*parts) for parts in variants}) == len(variants)
    assert digest(Rows(x.clone())) == digest(Rows(x))


@pytest.mark.parametrize("weighted", [False, True])
def test_likeness_tells_rows_from_others_whatever_their_order(weighted: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(0, 3, (300, 4), generator=generator, dtype=torch.uint8)
    weights = torch.rand(300, generator=generator, dtype=torch.float64) if weighted else None
    order = torch.randperm(300, generator=generator)
    own = likeness(Rows(x, weights=weights))
    assert likeness(Rows(x[order], weights=None if weights is None else weights[order])) == own
    others = [x[:-1], torch.cat([x, x[:1]]), x.flip(1), (x + 1) % 3]
    changed = x.clone()
    changed[7, 2] = (changed[7, 2] + 1) % 3
    for other in (*others, changed):
        masses = None if weights is None else torch.ones(len(other), dtype=torch.float64)
        assert likeness(Rows(other, weights=masses)) != own
    if weights is not None:
        assert likeness(Rows(x, weights=weights[order])) != own


def test_likeness_takes_counts_for_repeated_rows() -> None:
    x = torch.randint(0, 2, (100, 3), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    different, counts = torch.unique(x, dim=0, return_counts=True)
    assert likeness(Rows(different, weights=counts.double())) == likeness(Rows(x))
