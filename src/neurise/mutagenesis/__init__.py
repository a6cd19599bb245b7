"""All single changes of one row: how much more or less probable a model holds the row with one site changed.

>>> import neurise
>>> model = neurise.Independent().fit([[0, 0], [1, 1], [0, 1], [0, 0]])
>>> neurise.mutations(model, [0, 1]).log_ratio.shape         # (sites, states)
(2, 2)
"""

from neurise.mutagenesis.changes import Mutations, mutations
from neurise.mutagenesis.picture import draw

__all__ = ["Mutations", "draw", "mutations"]
