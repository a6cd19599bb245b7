"""Total variation as a surface over rows and compute, for every method, paired over instances of the paper's spin glass.

    python benchmarks/surface.py measure --scale laptop --json benchmarks/measured/surface_4x4_laptop.json
    python benchmarks/surface.py measure --scale laptop_5x5 --json benchmarks/measured/surface_5x5_laptop.json
    python benchmarks/surface.py measure --scale gpu_4x4 --device cuda --json benchmarks/measured/surface_4x4.json
    python benchmarks/surface.py measure --scale gpu_5x5 --device cuda --json benchmarks/measured/surface_5x5.json
    python benchmarks/surface.py limits --side 5 --json benchmarks/measured/limits.json
    python benchmarks/surface.py page benchmarks/measured/surface_4x4_laptop.json

A cell is one method on the rows of one instance: the same rows for every method. Its compute curve comes from one training
run, looked at on the way (``callback``). ``NeurISE()`` itself asks for no budget: it learns an energy, and trains networks where
they have something to add; it is a level line. Compute is the number of examples that each network has seen. What
``measure`` finds in its file is not done again: it may be stopped, run in parts (``--methods``, ``--sizes``, ``--instances``)
and resumed.

Distances are those of the law of the model: of the whole law where it can be written out, else by its likelihoods of fresh
rows, which has an error and no floor. Where there is no likelihood they are those of ``draws`` rows, with the distance of as
many exact rows as the floor. The limits are those of maximum likelihood (:mod:`neurise.theory.likelihood_limit`).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from surface_page import write

import neurise
from neurise.experiments._code import machine, script_version
from neurise.experiments._measure import derived, draw
from neurise.files import write_text
from neurise.laws import distance
from neurise.theory import likelihood_limit, pairs_family

NETWORKS_ONLY: dict[str, Any] = {"architecture__pairwise": False}
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "neurise": ("NeurISE", {}),
    "networks": ("NeurISE", NETWORKS_ONLY),
    "ggm": ("GGM", {"keep_prob": 0.2, "cycles": 3, "width": "width"}),
    "sedd": ("SEDD", {"width": "width", "sampling_steps": "chain"}),
    "d3pm": ("D3PM", {"width": "width", "timesteps": "chain"}),
    "dfm": ("DFM", {"width": "width", "sampling_steps": "chain"}),
    "md4": ("MD4", {"width": "width", "sampling_steps": "chain"}),
    "udlm": ("UDLM", {"width": "width", "sampling_steps": "chain"}),
    "ddpd": ("DDPD", {"width": "width", "sampling_steps": "chain"}),
    "pairwise": ("Pairwise", {}),
    "memorize": ("Memorize", {}),
}
"""Class and settings; a word stands for the value of that name in the scale."""
WITHOUT_BUDGET = ("neurise", "pairwise", "memorize")
FRESH = 10**6
"""Rows that distances by likelihoods are means over."""
WRITTEN_OUT = 2**16
"""Configurations up to which laws are written out."""
SCALES: dict[str, dict[str, Any]] = {
    "smoke": {"side": 2, "sizes": [100], "instances": [0], "steps": [10, 20], "batch": 32}
    | {"width": 8, "chain": 4, "draws": 1000},
    "laptop": {"side": 4, "sizes": [100, 1000, 10_000], "instances": [0, 1, 2], "steps": [64, 256, 1024], "batch": 256}
    | {"width": 64, "chain": 32, "draws": 200_000},
    "laptop_5x5": {"side": 5, "sizes": [100, 1000, 10_000, 100_000], "instances": [0, 1, 2]}
    | {"steps": [64, 256, 1024, 4096], "batch": 512, "width": 128, "chain": 64, "draws": 100_000},
    "gpu_4x4": {"side": 4, "sizes": [100, 1000, 10_000, 100_000], "instances": [0, 1, 2, 3, 4]}
    | {"steps": [64, 256, 1024, 4096], "batch": 4096, "width": 256, "chain": 256, "draws": 10_000_000},
    "gpu_5x5": {"side": 5, "sizes": [100, 1000, 10_000, 100_000], "instances": [0, 1, 2, 3, 4]}
    | {"steps": [64, 256, 1024, 4096], "batch": 4096, "width": 256, "chain": 256, "draws": 10_000_000},
}


def build(method: str, scale: dict[str, Any]) -> Any:
    """Make an untrained model."""
    kind, settings = METHODS[method]
    chosen = {name: scale[value] if isinstance(value, str) else value for name, value in settings.items()}
    if method not in WITHOUT_BUDGET:
        chosen["training__batch_size"] = scale["batch"]
    return getattr(neurise, kind)().set_params(**chosen)


class Judge:
    """How far models are from the law of one instance."""

    def __init__(self, data: neurise.Dataset, draws: int, seed: int, device: str) -> None:
        self.pmf, self.draws, self.seed = torch.from_numpy(data.pmf).to(device), draws, seed
        self.data = data

    def __call__(self, model: Any) -> dict[str, Any]:
        """Take the whole law where it can be written out, else likelihoods, else draws."""
        if len(self.pmf) <= WRITTEN_OUT:
            with suppress(NotImplementedError):
                law = neurise.exact.law(model)
                return {"tv": distance(law.to(self.pmf.device), self.pmf), "floor": 0.0, "error": 0.0, "by": "law"}
        if model.has_likelihood:
            fresh = self.data.sample(FRESH, seed=derived(6, self.seed))
            place = self.data.space.index(torch.from_numpy((fresh > 0).astype(np.int64)))
            ratio = neurise.metrics.likelihood_ratio(model.log_prob(fresh), self.pmf.cpu()[place].log())
            found = ratio.total_variation
            return {"tv": float(found), "floor": 0.0, "error": found.error, "by": "likelihoods"}
        drawn, _ = draw(model, self.draws, derived(5, self.seed))
        found = neurise.metrics.total_variation(drawn, self.pmf, alphabet=[-1, 1])
        return {"tv": float(found), "floor": found.floor, "error": found.error, "by": "draws"}


def points(method: str, X: np.ndarray, judge: Judge, scale: dict[str, Any], seed: int, device: str) -> Iterator[Any]:
    """Yield the examples that were seen, and the distance, for every budget."""
    options = {"seed": seed, "device": device, "verbose": False}
    if method in WITHOUT_BUDGET:
        yield {"examples": 0, **judge(build(method, scale).fit(X, **options))}
        return
    waiting, seen = list(scale["steps"][:-1]), []

    def look(step: int, seconds: float, losses: Any, model: Any) -> None:
        while waiting and step >= waiting[0]:
            waiting.pop(0)
            seen.append({"examples": step * scale["batch"], **judge(model)})

    model = build(method, scale).fit(X, max_steps=scale["steps"][-1], callback=look, **options)
    yield from seen
    # A run that stopped early needs no more, however much it is given.
    yield {"examples": scale["steps"][-1] * scale["batch"], **judge(model)}


def measure(arguments: argparse.Namespace) -> None:
    """Measure all cells that the file does not hold yet."""
    scale = SCALES[arguments.scale] | ({"draws": arguments.draws} if arguments.draws else {})
    path = Path(arguments.json)
    made: dict[str, Any] = {"scale": scale, "runs": [], "limits": {}, "points": []}
    if path.exists():
        made = json.loads(path.read_text(encoding="utf-8"))
        if made["scale"] != scale:
            sys.exit(f"{path} was measured with other settings, {made['scale']}; write to another file")
    made["runs"].append(origin(arguments.device))
    done = {(point["method"], point["rows"], point["instance"]) for point in made["points"]}
    for instance in arguments.instances or scale["instances"]:
        data = neurise.datasets.edwards_anderson(side=scale["side"], seed=instance)
        if str(instance) not in made["limits"]:
            made["limits"][str(instance)] = limits_of(data)
        judge = Judge(data, scale["draws"], instance, arguments.device)
        for rows in arguments.sizes or scale["sizes"]:
            X = data.sample(rows, seed=1000 + instance)
            for method in arguments.methods or METHODS:
                if (method, rows, instance) in done:
                    continue
                began, cell = time.process_time(), {"method": method, "rows": rows, "instance": instance}
                found = [{**cell, **point} for point in points(method, X, judge, scale, instance, arguments.device)]
                found[-1]["cpu_seconds"] = round(time.process_time() - began, 2)
                made["points"] += found
                write_text(path, json.dumps(made, indent=1))  # what is measured is kept, whatever comes after it
                print(json.dumps(found[-1]), flush=True)


def limits_of(data: neurise.Dataset) -> dict[str, Any]:
    """Compute what maximum likelihood reaches, with all pairs and with the true graph: TV · √N."""
    sites, found = data.space.sites, {}
    for name, edges in (("dense", None), ("sparse", data.edges)):
        limit = likelihood_limit(data.pmf, pairs_family(sites, edges))
        found[name] = {"parameters": limit.parameters, "rate": limit.rate}
    return found


def limits(arguments: argparse.Namespace) -> None:
    """Compare the limits with the distance of memorising the rows, for every instance."""
    made: dict[str, Any] = {**origin("cpu"), "side": arguments.side, "rows": []}
    for instance in arguments.instances or range(5):
        data = neurise.datasets.edwards_anderson(side=arguments.side, seed=instance)
        found = limits_of(data)
        for rows in arguments.sizes or [100, 1000, 10_000, 100_000]:
            X = data.sample(rows, seed=1000 + instance)
            memorised = float(neurise.metrics.total_variation(X, data.pmf, alphabet=[-1, 1]))
            for name, limit in found.items():
                row = {"limit": name, "parameters": limit["parameters"], "rows": rows, "instance": instance}
                row |= {"tv": min(1.0, limit["rate"] / rows**0.5), "memorising": memorised}
                made["rows"].append(row)
                print(json.dumps(row), flush=True)
        if arguments.json:
            write_text(Path(arguments.json), json.dumps(made, indent=1))


def origin(device: str) -> dict[str, Any]:
    """Say which command, code and machine made a file."""
    command = " ".join(["python benchmarks/surface.py", *sys.argv[1:]])
    return {"command": command, "code": script_version(__file__), "machine": machine(device)}


def arguments_of(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name, helped in (
        ("measure", "measure what a file lacks"),
        ("limits", "the limits alone, over the distance of memorising"),
    ):
        verb = verbs.add_parser(name, help=helped)
        verb.add_argument("--sizes", type=int, nargs="+")
        verb.add_argument("--instances", type=int, nargs="+")
        if name == "limits":
            verb.add_argument("--side", type=int, default=5)
            verb.add_argument("--json")
            continue
        verb.add_argument("--scale", choices=SCALES, default="laptop")
        verb.add_argument("--methods", nargs="+", choices=METHODS)
        verb.add_argument("--draws", type=int, help="rows to draw where a law cannot be written out")
        verb.add_argument("--device", default="cpu")
        verb.add_argument("--json", required=True)
    page = verbs.add_parser("page", help="compare the methods of files, and draw their figures")
    page.add_argument("files", nargs="+")
    page.add_argument("--docs", default="docs")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> None:
    arguments = arguments_of(words)
    if arguments.verb == "page":
        for file in arguments.files:
            write(Path(file), Path(arguments.docs))
    else:
        {"measure": measure, "limits": limits}[arguments.verb](arguments)


if __name__ == "__main__":
    main()
