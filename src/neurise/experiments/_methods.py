"""The methods that are compared, on an equal footing: the same rows, examples and depth, and as many parameters."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neurise import discovery, presets
from neurise.experiments._unknown import unknown
from neurise.experiments.parts.method_names import FILE, read

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
    model: str  # a name that discovery knows, or FILE.py:Class
    settings: Mapping[str, Any] = field(default_factory=dict)
    form: str | None = None  # a class method of the model that makes it, where the constructor does not
    trains: bool = True  # whether the steps and the groups of an experiment are for it

    @property
    def kind(self) -> type[Model]:
        """The class of the model."""
        if FILE in self.model:
            found: type[Model] = outside_class(self.model)
        else:
            found = discovery.find("neurise.models", self.model)
        return found

    def make(self, **parameters: Any) -> Model:
        """Make the untrained model; its own settings win over those that are given."""
        made: Model = self.kind() if self.form is None else getattr(self.kind, self.form)()
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
    "pairwise": Method("pairwise", "pairwise", trains=False),
    "independent": Method("independent", "independent", trains=False),
    "memorize": Method("memorised rows", "memorize", trains=False),
}
PRESET = "preset:"
"""A method that begins so is a configuration that is shipped, as it was found: with its own width and batches."""
METHOD_CODE = "method_code"
"""The parameter of a cell that identifies the code of a method from outside."""
ANY_MODEL = "any model of the library or of an installed package, and mine.py:Model for a class in a file"
COMPARED = ("neurise", "ggm", "sedd", "d3pm", "dfm")
"""The five of the paper."""


def outside_class(text: str) -> Any:
    """Load the model class of ``FILE.py:Class``."""
    from neurise.modeling.model import Model

    path, _, name = text.rpartition(":")
    found = discovery.in_file(path, name)
    if not (isinstance(found, type) and issubclass(found, Model)):
        raise ValueError(
            f"{text!r}: {name} is no model; a model derives from a class of neurise.modeling (see CONTRIBUTING.md)"
        )
    return found


def labelled(*names: str) -> dict[str, str]:
    """Give methods with their labels, as an experiment declares them."""
    return {name: METHODS[name].label for name in names}


def others(*names: str) -> dict[str, str]:
    """Give all methods but some, and the configurations that are shipped."""
    shipped = {f"{PRESET}{name}": f"preset {name}" for name in presets.names()}
    return labelled(*(name for name in METHODS if name not in names)) | shipped


def named(method: str) -> Method:
    """Find a method: one of the above, a preset, any model that can be found, or a class in a file; with its settings."""
    base, settings = read(method)
    found = _without_settings(base)
    if not settings:
        return found
    for name in settings:
        if name not in found.kind.leaves():
            raise ValueError(f"method {method!r}: {found.kind.unknown(name)}")
    return replace(found, label=method, settings={**found.settings, **settings})


def _without_settings(base: str) -> Method:
    if base.startswith(PRESET):
        shipped = presets.load(base.removeprefix(PRESET))
        # How long to train is the experiment's to say.
        settings = {name: value for name, value in shipped.params.items() if name != "steps"}
        return Method(f"preset {shipped.name}", shipped.model, settings)
    if base in METHODS:
        return METHODS[base]
    if FILE not in base and base not in discovery.names("neurise.models"):
        raise unknown("method", base, [*METHODS, *discovery.names("neurise.models")], ANY_MODEL)
    from neurise.modeling.trained import TrainedModel

    found = Method(base, base)
    return replace(found, trains=issubclass(found.kind, TrainedModel))


def identity(method: str) -> dict[str, str]:
    """Return what identifies a method beyond its name: a digest of the file that its class stands in.

    That of the library's own is in the digest of the code, and the answer is empty.
    """
    found = named(method)
    if read(method).base in METHODS or (kind := found.kind).__module__.startswith("neurise."):
        return {}
    return {METHOD_CODE: hashlib.sha256(Path(inspect.getfile(kind)).read_bytes()).hexdigest()[:12]}


def trainable(method: str) -> bool:
    """Whether a method trains a network."""
    return named(method).trains


def build(parameters: Mapping[str, Any], data: Dataset, classes: int = 0) -> Model:
    """Make the untrained model of a cell, as wide as gives it the number of parameters that NeurISE has.

    ``width`` of a cell is that of NeurISE with hard noise.
    """
    from neurise.comparison import count_parameters, match_width
    from neurise.models.neurise import NeurISE

    name = str(parameters.get("method", "neurise"))
    method, here = named(name), identity(name).get(METHOD_CODE)
    if here != parameters.get(METHOD_CODE):
        raise ValueError(
            f"the code of {name} has the digest {here} where this cell runs, and had {parameters.get(METHOD_CODE)} where "
            "the cell was planned; put the same file there"
        )
    kind = method.kind
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
