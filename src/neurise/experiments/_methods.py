"""The methods that are compared, on an equal footing: the same rows, examples and depth, and as many parameters."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neurise import discovery, presets
from neurise.experiments._method_table import METHODS
from neurise.experiments._unknown import unknown
from neurise.experiments.parts.method import Method
from neurise.experiments.parts.method_names import FILE, read

if TYPE_CHECKING:
    from neurise.dataset import Dataset
    from neurise.modeling.model import Model
    from neurise.space import Space

SETTINGS = {
    "depth": "depth",
    "batch_size": "training__batch_size",
    "learning_rate": "training__learning_rate",
    "timesteps": "timesteps",
    "sampling_steps": "sampling_steps",
    "keep_prob": "keep_prob",
    "cycles": "cycles",
    "network": "network",
    "noise": "noise",
    "heads": "architecture__heads",
    "site_input": "architecture__site_input",
    "sites_per_row": "chain__stretch",
}
"""Parameters of a cell that are handed to the model, where it has them, and their names there."""


LEARNING_RATE = 2e-3
"""Of every method, where a cell names no other: NeurISE would otherwise choose one by the number of rows."""
PRESET = "preset:"
"""A method that begins so is a configuration that is shipped, as it was found: with its own width and batches."""
METHOD_CODE = "method_code"
"""The parameter of a cell that identifies the code of a method from outside."""
ANY_MODEL = "any model of the library or of an installed package, and mine.py:Model for a class in a file"


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
        return Method(f"preset {shipped.name}", shipped.model, settings, timed=True)
    if base in METHODS:
        return METHODS[base]
    if not is_model(base):
        raise unknown("method", base, [*METHODS, *discovery.names("neurise.models")], ANY_MODEL)
    from neurise.modeling.trained import TrainedModel

    found = Method(base, base)
    return replace(found, trains=issubclass(found.kind, TrainedModel))


def is_model(method: str) -> bool:
    """Whether a name stands for a model that is made here, and not for something that an experiment does itself."""
    base = read(method).base
    return base.startswith(PRESET) or base in METHODS or FILE in base or base in discovery.names("neurise.models")


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


def limits(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return how long a cell trains, as ``fit`` takes it: steps, or seconds where the method and the cell have such."""
    method = named(str(parameters.get("method", "neurise")))
    if method.timed and "seconds" in parameters:
        return {"max_seconds": float(parameters["seconds"])}
    return {"max_steps": int(parameters["steps"])} if method.trains else {}


def build(parameters: Mapping[str, Any], data: Dataset, classes: int = 0) -> Model:
    """Make the untrained model of a cell, as wide as gives it the number of parameters that NeurISE has.

    ``width`` of a cell is that of NeurISE with hard noise.
    """
    from neurise.comparison import match_width

    name = str(parameters.get("method", "neurise"))
    method, here = named(name), identity(name).get(METHOD_CODE)
    if here != parameters.get(METHOD_CODE):
        raise ValueError(
            f"the code of {name} has the digest {here} where this cell runs, and had {parameters.get(METHOD_CODE)} where "
            "the cell was planned; put the same file there"
        )
    kind = method.kind
    if method.bare:
        return method.make(alphabet=data.symbols.tolist())
    wanted = {"learning_rate": LEARNING_RATE, **parameters}
    known = kind.leaves()
    given = {new: wanted[name] for name, new in SETTINGS.items() if name in wanted and new in known}
    if "chain__stretch" in given:  # ``batch_size`` counts rows, for every method; that of these models counts questions
        given["training__batch_size"] *= given["chain__stretch"]
    model = method.make(**given, alphabet=data.symbols.tolist())
    if "width" not in kind.parameters() or "width" in method.settings:
        return model
    width, depth = int(parameters["width"]), int(parameters["depth"])
    if "heads" in parameters:  # the network itself is what is compared
        return model.set_params(width=width)
    return match_width(model, parameters_of(width, depth, data.space, classes), data.space, classes)  # type: ignore[arg-type]


def parameters_of(width: int, depth: int, space: Space, classes: int = 0) -> int:
    """Count the parameters that all methods are to have: those of the one network of NeurISE with hard noise.

    The network is named here, and not the model, so that rows of other methods do not hang on all that NeurISE is made of.
    """
    import torch

    from neurise.networks.site_mlp import SiteMLP

    with torch.device("meta"):
        network = SiteMLP(space, space.sites, width=width, depth=depth, classes=classes, heads="site", residual=True)
    return sum(parameter.numel() for parameter in network.parameters())
