"""Parameter counts before anything is trained."""

import numpy as np
import pytest
import tiny

from neurise import Architecture, NeurISE, discovery
from neurise.comparison import count_parameters, match_width
from neurise.space import Space

NETWORKS = [
    name for name in discovery.names("neurise.models") if "width" in discovery.find("neurise.models", name).parameters()
]


@pytest.mark.parametrize("classes", [0, 2])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_count_is_that_of_the_fitted_model(name: str, classes: int) -> None:
    X = np.random.default_rng(0).integers(0, 3, (40, 4))
    model = tiny.model(name)
    expected = count_parameters(model, Space(4, 3), classes)
    assert model.fit(X, np.arange(40) % 2 if classes else None, max_steps=1).num_parameters_ == expected


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("name", NETWORKS)
def test_widths_are_matched_to_within_a_tenth(name: str, depth: int) -> None:
    space = Space(25, 2)
    target = count_parameters(NeurISE(depth=3), space)
    matched = match_width(tiny.model(name, depth=depth), target, space)
    assert abs(count_parameters(matched, space) / target - 1) < 0.1
    assert matched.get_params() == tiny.model(name, depth=depth, width=matched.width).get_params()  # type: ignore[attr-defined]
    # No other width is closer.
    for width in (matched.width - 1, matched.width + 1):  # type: ignore[attr-defined]
        other = count_parameters(tiny.model(name, depth=depth, width=width), space)  # type: ignore[arg-type]
        assert abs(other - target) >= abs(count_parameters(matched, space) - target)


def test_what_cannot_be_matched_is_refused() -> None:
    with pytest.raises(ValueError, match=r"NeurISE of width 1 has 46 parameters on 6 sites .* within a tenth of 3"):
        match_width(NeurISE(depth=1, members=1, architecture=Architecture(pairwise=False)), 3, Space(6, 2))
