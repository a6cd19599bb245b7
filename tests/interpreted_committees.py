"""Run the fused kernel of committees, pairwise terms and wide layers in Triton's interpreter, in a process of its own."""

import os
import sys

if __name__ == "__main__":  # not where a test looks up what was run: kernels are compiled there
    os.environ["TRITON_INTERPRET"] = "1"

import chains
import torch
from interpreted import close, start

from neurise.conditionals.base import Conditionals, Frame
from neurise.conditionals.committee import Committee
from neurise.conditionals.network_conditionals import NetworkConditionals
from neurise.networks.pairwise_terms import Sum
from neurise.sampling import _cycle, fused
from neurise.sampling._launch import Launch
from neurise.sampling._probe import launch_for

SOFT = {"keep_prob": 0.4, "cycles": 2}
CONSTANT = {"constant": {0: 1, 4: 0}, "unseen": 0.05}
WIDE = {"narrow": 16, "tile": 16, "chunk": 16}
"""A launch to which a width above 16 is wide: the interpreter has no patience for 512."""
KINDS: dict[str, dict] = {
    "two": {"members": 2},
    "two, labels, constant sites": {"members": 2, "classes": 3, **CONSTANT},
    "two, sites as numbers": {"members": 2, "site_input": "number"},
    "two, heads, depth 1": {"members": 2, "heads": "site", "depth": 1, "keep_prob": 0.4},
    "two, two tiles": {"members": 2, "width": 136, "depth": 2, "sites": 3, "keep_prob": 0.4},
    "four, soft, four states": {"members": 4, "states": 4, "sites": 5, "classes": 3, **SOFT},
    "pairwise": {"members": 1, "pairwise": True, "sites": 10},
    "pairwise, two blocks": {"members": 1, "pairwise": True, "sites": 40, "depth": 1, "block": 32},
    "two, pairwise, soft": {"members": 2, "pairwise": True, "sites": 10, **SOFT, **CONSTANT},
    "two, pairwise, four states": {"members": 2, "pairwise": True, "sites": 9, "states": 4, "residual": True},
    "four, pairwise, soft, four states": {"members": 4, "pairwise": True, "sites": 5, "states": 4, **SOFT, **CONSTANT},
    "wide": {"members": 1, "width": 48, "launch": WIDE},
    "wide, ragged, soft, residual": {"members": 1, "sites": 4, "width": 40, "residual": True, "launch": WIDE, **SOFT},
    "wide, a tile that is not full": {"members": 1, "width": 40, "launch": WIDE | {"tile": 64}},
    "two, wide, pairwise, three states": {
        "members": 2,
        "block": 3,
        "sites": 4,
        "width": 40,
        "pairwise": True,
        "states": 3,
        "keep_prob": 0.4,
        "launch": WIDE,
    },
}
WEIGHTED = [name for name, kind in KINDS.items() if kind["members"] > 1]
WEIGHTS = {2: (0.8, 0.2), 4: (0.4, 0.3, 0.2, 0.1)}
SHARP = [name for name, kind in KINDS.items() if "cycles" not in kind]
"""Kinds of one cycle, whose probabilities are looked at one by one."""
RAGGED = ("two, pairwise, soft", "wide, ragged, soft, residual")
"""Kinds that are also run on a number of rows that is no multiple of a block's."""
UNLIKE: dict[str, dict] = {
    "a network that is weighted": {"parts": 1},
    "a network beside pairwise terms": {"parts": 2},
    "a network beside pairwise terms, soft, three states": {"parts": 2, "states": 3, "keep_prob": 0.4},
}
TRIALS: dict[str, dict] = {
    "one network": {"members": 1},
    "pairwise": {"members": 1, "pairwise": True},
    "a committee": {"members": 2, "states": 4},
    "wide": {"members": 1, "width": 300, "depth": 2},
}
ROWS, FEW = 128, 21


def make(name: str) -> Conditionals:
    kind = {key: value for key, value in KINDS[name].items() if key not in ("members", "launch", "block")}
    members = KINDS[name]["members"]
    return chains.make(**kind) if members == 1 else chains.committee(members, **kind)


def mixed(name: str) -> Conditionals:
    """The same with weights, and a first member without pairwise terms."""
    conditionals = make(name)
    committee = getattr(conditionals, "inner", conditionals)
    first = next(iter(committee))
    if isinstance(first.network, Sum):
        first.network = first.network.parts[1]
    committee.weights = list(WEIGHTS[KINDS[name]["members"]])
    return conditionals


def unlike(parts: int, **kind: object) -> Conditionals:
    """A committee of a network with weight 0.6, and of pairwise terms alone if there are two parts."""
    whole = chains.make(pairwise=True, **kind)
    frame = Frame(whole.noise, 0, torch.full((whole.noise.space.sites,), -1))
    networks = [whole.network.parts[place] for place in (1, 0)][:parts]
    members = [NetworkConditionals(network, frame, hide_noised=True) for network in networks]
    return Committee(members, [0.6, 1.7][:parts])


def launch_of(name: str, block: int = ROWS) -> Launch:
    return Launch(rows=block, **KINDS[name].get("launch", {}))


def rows(conditionals: Conditionals, launch: Launch, n: int = ROWS) -> torch.Tensor:
    x, y = start(conditionals, n), chains.labels(conditionals, n)
    return fused.reverse(conditionals, x, y, generator=torch.Generator().manual_seed(1), launch=launch)


def trial(members: int, **kind: object) -> int | None:
    """Rows of the launch that is found for a kernel."""
    found = fused.served(chains.make(**kind) if members == 1 else chains.committee(members, **kind))
    assert found is not None
    launch = launch_for(torch.device("cpu"), found.kind, "float32")
    return None if launch is None else launch.rows


def main(path: str) -> None:
    torch.set_num_threads(1)
    found: dict[str, dict] = {"rows": {}, "weighted": {}, "close": {}, "ragged": {}}
    found["rows of a trial"] = {name: trial(**kind) for name, kind in TRIALS.items()}
    for name, kind in KINDS.items():
        _cycle.BLOCK = kind.get("block", 4)  # so that few sites make several blocks
        launch = launch_of(name)
        found["rows"][name] = rows(make(name), launch)
        if name in WEIGHTED:
            found["weighted"][name] = rows(mixed(name), launch)
        if name in SHARP:
            found["close"][name] = close(make(name), ROWS, launch)
        if name in RAGGED:
            found["ragged"][name] = rows(make(name), launch_of(name, 16), FEW)
    found["unlike"] = {name: close(unlike(**kind), ROWS, Launch(rows=ROWS)) for name, kind in UNLIKE.items()}
    torch.save(found, path)


if __name__ == "__main__":
    main(sys.argv[1])
