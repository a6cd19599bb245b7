"""Structure recovery: the couplings, the fields and the graph that a fitted model has learnt.

>>> found = neurise.structure.recover(model, data)
>>> found.couplings, found.fields, found.edges
>>> neurise.structure.compare(found, data)         # where the truth is known: ROC, signs, errors
>>> neurise.structure.draw(found, "graph.png", data)
>>> neurise.structure.contacts(found, min_separation=5).pairs     # ranked, with the average-product correction
"""

from neurise.structure.contact_map import draw_contacts
from neurise.structure.contact_scores import Contacts, contacts
from neurise.structure.picture import draw
from neurise.structure.recovery import Structure, recover
from neurise.structure.temperature import Temperature, effective_temperature
from neurise.structure.truth import Comparison, Roc, compare, roc

__all__ = [
    "Comparison",
    "Contacts",
    "Roc",
    "Structure",
    "Temperature",
    "compare",
    "contacts",
    "draw",
    "draw_contacts",
    "effective_temperature",
    "recover",
    "roc",
]
