"""Generative models of discrete data.

Names are imported when they are first used: ``import neurise`` alone is fast.

>>> import neurise
>>> X = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] * 25     # (N, sites) of any symbols
>>> model = neurise.NeurISE(width=8, members=1, steps=20).fit(X, verbose=False)
>>> model.sample(1000, seed=0).shape
(1000, 3)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from neurise import discovery
from neurise._version import __version__

if TYPE_CHECKING:
    from neurise import datasets, dimod_bridge, exact, losses, metrics, povm, presets, structure, theory
    from neurise.binning import bins
    from neurise.evaluation import evaluate
    from neurise.holdings import counts
    from neurise.imputer import Imputer
    from neurise.loading import load
    from neurise.modeling.groups import Architecture, Chain, Corrector
    from neurise.modeling.many import fit_many
    from neurise.modeling.model import Model
    from neurise.models.d3pm import D3PM
    from neurise.models.ddpd import DDPD
    from neurise.models.dfm import DFM
    from neurise.models.ggm import GGM
    from neurise.models.independent import Independent
    from neurise.models.md4 import MD4
    from neurise.models.memorize import Memorize
    from neurise.models.neurise import NeurISE
    from neurise.models.pairwise import Pairwise
    from neurise.models.sedd import SEDD
    from neurise.models.udlm import UDLM
    from neurise.mutagenesis import mutations
    from neurise.player.open import play
    from neurise.scoring import surprise
    from neurise.space import Space
    from neurise.stored import open_rows
    from neurise.training.settings import Training

__all__ = [
    "D3PM",
    "DDPD",
    "DFM",
    "GGM",
    "MD4",
    "SEDD",
    "UDLM",
    "Architecture",
    "Chain",
    "Corrector",
    "Imputer",
    "Independent",
    "Memorize",
    "Model",
    "NeurISE",
    "Pairwise",
    "Space",
    "Training",
    "__version__",
    "bins",
    "counts",
    "datasets",
    "dimod_bridge",
    "evaluate",
    "exact",
    "fit_many",
    "load",
    "losses",
    "metrics",
    "mutations",
    "open_rows",
    "play",
    "povm",
    "presets",
    "structure",
    "surprise",
    "theory",
]

_MODULES = ("datasets", "dimod_bridge", "exact", "losses", "metrics", "povm", "presets", "structure", "theory")
_PLACES = {
    "Architecture": "modeling.groups",
    "Chain": "modeling.groups",
    "Corrector": "modeling.groups",
    "Imputer": "imputer",
    "Model": "modeling.model",
    "Space": "space",
    "Training": "training.settings",
    "bins": "binning",
    "counts": "holdings",
    "evaluate": "evaluation",
    "fit_many": "modeling.many",
    "load": "loading",
    "mutations": "mutagenesis",
    "surprise": "scoring",
    "open_rows": "stored",
    "play": "player.open",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"neurise.{name}")
    if name in _PLACES:
        return getattr(importlib.import_module(f"neurise.{_PLACES[name]}"), name)
    if not name.islower() and name.lower() in discovery.names("neurise.models"):
        return discovery.find("neurise.models", name.lower())
    raise AttributeError(f"module 'neurise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
