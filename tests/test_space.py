import itertools

import pytest
import torch

from neurise.space import Space

SPACE = Space(sites=3, states=4)  # sites != states, so that mixing them up fails


def test_size_is_states_to_the_sites() -> None:
    assert SPACE.size == 64
    assert Space(sites=5, states=2).size == 32


def test_configurations_count_with_the_first_site_most_significant() -> None:
    expected = list(itertools.product(range(4), repeat=3))
    assert [tuple(row) for row in SPACE.configurations().tolist()] == expected


def test_index_undoes_configurations() -> None:
    assert SPACE.index(SPACE.configurations(5, 40)).tolist() == list(range(5, 40))


def test_index_takes_leading_axes_and_does_not_overflow_bytes() -> None:
    x = torch.full((2, 5, 8), 3, dtype=torch.uint8)
    assert Space(sites=8, states=4).index(x).tolist() == [[4**8 - 1] * 5] * 2


def test_uniform_covers_every_token_of_every_site_evenly() -> None:
    n = 40_000
    x = SPACE.uniform(n, generator=torch.Generator().manual_seed(0))
    counts = torch.stack([(x == token).sum(0) for token in range(4)])
    # Each count is Binomial(n, 1/4); 5 standard deviations are exceeded by one in 10^6.
    assert (counts - n / 4).abs().max() < 5 * (n * 0.25 * 0.75) ** 0.5
    assert x.max() == 3


@pytest.mark.parametrize(("sites", "states"), [(0, 2), (-1, 2), (3, 0), (3, 257)])
def test_impossible_spaces_are_refused(sites: int, states: int) -> None:
    with pytest.raises(ValueError, match=str(sites if sites < 1 else states)):
        Space(sites, states)


def test_too_large_to_enumerate_says_how_large() -> None:
    with pytest.raises(ValueError, match=r"2\^784"):
        Space(784, 2).require_enumerable()
