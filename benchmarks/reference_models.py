"""Fit the small models that ``neurise play`` shows by name, measure them, and write them with their cards to its folder.

    python benchmarks/reference_models.py                    # all of them: about fifteen minutes on one core
    python benchmarks/reference_models.py glass potts        # some of them
    python benchmarks/reference_models.py --cards            # measure the models that are there again; nothing is fitted

``glass``, ``glass_5x5``, ``potts`` and ``ghz`` are fitted to rows drawn from their exact laws, ``digits`` to the training images of
MNIST, and ``nltcs`` to a survey of 16 questions; the files of the last two are looked for as ``neurise.datasets`` does, and
what is not found is left out with a line that says so. Each folder holds models of the same rows, a ``card.json`` for the page,
and with the first model a card (``README.md``) that names data, settings, measurements with their floors, and licence.
All but ``nltcs`` are shipped: its counts are close to the rows themselves, which are other people's.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import neurise
from neurise.dataset import Dataset
from neurise.player import references

ROWS = 20_000
SMALL = {"network": "site_mlp", "width": 48, "depth": 2, "members": 1}


@dataclass(frozen=True)
class Made:
    """What is fitted, and what its card says."""

    title: str
    data: str  # as the command line takes it
    about: str
    licence: str
    shape: tuple[int, ...]
    load: Callable[[], Dataset]
    fit: Callable[[Dataset, Path], None]
    samples: int = 10_000


def _glass(data: Dataset, folder: Path) -> None:
    rows = data.sample(ROWS, seed=0)
    neurise.NeurISE(**SMALL, order=None).fit(rows, max_seconds=40, seed=0).save(folder / "neurise")
    neurise.D3PM(width=48, depth=2).fit(rows, max_seconds=20, seed=0).save(folder / "d3pm")
    neurise.Pairwise().fit(rows, max_seconds=20, seed=0).save(folder / "pairwise")
    neurise.Independent().fit(rows).save(folder / "independent")


def _potts(data: Dataset, folder: Path) -> None:
    rows = data.sample(ROWS, seed=0)
    neurise.NeurISE(**SMALL).fit(rows, max_seconds=40, seed=0).save(folder / "neurise")
    neurise.D3PM(width=48, depth=2).fit(rows, max_seconds=20, seed=0).save(folder / "d3pm")


def _defaults(data: Dataset, folder: Path) -> None:
    """Fit a model as it is by default, to the training rows or to as many of the law."""
    rows = data.sample(ROWS, seed=0) if data.train is None else data.train
    neurise.NeurISE().fit(rows, max_seconds=120, seed=0).save(folder / "neurise")


def _digits(data: Dataset, folder: Path) -> None:
    wide = {"network": "site_mlp", "width": 60, "depth": 2, "members": 1, "architecture__pairwise": False}
    model = neurise.NeurISE().set_params(**wide)
    model.fit(data.train, data.labels, max_seconds=300, seed=0).save(folder / "neurise")


EXACT = f"{ROWS:,} rows drawn from the exact law"
MODELS = {
    "glass": Made(
        "a 4 × 4 spin glass: random couplings ±0.6 on a periodic lattice",
        "edwards_anderson:side=4,seed=3,J=0.6",
        EXACT,
        "mit",
        (4, 4),
        lambda: neurise.datasets.edwards_anderson(side=4, seed=3, J=0.6),
        _glass,
    ),
    "glass_5x5": Made(
        "a 5 × 5 spin glass: the paper's couplings on a periodic lattice",
        "edwards_anderson:side=5,seed=0",
        EXACT,
        "mit",
        (5, 5),
        lambda: neurise.datasets.edwards_anderson(side=5, seed=0),
        _defaults,
    ),
    "potts": Made(
        "a 3 × 3 Potts glass of four states",
        "potts:side=3,states=4,seed=1,J=1.0",
        EXACT,
        "mit",
        (3, 3),
        lambda: neurise.datasets.potts(side=3, states=4, seed=1, J=1.0),
        _potts,
    ),
    "ghz": Made(
        "measurement outcomes of 20 qubits in a GHZ state",
        "ghz:qubits=20",
        f"{ROWS:,} exact outcomes of tetrahedral measurements",
        "mit",
        (20,),
        lambda: neurise.datasets.ghz(20),
        _defaults,
    ),
    "digits": Made(
        "handwritten digits (MNIST), black and white",
        "mnist",
        "the training images of MNIST (LeCun, Cortes, Burges), CC BY-SA 3.0",
        "cc-by-sa-3.0",
        (28, 28),
        neurise.datasets.mnist,
        _digits,
        samples=500,
    ),
    "nltcs": Made(
        "16 questions on the daily living of elderly people (NLTCS)",
        "debd",
        "the training rows of nltcs in the Density Estimation Benchmark Datasets",
        "other",
        (16,),
        lambda: neurise.datasets.debd("nltcs"),
        _defaults,
    ),
}


def make(name: str, *, cards: bool) -> None:
    """Fit the models of a name, unless only cards are asked for, and write what is measured of the first of them."""
    made, folder = MODELS[name], references.FOLDER / name
    try:
        data = made.load()
    except OSError as error:
        print(f"{name}: left out, its rows were not found ({error})")
        return
    if not cards:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        made.fit(data, folder)
    elif not folder.is_dir():
        print(f"{name}: left out, it was not fitted yet")
        return
    shown = {"title": made.title, "data": made.data, "shape": list(made.shape), "licence": made.licence}
    if data.train is None:
        shown["rows"] = ROWS
    (folder / "card.json").write_text(json.dumps(shown, indent=2, ensure_ascii=False) + "\n")
    model = neurise.load(folder / "neurise")
    options: dict[str, Any] = {"samples": made.samples, "baselines": made.samples == 10_000}
    card = model.card(
        neurise.evaluate(model, data, **options),
        title=made.title[0].upper() + made.title[1:],
        data=made.about,
        licence=made.licence,
        source="path/to/this/folder",
    )
    (folder / "neurise" / "README.md").write_text(str(card))
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"{name}: {size / 1e3:,.0f} kB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(MODELS)}; by default all")
    parser.add_argument("--cards", action="store_true", help="measure the models that are there; fit nothing")
    asked = parser.parse_args()
    unknown = sorted(set(asked.names) - set(MODELS))
    if unknown:
        parser.error(f"there is no {unknown[0]!r}; there are: {', '.join(MODELS)}")
    torch.set_num_threads(1)
    for name in asked.names or MODELS:
        make(name, cards=asked.cards)


if __name__ == "__main__":
    main()
