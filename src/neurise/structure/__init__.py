"""Structure recovery: the couplings, the fields and the graph that a fitted model has learnt.

>>> found = neurise.structure.recover(model, data)
>>> found.couplings, found.fields, found.edges
>>> neurise.structure.compare(found, data)         # where the truth is known: ROC, signs, errors
>>> neurise.structure.draw(found, "graph.png", data)
"""

from neurise.structure.picture import draw
from neurise.structure.recovery import Structure, recover
from neurise.structure.truth import Comparison, Roc, compare, roc

__all__ = ["Comparison", "Roc", "Structure", "compare", "draw", "recover", "roc"]
