"""All methods on an equal footing. Every figure of the docs that compares methods comes from here.

    python benchmarks/peers.py large --device cuda
    python benchmarks/peers.py large --device cuda --sizes 10000 --seconds 5
    python benchmarks/peers.py small --device cuda --seeds 0 1 2 \\
        --depth 2 --batch 8192 --learning-rate 4e-3 --steps 6000 --chain 1024

``large``: the 5×5 Edwards–Anderson `paper` instance, N = 10² … 10⁵. Every method gets the same rows, the same number of
examples (steps × batch; or, with --seconds, the same time), and a network of the same depth whose parameters are
matched to within a tenth. Scored by the total variation of 10⁶ draws, with its floor, by that of the exact law where the
method has one, and by the mean error of the pair correlations. The models of a method are trained as one batched
computation; the time of a step is measured for one of them alone.

``small``: a 3×3 Edwards–Anderson and a 2×2 Potts model of three states, 10⁵ rows: the total variation of each method's
exact law, and of 10⁵ draws, against the sampling floor of 10⁵ rows.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import platform
import statistics
import time
import warnings
from itertools import product
from typing import Any

import numpy as np
import torch

import neurise
from neurise.comparison import count_parameters, match_width
from neurise.laws import distance
from neurise.modeling.trained import TrainedModel
from neurise.space import Space

FOREVER = 10**6
"""Evaluations without improvement that are borne: all of the budget is used, and the best weights are kept."""


ALONE: dict[str, Any] = {"members": 1, "architecture__pairwise": False}


def methods(depth: int, steps: int) -> dict[str, neurise.Model]:
    """Each method at its best; published forms that are not are marked."""
    soft: dict[str, Any] = {**ALONE, "keep_prob": 0.2, "cycles": 3}
    trained = {
        "NeurISE": neurise.NeurISE().set_params(members=4, architecture__pairwise=True),
        "NeurISE, one network": neurise.NeurISE().set_params(**ALONE),
        "NeurISE, the paper's form": neurise.NeurISE.paper(),
        "NeurISE, the paper's form, cross-entropy": neurise.NeurISE.paper(loss="cross_entropy"),
        "NeurISE, soft noise": neurise.NeurISE().set_params(**soft),
        "GGM, Bayes": neurise.GGM().set_params(**soft),
        "GGM, heat bath": neurise.GGM(reverse="heat_bath").set_params(**soft),
        "D3PM, absorbing": neurise.D3PM(noise="absorbing", timesteps=steps),
        "D3PM, uniform": neurise.D3PM(noise="uniform", timesteps=steps),
        "D3PM, uniform, published posterior": neurise.D3PM(noise="uniform", posterior="published", timesteps=steps),
        "SEDD, absorbing": neurise.SEDD(noise="absorbing", sampling_steps=steps),
        "SEDD, uniform": neurise.SEDD(noise="uniform", sampling_steps=steps),
        "DFM, mask": neurise.DFM(source="mask", sampling_steps=steps),
        "DFM, uniform": neurise.DFM(source="uniform", sampling_steps=steps),
        "MD4": neurise.MD4(sampling_steps=steps),
        "UDLM": neurise.UDLM(sampling_steps=steps),
        "DDPD": neurise.DDPD(sampling_steps=steps),
    }
    for model in trained.values():
        model.set_params(depth=depth, training__patience=FOREVER)
    counted = {"pairwise": neurise.Pairwise(), "independent": neurise.Independent(), "memorize": neurise.Memorize()}
    return {**trained, **counted}


def on_equal_footing(model: neurise.Model, arguments: argparse.Namespace, space: Space) -> neurise.Model:
    """Give a model of a network the batch and the number of parameters that the others have."""
    if not isinstance(model, TrainedModel) or "width" not in model.parameters():
        return model
    target = count_parameters(neurise.NeurISE.paper(width=arguments.width, depth=arguments.depth), space)
    matched = match_width(model, target, space)
    return matched.set_params(training__batch_size=arguments.batch, training__learning_rate=arguments.learning_rate)


def fit(models: list[neurise.Model], rows: list[np.ndarray], seeds: list[int], arguments: argparse.Namespace) -> float:
    """Train within the budget, and return how long it took.

    With a budget of examples the models of a method are trained as one; with a budget of time one after another.
    """
    began = time.perf_counter()
    common: dict[str, Any] = {"device": arguments.device, "verbose": False}
    if arguments.seconds:
        for model, own, seed in zip(models, rows, seeds, strict=True):
            model.fit(own, seed=seed, max_seconds=arguments.seconds, **common)
    else:
        neurise.fit_many(models, rows, seeds=seeds, max_steps=arguments.steps, **common)
    return time.perf_counter() - began


def cost(fitted: neurise.Model) -> dict[str, Any]:
    steps = int(fitted.history_[-1]["step"]) if fitted.history_ else 0
    batch = fitted.training.batch_size if isinstance(fitted, TrainedModel) else 0
    return {"examples": steps * batch, "parameters": fitted.num_parameters_}


def alone(model: neurise.Model, rows: np.ndarray, arguments: argparse.Namespace) -> float | None:
    """Measure a step of training by itself, in milliseconds; None for a method without such."""
    if not isinstance(model, TrainedModel) or "width" not in model.parameters():
        return None
    times = []
    for steps in (50, 50, 350):  # the first one compiles and takes memory
        began = time.perf_counter()
        type(model)(**model.get_params()).fit(rows, device=arguments.device, max_steps=steps, verbose=False)
        times.append(time.perf_counter() - began)
    return (times[2] - times[1]) / 300 * 1e3


def large(name: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    warnings.simplefilter("ignore")  # of a pairwise chain that says how well it mixed
    data = neurise.datasets.edwards_anderson(side=5, seed=arguments.instance)
    pmf = torch.from_numpy(data.pmf).to(arguments.device)
    cells = list(product(arguments.sizes, arguments.seeds))
    rows = [data.sample(size, seed=1000 + arguments.instance) for size, _ in cells]
    models = [on_equal_footing(methods(arguments.depth, arguments.chain)[name], arguments, data.space) for _ in cells]
    step = alone(models[0], rows[-1], arguments)
    together = fit(models, rows, [seed for _, seed in cells], arguments)
    fresh = data.sample(min(arguments.draws, 10**5), seed=5)
    results = []
    for (size, seed), fitted in zip(cells, models, strict=True):
        began = time.perf_counter()
        drawn = fitted.sample(arguments.draws, seed=seed)
        sampling = time.perf_counter() - began
        sampled = neurise.metrics.total_variation(drawn, data.pmf, alphabet=[-1, 1])
        result = {
            "method": name,
            "rows": size,
            "seed": seed,
            "tv": float(sampled),
            "floor": sampled.floor,
            "exact_tv": None,
            "correlations": float(neurise.metrics.cross_correlation(drawn, fresh).mean_abs),
            "step_ms": step,
            "group_seconds": together,
            "sample_seconds": sampling,
            **cost(fitted),
        }
        # The law of a soft chain takes a pass over 2^25 states for every step.
        if not arguments.no_laws and (arguments.soft_laws or not getattr(fitted, "keep_prob", 0)):
            with contextlib.suppress(NotImplementedError):
                result["exact_tv"] = distance(neurise.exact.law(fitted).to(pmf.device), pmf)
        results.append(_said(result))
    return results


SMALL = {
    "ising": lambda: neurise.datasets.edwards_anderson(side=3, seed=0),
    "potts": lambda: neurise.datasets.potts(side=2, states=3, seed=0),
}


def small(name: str, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    results = []
    for kind in arguments.data:
        data = SMALL[kind]()
        rows = [data.sample(10**5, seed=seed) for seed in arguments.seeds]
        models = [
            on_equal_footing(methods(arguments.depth, arguments.chain)[name], arguments, data.space) for _ in rows
        ]
        fit(models, rows, arguments.seeds, arguments)
        symbols = data.symbols.tolist()
        for seed, own, fitted in zip(arguments.seeds, rows, models, strict=True):
            memorised = neurise.metrics.total_variation(own, data.pmf, alphabet=symbols)
            drawn = neurise.metrics.total_variation(fitted.sample(10**5, seed=seed), data.pmf, alphabet=symbols)
            law = None if arguments.no_laws else neurise.exact.law(fitted).cpu()
            tv = None if law is None else distance(law, torch.from_numpy(data.pmf))
            result = {"method": name, "data": data.name, "seed": seed, "tv": tv, "floor": memorised.floor}
            ratios = {"ratio": None if tv is None else tv / memorised.floor, "sampled": float(drawn) / memorised.floor}
            ratios["memorising"] = float(memorised) / memorised.floor
            results.append(_said({**result, **ratios, **cost(fitted)}))
    return results


def _said(result: dict[str, Any]) -> dict[str, Any]:
    """Show a result as soon as it is there: a run that is cut short has still said something."""
    print(json.dumps({key: round(v, 5) if isinstance(v, float) else v for key, v in result.items()}), flush=True)
    return result


def show_large(results: list[dict[str, Any]]) -> None:
    for size in sorted({row["rows"] for row in results}):
        here = [row for row in results if row["rows"] == size]
        floor = here[0]["floor"]
        print(f"\nN = {size:,}; floor of the sampled TV {floor:.4f}\n")
        print("| method | sampled TV | exact TV | mean |ΔC| | parameters | examples | ms a step | sampling s |")
        print("|---|---|---|---|---|---|---|---|")
        for name in dict.fromkeys(row["method"] for row in here):
            own = [row for row in here if row["method"] == name]
            cells = [
                _mean(own, key, form) for key, form in (("tv", ".4f"), ("exact_tv", ".4f"), ("correlations", ".4f"))
            ]
            cells += [f"{own[0]['parameters']:,}", f"{statistics.mean(r['examples'] for r in own):.2g}"]
            cells += [_mean(own, "step_ms", ".2f"), _mean(own, "sample_seconds", ".1f")]
            print(f"| {name} | " + " | ".join(cells) + " |")


def show_small(results: list[dict[str, Any]]) -> None:
    """Show TV over its floor, which is what 10⁵ memorised rows score on average: that of the law, and of 10⁵ draws."""
    names = list(dict.fromkeys(row["data"] for row in results))
    floors = {name: next(row["floor"] for row in results if row["data"] == name) for name in names}
    print("\n| method | " + " | ".join(f"{name}, floor {floors[name]:.5f} | of 10⁵ draws" for name in names) + " |")
    print("|---|" + "---|---|" * len(names))
    for method in dict.fromkeys(row["method"] for row in results):
        own = [row for row in results if row["method"] == method]
        here = [[row for row in own if row["data"] == name] for name in names]
        cells = [_mean(rows, key, ".2f") for rows in here for key in ("ratio", "sampled")]
        print(f"| {method} | " + " | ".join(cells) + " |")


def _mean(rows: list[dict[str, Any]], key: str, form: str) -> str:
    values = [row[key] for row in rows if row[key] is not None]
    if not values:
        return "–"
    spread = f" ± {statistics.stdev(values):{form}}" if len(values) > 1 else ""
    return f"{statistics.mean(values):{form}}{spread}"


def _has(name: str, parts: list[str]) -> bool:
    return any(part.lower() in name.lower() for part in parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["large", "small"])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 10_000, 100_000])
    parser.add_argument("--data", nargs="+", default=list(SMALL), choices=list(SMALL), help="of the small table")
    parser.add_argument("--instance", type=int, default=0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--methods", nargs="+", help="parts of the names of the methods to run; all without it")
    parser.add_argument("--skip", nargs="+", default=[], help="parts of the names of the methods to leave out")
    parser.add_argument("--width", type=int, default=256, help="of NeurISE; the others get as many parameters")
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument(
        "--chain", type=int, default=128, help="steps of the reverse chains that change all sites at once"
    )
    parser.add_argument("--seconds", type=float, help="a budget of time instead of steps")
    parser.add_argument("--draws", type=int, default=10**6)
    parser.add_argument("--soft-laws", action="store_true", help="exact laws of soft chains too")
    parser.add_argument("--no-laws", action="store_true", help="no exact laws, which take minutes on a CPU")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", metavar="FILE", help="also write every single run")
    arguments = parser.parse_args()
    machine = torch.cuda.get_device_name() if arguments.device.startswith("cuda") else platform.machine()
    print(f"neurise {neurise.__version__}, torch {torch.__version__}, {machine}")
    names = [
        name
        for name in methods(arguments.depth, arguments.chain)
        if (not arguments.methods or _has(name, arguments.methods)) and not _has(name, arguments.skip)
    ]
    task, show = (large, show_large) if arguments.what == "large" else (small, show_small)
    results = []
    for name in names:
        results += task(name, arguments)
        if arguments.json:  # what is measured is kept, whatever comes after it
            with open(arguments.json, "w", encoding="utf-8") as file:
                json.dump(results, file, indent=1)
    show(results)


if __name__ == "__main__":
    main()
