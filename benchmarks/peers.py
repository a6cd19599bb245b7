"""All methods on an equal footing. Every figure of the docs that compares methods comes from here.

    python benchmarks/peers.py large --device cuda --workers 15
    python benchmarks/peers.py large --device cuda --workers 15 --sizes 10000 --seconds 20
    python benchmarks/peers.py small --device cuda --workers 15 --seeds 0 1 2 \\
        --depth 2 --batch 8192 --learning-rate 4e-3 --steps 4000

``large``: the 5×5 Edwards–Anderson `paper` instance, N = 10² … 10⁵. Every method gets the same rows, the same number of
examples (steps × batch; or, with --seconds, the same time), and a network of the same depth whose parameters are
matched to within a tenth. Scored by the total variation of 10⁶ draws, with its floor, by that of the exact law where the
method has one, and by the mean error of the pair correlations.

``small``: a 3×3 Edwards–Anderson and a 2×2 Potts model of three states, 10⁵ rows: the total variation of each method's
exact law against the sampling floor of 10⁵ rows.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import platform
import statistics
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from typing import Any

import numpy as np
import torch

import neurise
from neurise.comparison import count_parameters, match_width
from neurise.laws import distance
from neurise.models._trained import TrainedModel
from neurise.space import Space

FOREVER = 10**6
"""Evaluations without improvement that are borne: all of the budget is used, and the best weights are kept."""


def methods(depth: int) -> dict[str, neurise.Model]:
    """Each method at its best; published forms that are not are marked."""
    network: dict[str, Any] = {"depth": depth, "patience": FOREVER}
    soft: dict[str, Any] = {**network, "keep_prob": 0.2, "cycles": 3}
    return {
        "NeurISE, screening": neurise.NeurISE(**network),
        "NeurISE, cross-entropy": neurise.NeurISE(loss="cross_entropy", **network),
        "NeurISE, soft noise": neurise.NeurISE(loss="cross_entropy", **soft),
        "GGM, Bayes": neurise.GGM(**soft),
        "GGM, heat bath": neurise.GGM(reverse="heat_bath", **soft),
        "D3PM, absorbing": neurise.D3PM(noise="absorbing", timesteps=500, **network),
        "D3PM, uniform": neurise.D3PM(noise="uniform", timesteps=500, **network),
        "D3PM, uniform, published posterior": neurise.D3PM(
            noise="uniform", posterior="published", timesteps=500, **network
        ),
        "SEDD, absorbing": neurise.SEDD(noise="absorbing", **network),
        "SEDD, uniform": neurise.SEDD(noise="uniform", **network),
        "DFM, mask": neurise.DFM(source="mask", **network),
        "DFM, uniform": neurise.DFM(source="uniform", **network),
        "pairwise": neurise.Pairwise(),
        "independent": neurise.Independent(),
        "memorize": neurise.Memorize(),
    }


def on_equal_footing(model: neurise.Model, arguments: argparse.Namespace, space: Space) -> neurise.Model:
    """Give a model of a network the batch and the number of parameters that the others have."""
    if not isinstance(model, TrainedModel) or "width" not in model.parameters():
        return model
    target = count_parameters(neurise.NeurISE(width=arguments.width, depth=arguments.depth), space)
    matched = match_width(model, target, space)
    return matched.set_params(batch_size=arguments.batch, learning_rate=arguments.learning_rate)


def fit(model: neurise.Model, rows: np.ndarray, seed: int, arguments: argparse.Namespace) -> tuple[neurise.Model, Any]:
    """Train within the budget; return what it took."""
    limit = {"max_seconds": arguments.seconds} if arguments.seconds else {"max_steps": arguments.steps}
    began = time.perf_counter()
    fitted = model.fit(rows, seed=seed, device=arguments.device, verbose=False, **limit)
    seconds = time.perf_counter() - began
    steps = int(fitted.history_[-1]["step"]) if fitted.history_ else 0
    batch = getattr(fitted, "batch_size", 0)
    return fitted, {"train_seconds": seconds, "examples": steps * batch, "parameters": fitted.num_parameters_}


def large_cell(cell: tuple[str, int, int], arguments: argparse.Namespace) -> dict[str, Any]:
    name, size, seed = cell
    torch.set_num_threads(2 if arguments.workers == 1 else 1)
    warnings.simplefilter("ignore")  # of a pairwise chain that says how well it mixed
    data = neurise.datasets.edwards_anderson(side=5, seed=arguments.instance)
    rows = data.sample(size, seed=1000 + arguments.instance)
    model = on_equal_footing(methods(arguments.depth)[name], arguments, data.space)
    fitted, cost = fit(model, rows, seed, arguments)
    began = time.perf_counter()
    drawn = fitted.sample(arguments.draws, seed=seed)
    sampling = time.perf_counter() - began
    sampled = neurise.metrics.total_variation(drawn, data.pmf, alphabet=[-1, 1])
    fresh = data.sample(min(arguments.draws, 10**5), seed=5)
    result = {
        "method": name,
        "rows": size,
        "seed": seed,
        "tv": float(sampled),
        "floor": sampled.floor,
        "exact_tv": None,
        "correlations": float(neurise.metrics.cross_correlation(drawn, fresh).mean_abs),
        "sample_seconds": sampling,
        **cost,
    }
    # The law of a soft chain takes a pass over 2^25 states for every step.
    if arguments.soft_laws or not getattr(fitted, "keep_prob", 0):
        with contextlib.suppress(NotImplementedError):
            pmf = torch.from_numpy(data.pmf).to(arguments.device)
            result["exact_tv"] = distance(neurise.exact.law(fitted).to(pmf.device), pmf)
    return result


def small_cell(cell: tuple[str, int, int], arguments: argparse.Namespace) -> dict[str, Any]:
    name, which, seed = cell
    torch.set_num_threads(1)
    data = (
        neurise.datasets.edwards_anderson(side=3, seed=0),
        neurise.datasets.potts(side=2, states=3, seed=0),
    )[which]
    rows = data.sample(10**5, seed=seed)
    floor = neurise.metrics.total_variation(rows, data.pmf, alphabet=data.symbols.tolist()).floor
    model = on_equal_footing(methods(arguments.depth)[name], arguments, data.space)
    fitted, cost = fit(model, rows, seed, arguments)
    tv = distance(neurise.exact.law(fitted).cpu(), torch.from_numpy(data.pmf))
    return {"method": name, "data": data.name, "seed": seed, "tv": tv, "floor": floor, "ratio": tv / floor, **cost}


def run(task: Any, cells: list[Any], arguments: argparse.Namespace) -> list[dict[str, Any]]:
    if arguments.workers == 1:
        return [_said(task(cell, arguments)) for cell in cells]
    with ProcessPoolExecutor(arguments.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        tasks = {pool.submit(task, cell, arguments): cell for cell in cells}
        results = {tasks[done]: _said(done.result()) for done in as_completed(tasks)}
    return [results[cell] for cell in cells]


def _said(result: dict[str, Any]) -> dict[str, Any]:
    """Show a result as soon as it is there: a run that is cut short has still said something."""
    print(json.dumps({key: round(v, 5) if isinstance(v, float) else v for key, v in result.items()}), flush=True)
    return result


def show_large(results: list[dict[str, Any]]) -> None:
    for size in sorted({row["rows"] for row in results}):
        here = [row for row in results if row["rows"] == size]
        floor = here[0]["floor"]
        print(f"\nN = {size:,}; floor of the sampled TV {floor:.4f}\n")
        print("| method | sampled TV | exact TV | mean |ΔC| | parameters | examples | training s | sampling s |")
        print("|---|---|---|---|---|---|---|---|")
        for name in dict.fromkeys(row["method"] for row in here):
            own = [row for row in here if row["method"] == name]
            cells = [
                _mean(own, key, form) for key, form in (("tv", ".4f"), ("exact_tv", ".4f"), ("correlations", ".4f"))
            ]
            cells += [f"{own[0]['parameters']:,}", f"{statistics.mean(r['examples'] for r in own):.2g}"]
            cells += [_mean(own, "train_seconds", ".1f"), _mean(own, "sample_seconds", ".1f")]
            print(f"| {name} | " + " | ".join(cells) + " |")


def show_small(results: list[dict[str, Any]]) -> None:
    """Show the exact TV over its floor, which is what 10⁵ memorised rows score on average."""
    names = list(dict.fromkeys(row["data"] for row in results))
    floors = {name: next(row["floor"] for row in results if row["data"] == name) for name in names}
    print("\n| method | " + " | ".join(f"{name}, floor {floors[name]:.5f}" for name in names) + " |")
    print("|---|" + "---|" * len(names))
    for method in dict.fromkeys(row["method"] for row in results):
        own = [row for row in results if row["method"] == method]
        cells = [_mean([row for row in own if row["data"] == name], "ratio", ".2f") for name in names]
        print(f"| {method} | " + " | ".join(cells) + " |")


def _mean(rows: list[dict[str, Any]], key: str, form: str) -> str:
    values = [row[key] for row in rows if row[key] is not None]
    if not values:
        return "–"
    spread = f" ± {statistics.stdev(values):{form}}" if len(values) > 1 else ""
    return f"{statistics.mean(values):{form}}{spread}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["large", "small"])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 10_000, 100_000])
    parser.add_argument("--instance", type=int, default=0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--methods", nargs="+", help="parts of the names of the methods to run; all without it")
    parser.add_argument("--width", type=int, default=256, help="of NeurISE; the others get as many parameters")
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--seconds", type=float, help="a budget of time instead of steps")
    parser.add_argument("--draws", type=int, default=10**6)
    parser.add_argument("--soft-laws", action="store_true", help="exact laws of soft chains too")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", metavar="FILE", help="also write every single run")
    arguments = parser.parse_args()
    machine = torch.cuda.get_device_name() if arguments.device.startswith("cuda") else platform.machine()
    print(f"neurise {neurise.__version__}, torch {torch.__version__}, {machine}, {arguments.workers} processes")
    names = [
        name
        for name in methods(arguments.depth)
        if not arguments.methods or any(part.lower() in name.lower() for part in arguments.methods)
    ]
    settings = arguments.sizes if arguments.what == "large" else [0, 1]
    cells = list(product(names, settings, arguments.seeds))
    task, show = (large_cell, show_large) if arguments.what == "large" else (small_cell, show_small)
    results = run(task, cells, arguments)
    show(results)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
