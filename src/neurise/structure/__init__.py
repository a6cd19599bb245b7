"""Structure recovery: the couplings, the fields and the graph that a fitted model has learnt.

>>> import neurise
>>> data = neurise.datasets.edwards_anderson(side=2, seed=0)
>>> model = neurise.Pairwise().fit(data.sample(2000, seed=0), verbose=False)
>>> found = neurise.structure.recover(model, data, verbose=False)
>>> found.couplings.shape, found.fields.shape
((4, 4), (4,))
>>> neurise.structure.compare(found, data).wrong_signs         # where the truth is known
()
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
