"""What it is worth to learn a stretch of steps of one row at once: examples per second, and what is learnt.

PYTHONPATH=src python benchmarks/stretches.py speed --json speed.json
PYTHONPATH=src python benchmarks/stretches.py quality --data plants --steps 600 --lengths 1 8 23
PYTHONPATH=src python benchmarks/stretches.py quality --data caltech --steps 150 --lengths 1 16 --set width=128 depth=2 members=1

``speed`` compares a gradient step of single questions with one of stretches, both of as many examples, in turns, and prints
the ratio of the best times. ``quality`` fits a model with each length, for as many steps and, with --seconds, for as long, and
prints the test NLL. On a CPU time is that of the processor, because a machine may have other work to do.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import numpy as np
import torch

from neurise import NeurISE, datasets, losses
from neurise.conditionals.base import Frame
from neurise.experiments._code import machine, script_version
from neurise.modeling.round_robin_objective import RoundRobinObjective
from neurise.networks.pairwise_terms import PairwiseTerms, Sum
from neurise.networks.parts.stack import Stack
from neurise.networks.site_mlp import SiteMLP
from neurise.noise.round_robin import RoundRobin
from neurise.rows import Batch
from neurise.space import Space

SITES = (100, 784, 2084, 5000)
EXAMPLES = 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "quality"])
    parser.add_argument("--lengths", type=int, nargs="+", default=[1, 8, 16, 32, 64])
    parser.add_argument("--sites", type=int, nargs="+", default=SITES)
    parser.add_argument("--data", default="plants", help="a set of debd, or caltech")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--test-rows", type=int, help="score so many test rows instead of all")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=NUMBER", help="further parameters of the model")
    parser.add_argument("--seconds", type=float, help="also fit for so long")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    found = speed(arguments) if arguments.what == "speed" else quality(arguments)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            made = {
                "command": " ".join(["python benchmarks/stretches.py", *sys.argv[1:]]),
                "code": script_version(__file__),
                "machine": machine(arguments.device),
            }
            json.dump({**made, **vars(arguments), "figures": found}, file, indent=1)


def speed(arguments: Any) -> list[dict[str, Any]]:
    """Time a gradient step of every length, all lengths in turns."""
    found, clock = [], time.process_time if arguments.device == "cpu" else time.perf_counter
    for sites in arguments.sites:
        for keep_prob in (0.0, 0.3):
            for pairwise in (False, True) if 2 * sites <= 2048 and not keep_prob else (False,):
                works = {}
                for length in {1, *arguments.lengths}:
                    works[length] = step_of(sites, keep_prob, length, pairwise, torch.device(arguments.device))
                best = dict.fromkeys(works, float("inf"))
                for _ in range(5):
                    for length, work in works.items():
                        began = clock()
                        work()
                        best[length] = min(best[length], clock() - began)
                ratios = {length: best[1] / best[length] for length in sorted(best)}
                figure = {"sites": sites, "keep_prob": keep_prob, "pairwise": pairwise, "seconds": best[1]}
                found.append({**figure, "ratios": ratios})
                shown = ", ".join(f"{length}: {ratio:.2f}" for length, ratio in ratios.items() if length > 1)
                print(f"{sites} sites, keep_prob={keep_prob}, pairwise={pairwise}: {shown}", flush=True)
    return found


def step_of(sites: int, keep_prob: float, length: int, pairwise: bool, device: torch.device) -> Any:
    """Make a gradient step of so many examples: noise, networks, loss and the way back."""
    space, generator = Space(sites, 2), torch.Generator(device).manual_seed(0)
    noise = RoundRobin(space, keep_prob)
    networks = []
    for _ in range(2 if sites < 2000 else 1):
        network: Any = SiteMLP(space, sites, width=256, depth=3, heads="site", residual=True)
        if pairwise:
            network = Sum([PairwiseTerms(space, sites).requires_grad_(False), network])
        networks.append(network)
    stack = Stack(networks)
    stack.reset(torch.Generator().manual_seed(0))
    frame = Frame(noise, 0, torch.full((sites,), -1, device=device))
    objective = RoundRobinObjective(
        stack.to(device), frame, losses.resolve("tempered_screening"), hide_noised=True, stretch=length
    )
    batch = Batch(space.uniform(max(1, EXAMPLES // length), generator=generator))
    parameters = [parameter for parameter in stack.parameters() if parameter.requires_grad]

    def work() -> None:
        drawn = objective.draw(batch, generator=generator)
        loss = objective.losses(stack, drawn).mean()
        torch.autograd.grad(loss, parameters, materialize_grads=True)
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    work()
    return work


def quality(arguments: Any) -> list[dict[str, Any]]:
    """Fit with every length, and score the test rows."""
    train, validation, test = rows_of(arguments.data)
    test = test[: arguments.test_rows]
    own = {name: int(number) for name, _, number in (entry.partition("=") for entry in arguments.set)}
    limits = [{"max_steps": arguments.steps}]
    if arguments.seconds:
        limits.append({"max_seconds": arguments.seconds})
    found = []
    for limit in limits:
        for length in arguments.lengths:
            model = NeurISE().set_params(chain__stretch=length, **own)
            began = time.process_time()
            model.fit(
                train, validation=validation, seed=arguments.seed, device=arguments.device, verbose=False, **limit
            )
            spent = time.process_time() - began
            nll = -float(model.log_prob(test).mean())
            figure = {**limit, "stretch": length, "nll": nll, "processor_seconds": spent}
            found.append({**figure, "steps": model.history_[-1]["step"]})
            print(f"{arguments.data}, {limit}, stretch {length}: {nll:.3f} nats, {spent:.1f} s", flush=True)
    return found


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return training, validation and test rows."""
    if name != "caltech":
        data = datasets.debd(name)
        assert data.train is not None
        assert data.validation is not None
        assert data.test is not None
        return data.train, data.validation, data.test
    X = datasets.caltech101_silhouettes().train
    assert X is not None
    order = np.random.default_rng(0).permutation(len(X))
    return X[order[:4100]], X[order[4100:6364]], X[order[6364:]]


if __name__ == "__main__":
    main()
