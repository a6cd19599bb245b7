"""The methods that are compared, on an equal footing: the same rows, examples and depth, and as many parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from neurise import presets

if TYPE_CHECKING:
    from neurise.dataset import Dataset
    from neurise.modeling.model import Model

SETTINGS = {
    "depth": "depth",
    "batch_size": "training__batch_size",
    "learning_rate": "training__learning_rate",
    "timesteps": "timesteps",
    "sampling_steps": "sampling_steps",
    "keep_prob": "keep_prob",
    "cycles": "cycles",
    "network": "network",
    "heads": "architecture__heads",
}
"""Parameters of a cell that are handed to the model, where it has them, and their names there."""


@dataclass(frozen=True)
class Method:
    """A model with the settings that make it this method."""

    label: str
    model: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    form: str | None = None  # a class method of the model that makes it, where the constructor does not

    def make(self, **parameters: Any) -> Model:
        """Make the untrained model; its own settings win over those that are given."""
        from neurise import discovery

        kind = discovery.find("neurise.models", self.model)
        made: Model = kind() if self.form is None else getattr(kind, self.form)()
        return made.set_params(**{**parameters, **self.settings})


LEARNING_RATE = 2e-3
"""Of every method, where a cell names no other: NeurISE would otherwise choose one by the number of rows."""
ALONE: Mapping[str, Any] = {"members": 1, "architecture__pairwise": False}
"""One network without pairwise terms, as the other methods have."""

METHODS: Mapping[str, Method] = {
    "neurise": Method("NeurISE", "neurise", ALONE),
    "ggm": Method("GGM", "ggm", {"keep_prob": 0.2, "cycles": 3, **ALONE}),
    "sedd": Method("SEDD", "sedd"),
    "d3pm": Method("D3PM", "d3pm"),
    "dfm": Method("DFM", "dfm"),
    "neurise_committee": Method("NeurISE committee", "neurise", {"members": 4, "architecture__pairwise": True}),
    "neurise_paper": Method("NeurISE, the paper's form", "neurise", form="paper"),
    "neurise_soft": Method("NeurISE, soft noise", "neurise", {"keep_prob": 0.2, "cycles": 3, **ALONE}),
    "neurise_cross_entropy": Method("NeurISE, cross-entropy", "neurise", {"loss": "cross_entropy", **ALONE}),
    "d3pm_published": Method("D3PM, published posterior", "d3pm", {"posterior": "published"}),
    "d3pm_absorbing": Method("D3PM, absorbing", "d3pm", {"noise": "absorbing"}),
    "pairwise": Method("pairwise", "pairwise"),
    "independent": Method("independent", "independent"),
    "memorize": Method("memorised rows", "memorize"),
}
PRESET = "preset:"
"""A method that begins so is a configuration that is shipped, as it was found: with its own width and batches."""
COMPARED = ("neurise", "ggm", "sedd", "d3pm", "dfm")
"""The five of the paper."""


def labelled(*names: str) -> dict[str, str]:
    """Give methods with their labels, as an experiment declares them."""
    return {name: METHODS[name].label for name in names}


def others(*names: str) -> dict[str, str]:
    """Give all methods but some, and the configurations that are shipped."""
    shipped = {f"{PRESET}{name}": f"preset {name}" for name in presets.names()}
    return labelled(*(name for name in METHODS if name not in names)) | shipped


def named(method: str) -> Method:
    """Find a method by its name."""
    if not method.startswith(PRESET):
        return METHODS[method]
    found = presets.load(method.removeprefix(PRESET))
    # How long to train is the experiment's to say.
    settings = {name: value for name, value in found.params.items() if name != "steps"}
    return Method(f"preset {found.name}", found.model, settings)


def trainable(method: str) -> bool:
    """Whether a method trains a network."""
    return named(method).model not in ("pairwise", "independent", "memorize")


def build(parameters: Mapping[str, Any], data: Dataset, classes: int = 0) -> Model:
    """Make the untrained model of a cell, as wide as gives it the number of parameters that NeurISE has.

    ``width`` of a cell is that of NeurISE with hard noise.
    """
    from neurise import discovery
    from neurise.comparison import count_parameters, match_width
    from neurise.models.neurise import NeurISE

    method = named(str(parameters.get("method", "neurise")))
    kind = discovery.find("neurise.models", method.model)
    wanted = {"learning_rate": LEARNING_RATE, **parameters}
    known = kind.leaves()
    given = {new: wanted[name] for name, new in SETTINGS.items() if name in wanted and new in known}
    model = method.make(**given, alphabet=data.symbols.tolist())
    if "width" not in kind.parameters() or "width" in method.settings:
        return model
    width, depth = int(parameters["width"]), int(parameters["depth"])
    if "heads" in parameters:  # the network itself is what is compared
        return model.set_params(width=width)
    target = count_parameters(NeurISE().set_params(width=width, depth=depth, **ALONE), data.space, classes)
    return match_width(model, target, data.space, classes)  # type: ignore[arg-type]
