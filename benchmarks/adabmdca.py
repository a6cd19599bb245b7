"""How good is adabmDCA, a Boltzmann machine for protein alignments, on the task of ``quality_tasks/protein.py``?

    python benchmarks/adabmdca.py --device cuda --seeds 0 1 2 --json benchmarks/measured/protein_adabmdca.json
    python benchmarks/adabmdca.py --device cuda --seeds 0 1 2 --no-reweighting
    python benchmarks/adabmdca.py --device cuda --seeds 0 1 2 --target 0.96 --seconds 300
    python benchmarks/adabmdca.py --device cpu --chains 200 --draws 500 --sweeps 20 --seconds 20  # a trial

Needs ``pip install adabmDCA`` and the folder of data that ``NEURISE_DATA`` names. The split, the number of samples and the
score are those of ``python benchmarks/quality.py protein``: Pearson's correlation of connected two-site correlations of
samples with those of held-back sequences, and this over what the training sequences reach.

The model is fully connected (bmDCA) and trained with the documented defaults: learning rate 0.01, 10 Metropolis sweeps of
10,000 persistent chains per gradient update, pseudocount 1 / (effective rows). Repeated sequences are removed, and every
sequence has the weight 1 / (number of sequences that share at least 80 % of its sites). The score has no such weights;
``--no-reweighting`` trains on all rows with weight one, repeated rows included.

Training ends when the Pearson correlation of the chains with the weighted training sequences reaches ``--target`` (0.95,
the default; the documentation of adabmDCA calls 0.9 coarse), after 50,000 updates, or after ``--seconds``, and the model of
that moment is judged. ``seconds`` is for weights and training, without samples.

Samples come from fresh random chains after ``--sweeps`` Metropolis sweeps (1000, the default of adabmDCA's Python
interface). ``pearson_chains`` is the score of the persistent chains of the training: a value far from ``pearson`` means that
chains mix slowly.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from quality import show
from quality_tasks._fit import Row
from quality_tasks.protein import DRAWS, agreement, parts

from neurise.experiments._code import machine, script_version
from neurise.files import write_text

UPDATES_PER_CALL = 50
"""How many gradient updates pass between two looks at the clock."""


def adabmdca() -> ModuleType:
    """Import adabmDCA."""
    try:
        import adabmDCA
    except ImportError as error:
        raise ImportError("This benchmark needs adabmDCA: pip install adabmDCA") from error
    return adabmDCA


def trained(rows: np.ndarray, settings: Any, arguments: argparse.Namespace) -> tuple[Any, torch.Tensor, Row]:
    """Train a bmDCA model; return it, its persistent chains (one-hot), and how it was trained."""
    from adabmDCA.sampling import prepare_training_sampler
    from adabmDCA.training import train_graph

    ada, device, began = adabmdca(), torch.device(arguments.device), time.perf_counter()
    data = ada.DatasetDCA.from_alignment(
        ada.Alignment(tuple(map(str, range(len(rows)))), tuple(map("".join, rows))),
        load_config=ada.AlignmentLoadConfig(settings.alphabet, remove_duplicates=not settings.no_reweighting),
        clustering_th=settings.clustering_seqid,
        no_reweighting=settings.no_reweighting,
        device=device,
    )
    effective = data.get_effective_size()
    single, pairs = data.get_frequencies(pseudocount=settings.resolve_pseudocount(effective))
    params, sampler = ada.init_parameters(fi=single), prepare_training_sampler(settings.sampler, device)
    chains, log_weights = ada.init_chains(settings.n_chains, *single.shape, device=device, fi=single), None
    mask = torch.ones_like(pairs, dtype=torch.bool)
    mask.diagonal(dim1=0, dim2=2).fill_(False)  # no site is coupled to itself
    options = {"nsweeps": settings.n_sweeps, "lr": settings.learning_rate, "l2_reg": settings.l2_regularization}
    options |= {"max_epochs": UPDATES_PER_CALL, "target_pearson": settings.target_pearson}
    updates, reached, seconds = 0, -math.inf, 0.0
    while reached < settings.target_pearson and updates < settings.max_epochs:
        chains, params, log_weights, history = train_graph(
            sampler, chains, mask, single, pairs, params, log_weights=log_weights, **options
        )
        updates, reached = updates + len(history["Pearson"]), history["Pearson"][-1]
        seconds = time.perf_counter() - began
        if updates % 500 == 0:
            print(f"{updates} updates, Pearson {reached:.4f}, {seconds:.1f} s", flush=True)
        if arguments.seconds and seconds > arguments.seconds:
            break
    told = {"seconds": seconds, "updates": updates, "reached": reached, "rows": len(data), "effective_rows": effective}
    return ada.DCAModel(params, alphabet=settings.alphabet), chains, told


def judged(seed: int, settings: Any, arguments: argparse.Namespace) -> Row:
    """Train on the rows of a seed, and compare samples with the rows held back."""
    train, test, symbols = parts(seed)
    train = train[: arguments.rows]
    torch.manual_seed(seed)
    model, chains, told = trained(train, settings, arguments)
    drawn = model.sample(arguments.draws, n_sweeps=arguments.sweeps, sampler=settings.sampler, seed=seed)
    reached = agreement(np.array([list(sequence) for sequence in drawn]), test, symbols)
    persistent = np.array(list(model.tokens))[chains.argmax(-1).cpu().numpy()]
    return {
        "seed": seed,
        "pearson": reached,
        "over_training": reached / agreement(train, test, symbols),
        "pearson_chains": agreement(persistent, test, symbols),
        **told,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--target", type=float, default=0.95, help="Pearson correlation at which training ends")
    parser.add_argument("--seconds", type=float, help="end training after this time")
    parser.add_argument("--no-reweighting", action="store_true", help="give every training row weight one")
    parser.add_argument("--learning-rate", type=float, default=0.01)
    parser.add_argument("--chains", type=int, default=10_000, help="persistent chains of the training")
    parser.add_argument("--rows", type=int, help="train on the first rows only")
    parser.add_argument("--draws", type=int, default=DRAWS, help="samples that are judged")
    parser.add_argument("--sweeps", type=int, default=1000, help="Metropolis sweeps of the samples' chains")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", metavar="FILE", help="also write every single run")
    arguments = parser.parse_args()
    common = {"no_reweighting": arguments.no_reweighting, "learning_rate": arguments.learning_rate}
    settings = adabmdca().TrainingConfig(target_pearson=arguments.target, n_chains=arguments.chains, **common)
    names = ["model_type", "learning_rate", "n_sweeps", "sampler", "n_chains", "target_pearson", "max_epochs", "dtype"]
    made: dict[str, Any] = {
        "command": " ".join(["python benchmarks/adabmdca.py", *sys.argv[1:]]),
        "code": script_version(__file__),
        "machine": machine(arguments.device),
        "adabmDCA": adabmdca().__version__,
        "settings": {name: getattr(settings, name) for name in [*names, "no_reweighting", "clustering_seqid"]},
        "rows": list[Row](),
    }
    print(json.dumps({key: value for key, value in made.items() if key != "rows"}))
    for seed in arguments.seeds:
        made["rows"].append(judged(seed, settings, arguments))
        print(json.dumps(made["rows"][-1]), flush=True)
        if arguments.json:  # what is measured is kept, whatever comes after it
            write_text(Path(arguments.json), json.dumps(made, indent=1))
    show(made["rows"], None)


if __name__ == "__main__":
    main()
