"""Fit the small models that are shipped with ``neurise play``, and write them to its folder.

    python benchmarks/reference_models.py                # all of them: about six minutes on one core
    python benchmarks/reference_models.py glass potts    # some of them

``glass`` and ``potts`` are fitted to rows drawn from their exact laws; ``digits`` to the training images of MNIST, which are
looked for as ``neurise.datasets.mnist`` does. Each folder holds models of the same rows and a ``card.json`` that says what
they were fitted to.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import torch

import neurise
from neurise.player import references

ROWS = 20_000


def glass(folder: Path) -> dict[str, Any]:
    data = neurise.datasets.edwards_anderson(side=4, seed=3, J=0.6)
    rows = data.sample(ROWS, seed=0)
    small = {"network": "site_mlp", "width": 48, "depth": 2, "members": 1, "order": None}
    neurise.NeurISE(**small).fit(rows, max_seconds=40, seed=0).save(folder / "neurise")
    neurise.D3PM(width=48, depth=2).fit(rows, max_seconds=20, seed=0).save(folder / "d3pm")
    neurise.Pairwise().fit(rows, max_seconds=20, seed=0).save(folder / "pairwise")
    neurise.Independent().fit(rows).save(folder / "independent")
    told = "a 4 × 4 spin glass: random couplings ±0.6 on a periodic lattice"
    return {"title": told, "data": "edwards_anderson:side=4,seed=3,J=0.6", "shape": [4, 4]}


def potts(folder: Path) -> dict[str, Any]:
    data = neurise.datasets.potts(side=3, states=4, seed=1, J=1.0)
    rows = data.sample(ROWS, seed=0)
    small = {"network": "site_mlp", "width": 48, "depth": 2, "members": 1}
    neurise.NeurISE(**small).fit(rows, max_seconds=40, seed=0).save(folder / "neurise")
    neurise.D3PM(width=48, depth=2).fit(rows, max_seconds=20, seed=0).save(folder / "d3pm")
    return {
        "title": "a 3 × 3 Potts glass of four states",
        "data": "potts:side=3,states=4,seed=1,J=1.0",
        "shape": [3, 3],
    }


def digits(folder: Path) -> dict[str, Any]:
    data = neurise.datasets.mnist()
    wide = {"network": "site_mlp", "width": 60, "depth": 2, "members": 1, "architecture__pairwise": False}
    model = neurise.NeurISE().set_params(**wide)
    model.fit(data.train, data.labels, max_seconds=300, seed=0).save(folder / "neurise")
    return {"title": "handwritten digits (MNIST), black and white", "data": "mnist", "shape": [28, 28]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["glass", "potts", "digits"])
    torch.set_num_threads(1)
    for name in parser.parse_args().names:
        folder = references.FOLDER / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        card = {"glass": glass, "potts": potts, "digits": digits}[name](folder)
        (folder / "card.json").write_text(json.dumps({**card, "rows": ROWS}, indent=2, ensure_ascii=False) + "\n")
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        print(f"{name}: {size / 1e3:,.0f} kB")


if __name__ == "__main__":
    main()
