"""What a notebook shows of a model: its parameters, and what was chosen and reached where it is fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neurise import notebook, shown
from neurise.modeling.estimator import plain
from neurise.modeling.summary import readable

if TYPE_CHECKING:
    from neurise.modeling.model import Model


def html(model: Model) -> str:
    """Write the parameters that differ from the defaults, the summary of a fitted model, and, folded, all parameters."""
    usual, own = model.leaves(), model.flat_params()
    changed = {name: shown.value(entry) for name, entry in own.items() if plain(entry) != plain(usual.get(name))}
    parts = [notebook.facts(changed)] if changed else [notebook.note("all parameters are the defaults")]
    fitted = model.__sklearn_is_fitted__()
    if fitted:
        facts = {name: readable(fact) for name, fact in model.summary().items() if name != "model"}
        parts += [notebook.part("what was chosen and reached"), notebook.facts(facts)]
    every = notebook.facts({name: shown.value(entry) for name, entry in own.items()})
    remark = "fitted" if fitted else "not fitted yet"
    return notebook.box(type(model).__name__, remark, *parts, notebook.folded("all parameters", every))
