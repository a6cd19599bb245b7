"""Where a search may look: each model class says, and takes whatever lies there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tiny

from neurise import discovery
from neurise.modeling.search_space import Choice, Domain, Integer, LogUniform, Uniform

TRAINED = [name for name in discovery.names("neurise.models") if tiny.is_trained(name)]
PAPERS = {
    "depth": Integer(1, 5),
    "width": Choice((64, 128, 256, 512)),
    "training__learning_rate": LogUniform(1e-4, 5e-2),
    "training__weight_decay": LogUniform(1e-8, 1e-3),
    "training__batch_size": Choice((64, 128, 256, 512)),
}
"""What the paper's appendix searches for every method."""


def ends(domain: Domain) -> list[Any]:
    return list(domain.values) if isinstance(domain, Choice) else [domain.low, domain.high]


@pytest.mark.parametrize("name", TRAINED)
def test_every_value_of_the_space_is_taken(name: str) -> None:
    space = discovery.find("neurise.models", name).search_space
    assert space
    assert set(space) <= set(tiny.model(name).leaves())
    rows = np.arange(24).reshape(8, 3) % 3
    for number in range(max(len(ends(domain)) for domain in space.values())):
        chosen = {key: ends(domain)[min(number, len(ends(domain)) - 1)] for key, domain in space.items()}
        fitted = tiny.model(name, **chosen).fit(rows, max_steps=1, verbose=False)
        assert {key: fitted.get_params()[key] for key in chosen} == chosen


@pytest.mark.parametrize("name", ["neurise", "ggm", "sedd", "d3pm", "dfm"])
def test_the_papers_methods_have_the_papers_space(name: str) -> None:
    own = {"keep_prob": Uniform(0.001, 0.999), "cycles": Integer(1, 10)} if name == "neurise" else {}
    assert dict(discovery.find("neurise.models", name).search_space) == PAPERS | own


def test_the_space_is_no_parameter() -> None:
    assert "search_space" not in tiny.model("neurise").get_params()
