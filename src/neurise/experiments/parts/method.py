"""A method: a model with the settings that make it this method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from neurise import discovery
from neurise.experiments.parts.method_names import FILE

if TYPE_CHECKING:
    from neurise.modeling.model import Model

ALONE: Mapping[str, Any] = {"members": 1, "architecture__pairwise": False}
"""One network without pairwise terms, as the other methods have."""


@dataclass(frozen=True)
class Method:
    """A model with the settings that make it this method."""

    label: str
    model: str  # a name that discovery knows, or FILE.py:Class
    settings: Mapping[str, Any] = field(default_factory=dict)
    form: str | None = None  # a class method of the model that makes it, where the constructor does not
    trains: bool = True  # whether the steps and the groups of an experiment are for it
    bare: bool = False  # the model as it is: no setting of the experiment is for it
    timed: bool = False  # trained for the seconds of an experiment, where it has such, in the place of its steps

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
