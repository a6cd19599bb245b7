"""All single changes of one row: how much more or less probable a model holds the row with one site changed.

>>> found = neurise.mutations(model, wild_type)
>>> found.log_ratio                                    # (sites, states): log P(mutant) − log P(wild type)
>>> neurise.mutagenesis.draw(found, "map.png")
"""

from neurise.mutagenesis.changes import Mutations, mutations
from neurise.mutagenesis.picture import draw

__all__ = ["Mutations", "draw", "mutations"]
