"""Which kinds of networks may suit the data: each branch of the rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import neurise
from neurise.modeling.kinds import MANY_ROWS, WIDE, candidates
from neurise.modeling.round_robin import RoundRobinModel
from neurise.schema import learn_schema


@pytest.mark.parametrize(
    ("rows", "sites", "gpu", "kinds", "together"),
    [
        (10**6, WIDE - 1, True, ("site_mlp",), False),
        (10, WIDE - 1, False, ("site_mlp",), False),
        (MANY_ROWS * WIDE - 1, WIDE, False, ("site_mlp", "sparse"), True),
        (MANY_ROWS * WIDE - 1, WIDE, True, ("site_mlp", "sparse", "causal"), True),
        (MANY_ROWS * WIDE, WIDE, False, ("masked", "sparse"), False),
        (54_000, 784, True, ("causal", "sparse"), False),
        (15_000, 2084, True, ("site_mlp", "sparse", "causal"), True),
    ],
)
def test_the_shape_of_the_data_and_the_device_name_the_candidates(
    rows: int, sites: int, gpu: bool, kinds: tuple[str, ...], together: bool
) -> None:
    found = candidates(rows, sites, (), gpu=gpu)
    assert (found.kinds, found.together) == (kinds, together)
    assert found.why


def test_what_is_made_for_the_first_kind_ends_the_choice() -> None:
    found = candidates(54_000, 784, ("keep_prob=0.3", "width=8"), gpu=True)
    assert found.kinds == ("site_mlp",)
    assert found.why == "keep_prob=0.3, width=8: made for site_mlp"


def checked(model: RoundRobinModel, sites: int = WIDE, varying: int | None = None) -> RoundRobinModel:
    """Take a model as far as its training, for rows of so many sites."""
    X = np.random.default_rng(0).integers(0, 2, (50, sites))
    X[:, varying or sites :] = 1
    model.begin_fit("cpu")
    model.schema_, _, _ = learn_schema(X, None, None, None, alphabet=None, order=None)
    model.check()
    return model


def test_wide_data_have_several_candidates_each_with_sizes_of_its_own() -> None:
    model = checked(neurise.NeurISE())
    assert list(model.sizes_) == ["site_mlp", "sparse"]
    assert model.chosen_ == model.sizes_["site_mlp"]
    assert not model.chosen_.pairwise  # sparse has linear terms of its own
    assert model.sizes_["sparse"].width != model.chosen_.width


def test_sites_that_never_vary_do_not_count() -> None:
    assert list(checked(neurise.NeurISE(), WIDE + 5, varying=WIDE - 1).sizes_) == ["site_mlp"]


@pytest.mark.parametrize(
    "params",
    [
        {"keep_prob": 0.3, "cycles": 2},
        {"width": 8},
        {"depth": 1},
        {"members": np.int64(1)},
        {"chain__hide_noised": False},
        {"chain__steps": WIDE},
        {"chain__kind": "masked_round_robin"},
        {"chain__stretch": 4},
        {"corrector__clean": 0.2},
        {"architecture__pairwise": True},
        {"architecture__pairwise": False},
        {"architecture__heads": "shared"},
        {"architecture__residual": False},
        {"architecture__site_input": "number"},
        {"architecture__orders": 2},
        {"architecture__orders": np.stack([np.arange(WIDE), np.arange(WIDE)[::-1]]).tolist()},
        {"corrector__clean": 0.2, "graph": [(0, 1)]},
    ],
    ids=str,
)
def test_parameters_that_are_made_for_one_kind_choose_it(params: dict[str, Any]) -> None:
    model = checked(neurise.NeurISE().set_params(**params))
    assert list(model.sizes_) == ["site_mlp"]
    assert model.choice_ is not None
    assert next(iter(params)) in model.choice_.why


@pytest.mark.parametrize(
    "params",
    [
        {"keep_prob": 0, "cycles": np.int64(1)},
        {"training__batch_size": 32, "steps": 7, "loss": "cross_entropy"},
        {"chain__unseen": 0.0},
        {"calibrate": True},
        {"order": list(range(WIDE))[::-1]},
    ],
    ids=str,
)
def test_other_parameters_leave_the_choice_open(params: dict[str, Any]) -> None:
    assert list(checked(neurise.NeurISE().set_params(**params)).sizes_) == ["site_mlp", "sparse"]


def test_soft_noise_of_other_models_has_one_kind() -> None:
    assert list(checked(neurise.GGM()).sizes_) == ["site_mlp"]


@pytest.mark.parametrize("network", ["sparse", "masked", "causal"])
def test_a_network_that_is_named_is_taken_and_soft_noise_is_refused_by_name(network: str) -> None:
    model = checked(neurise.NeurISE(network=network))
    assert list(model.sizes_) == [network]
    assert model.choice_ is None
    with pytest.raises(ValueError, match=rf"network '{network}'.*keep_prob=0.5: soft noise"):
        checked(neurise.NeurISE(network=network, keep_prob=0.5))


@pytest.mark.parametrize("network", [3, True, ["site_mlp"], torch.nn.Linear])
def test_a_network_has_a_name_or_none(network: Any) -> None:
    with pytest.raises(ValueError, match="network must be a name"):
        checked(neurise.NeurISE(network=network))
