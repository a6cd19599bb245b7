"""How good are the models? Every figure of the docs about quality comes from here.

    python benchmarks/quality.py ising --device cuda
    python benchmarks/quality.py mnist --device cuda --seconds 40 --set width=512 --set depth=3 --set 'loss="cross_entropy"'
    python benchmarks/quality.py dwave --device cuda --graph --set calibrate=true --set corrector__clean=0.25 \\
        --set corrector__sweeps=20
    python benchmarks/quality.py debd --device cuda --names nltcs plants
    python benchmarks/quality.py ghz --device cuda

Every line trains one constructor call, `NeurISE(**settings)`, for each seed; ``--set NAME=VALUE`` (JSON) changes the settings and
``--steps`` or ``--seconds`` the length of the training. Nothing is chosen on test rows.

``ising``: exact total variation on 5×5 Edwards–Anderson `paper` instances, seeds 0 … 4, N = 10² … 10⁵, over that of memorising the
same rows: the ratio of the means over the instances. ``mnist``: digits by class, 1000 a class against all test digits, and the
test likelihood. ``dwave``: Advantage reads, 2084 qubits, split at random. ``debd``: test likelihoods. ``ghz``: twenty qubits.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch

import neurise
from neurise.laws import distance

Row = dict[str, Any]


def ising(arguments: argparse.Namespace) -> Iterator[Row]:
    cells = [(size, instance) for size in arguments.sizes for instance in arguments.instances]
    sets = {seed: neurise.datasets.edwards_anderson(side=5, seed=seed) for seed in arguments.instances}
    rows = [sets[instance].sample(size, seed=1000 + instance) for size, instance in cells]
    models = [neurise.NeurISE().set_params(**arguments.settings) for _ in cells]
    began = time.perf_counter()
    neurise.fit_many(models, rows, seeds=[seed for _, seed in cells], verbose=False, **arguments.budget)
    seconds = time.perf_counter() - began
    for (size, instance), model, own in zip(cells, models, rows, strict=True):
        pmf = torch.from_numpy(sets[instance].pmf).to(arguments.device)
        memorised = neurise.metrics.total_variation(own, sets[instance].pmf, alphabet=[-1, 1])
        tv = distance(neurise.exact.law(model).to(pmf.device), pmf)
        yield {
            "rows": size,
            "seed": instance,
            "tv": tv,
            "memorising": float(memorised),
            "seconds": seconds / len(cells),
        }


def mnist(arguments: argparse.Namespace) -> Iterator[Row]:
    data = neurise.datasets.mnist()
    for seed in arguments.seeds:
        model, seconds = fitted(arguments, seed, data.train, data.labels)
        nll = -model.log_prob(data.test, data.test_labels).mean()
        scores = []
        for digit in range(10):
            drawn = model.sample(1000, digit, seed=seed)
            real = data.test[data.test_labels == digit]
            discrepancy = neurise.metrics.mmd(drawn, real, alphabet=[0, 1])
            scores.append((discrepancy, neurise.metrics.cross_correlation(drawn, real, alphabet=[0, 1]).mean_abs))
        mmd, correlations = np.mean(np.array(scores, dtype=float), axis=0)
        yield {"seed": seed, "mmd": mmd, "correlations": correlations, "nll": nll, "seconds": seconds}


def dwave(arguments: argparse.Namespace) -> Iterator[Row]:
    for seed in arguments.seeds:
        data = neurise.datasets.dwave(arguments.source, test_fraction=0.25, seed=seed)
        graph = {"graph": data.edges} if arguments.graph else {}
        model, seconds = fitted(arguments, seed, data.train, weights=data.weights, settings=graph)
        drawn = model.sample(arguments.draws, seed=seed)
        couplers = neurise.metrics.cross_correlation(drawn, data.test, couplers=data.edges).mean_abs
        energy = neurise.metrics.energy(drawn, data.test, data.energy)
        mmd = neurise.metrics.mmd(drawn, data.test)
        off = float(energy.mean) - float(energy.reference_mean)
        yield {
            "seed": seed,
            "couplers": float(couplers),
            "energy": float(energy.mean),
            "off_by": abs(off),
            "mmd": float(mmd),
            "mmd_error": mmd.error,
            "seconds": seconds,
        }


def debd(arguments: argparse.Namespace) -> Iterator[Row]:
    for name in arguments.names:
        data = neurise.datasets.debd(name)
        for seed in arguments.seeds:
            model, seconds = fitted(arguments, seed, data.train, validation=data.validation, alphabet=[0, 1])
            nll = -model.log_prob(data.test).mean()
            yield {"name": name, "seed": seed, "nll": nll, "parameters": model.num_parameters_, "seconds": seconds}


def ghz(arguments: argparse.Namespace) -> Iterator[Row]:
    data = neurise.datasets.ghz(20)
    for seed in arguments.seeds:
        model, seconds = fitted(arguments, seed, data.sample(10**5, seed=seed), alphabet=data.symbols.tolist())
        drawn, fresh, other = (
            model.sample(10**5, seed=seed),
            *(data.sample(10**5, seed=100 + 2 * seed + k) for k in (0, 1)),
        )
        error = neurise.metrics.cross_correlation(drawn, fresh, other=other, alphabet=data.symbols.tolist()).mean_abs
        fidelity = neurise.metrics.fidelity(model, fresh, data.log_weight).classical
        yield {
            "seed": seed,
            "correlations": float(error),
            "over_floor": float(error) / error.floor,
            "fidelity": float(fidelity),
            "seconds": seconds,
        }


TASKS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    task.__name__: task for task in (ising, mnist, dwave, debd, ghz)
}
GROUPS = {"ising": "rows", "debd": "name"}
"""What the lines of the table are, where there is more than one."""


def fitted(
    arguments: argparse.Namespace,
    seed: int,
    X: np.ndarray,
    y: Any = None,
    alphabet: Any = None,
    settings: Mapping[str, Any] | None = None,
    **options: Any,
) -> tuple[neurise.NeurISE, float]:
    began = time.perf_counter()
    model = neurise.NeurISE().set_params(**{"alphabet": alphabet, **(settings or {}), **arguments.settings})
    model.fit(X, y, seed=seed, verbose=False, **arguments.budget, **options)
    return model, time.perf_counter() - began


def show(rows: list[Row], group: str | None) -> None:
    names = [name for name in rows[0] if name not in (group, "seed")]
    print("| " + " | ".join([group or "task", *names]) + " |\n|" + "---|" * (len(names) + 1))
    for value in dict.fromkeys(row.get(group) for row in rows):
        here = [row for row in rows if row.get(group) == value]
        cells = []
        for name in names:
            numbers = np.array([row[name] for row in here], dtype=float)
            spread = f" ± {numbers.std(ddof=1):.2g}" if len(numbers) > 1 else ""
            cells.append(f"{numbers.mean():.4g}{spread}")
        print(f"| {value} | " + " | ".join(cells) + " |")
        if "memorising" in names:
            print(f"    over memorising: {sum(r['tv'] for r in here) / sum(r['memorising'] for r in here):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=list(TASKS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--instances", type=int, nargs="+", default=[0, 1, 2, 3, 4], help="of ising")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 10_000, 100_000], help="of ising")
    parser.add_argument("--names", nargs="+", default=["nltcs", "plants", "jester", "accidents", "dna", "mushrooms"])
    parser.add_argument("--source", default="advantage41_q2084", help="of dwave")
    parser.add_argument("--graph", action="store_true", help="of dwave: tell the model the couplers")
    parser.add_argument("--draws", type=int, default=5000, help="of dwave")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the model, as JSON"
    )
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", metavar="FILE", help="also write every single run")
    arguments = parser.parse_args()
    arguments.settings = {name: json.loads(value) for name, _, value in (text.partition("=") for text in arguments.set)}
    arguments.budget = {"device": arguments.device, "max_steps": arguments.steps, "max_seconds": arguments.seconds}
    machine = torch.cuda.get_device_name() if arguments.device.startswith("cuda") else platform.machine()
    print(
        f"neurise {neurise.__version__}, torch {torch.__version__}, {machine}; {neurise.NeurISE().set_params(**arguments.settings)}"
    )
    rows = []
    for row in TASKS[arguments.what](arguments):
        rows.append(row)
        print(json.dumps(row), flush=True)
        if arguments.json:  # what is measured is kept, whatever comes after it
            with open(arguments.json, "w", encoding="utf-8") as file:
                json.dump(rows, file, indent=1)
    show(rows, GROUPS.get(arguments.what))


if __name__ == "__main__":
    main()
