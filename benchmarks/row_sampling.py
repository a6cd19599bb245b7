"""How fast a network that answers for a whole row generates rows, by every form of the reverse loop that serves it.

PYTHONPATH=src python benchmarks/row_sampling.py --network masked --width 512 --device cuda

The weights are drawn, not learnt: speed does not depend on them. Forms must agree: the same random numbers give the same rows.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch

from neurise import discovery
from neurise.bench.clock import timed
from neurise.conditionals.base import Frame
from neurise.conditionals.row_conditionals import RowConditionals
from neurise.experiments._code import machine, script_version
from neurise.files import write_text
from neurise.noise.round_robin import RoundRobin
from neurise.sampling.reverse import METHODS, sample, serves
from neurise.space import Space


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="masked")
    parser.add_argument("--sites", type=int, default=784)
    parser.add_argument("--states", type=int, default=2)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    device, space = torch.device(arguments.device), Space(arguments.sites, arguments.states)
    network = discovery.find("neurise.networks", arguments.network)(
        space, space.sites, width=arguments.width, depth=arguments.depth
    )
    generator = torch.Generator().manual_seed(0)
    network.reset(generator)
    for parameter in network.parameters():  # an output of zero would draw fair coins
        if parameter.is_floating_point():
            parameter.data += 0.01 * torch.randn(parameter.shape, generator=generator)
    if hasattr(network, "chosen"):  # parents are sites after a site
        place = torch.arange(space.sites)[:, None] + torch.arange(1, network.parents + 1)
        network.chosen.data.copy_(torch.where(place < space.sites, place, -1))
    network.requires_grad_(False).to(device)
    frame = Frame(RoundRobin(space, 0.0), 0, torch.full((space.sites,), -1, device=device))
    conditionals, drawn, found = RowConditionals(network, frame).lay_out(), {}, {}
    for method in METHODS[:-1]:  # the reference takes a pass per site
        if not serves(method, conditionals, arguments.precision):
            continue

        def work(method: str = method) -> None:
            own = torch.Generator(device).manual_seed(0)
            options = {"method": method, "precision": arguments.precision}
            drawn[method] = sample(conditionals, arguments.rows, generator=own, **options)

        found[method] = arguments.rows / timed(work, device).seconds
        print(f"{method}: {found[method]:,.0f} rows per second", flush=True)
    first, *others = drawn.values()
    for other in others:
        print(f"tokens that differ between forms: {float((first != other).float().mean()):.2e}")
    if arguments.json:
        made = {
            "command": " ".join(["python benchmarks/row_sampling.py", *sys.argv[1:]]),
            "code": script_version(__file__),
            "machine": machine(arguments.device),
            "rows": [
                {"network": arguments.network, "method": name, "rows_per_second": rate} for name, rate in found.items()
            ],
        }
        write_text(Path(arguments.json), json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
