"""Run the fused kernel in Triton's interpreter, which must be chosen before Triton is imported: a process of its own."""

import os
import sys

if __name__ == "__main__":  # not where a test looks up what was run: kernels are compiled there
    os.environ["TRITON_INTERPRET"] = "1"

import chains
import torch

from neurise.conditionals.base import Conditionals
from neurise.sampling import fused
from neurise.sampling._cycle import run_cycle
from neurise.sampling._launch import Launch
from neurise.sampling._packing import pack

KINDS = chains.KINDS | {
    "two tiles": {"width": 144, "depth": 2, "sites": 3},
    "two tiles, soft, three states": {"width": 136, "depth": 3, "sites": 3, "states": 3, "keep_prob": 0.4},
}
UNSEEN = ("unseen symbols, three states", "soft, unseen symbols")
SHARP = ("hard", "soft, seventeen states", "soft, constant sites", *UNSEEN, "residual", "depth 5", *list(KINDS)[-2:])
"""Kinds whose probabilities are looked at one by one; the interpreter takes a third of a second for each."""
SHORT = ("hard", "depth 5", "soft, labels", "two tiles")
"""Kinds that are also run in bfloat16, with and without weights that stay on the chip."""
ROWS = 256
LAW = {"sites": 3, "states": 3, "keep_prob": 0.6, "cycles": 2}
LAW_ROWS = 8192
GAP = 1e-5


def start(conditionals: Conditionals, n: int) -> torch.Tensor:
    return conditionals.noise.start(n, generator=torch.Generator().manual_seed(0))


def rows(kind: dict, n: int, *, block: int, precision: str = "float32") -> torch.Tensor:
    conditionals = chains.make(**kind)
    return fused.reverse(
        conditionals,
        start(conditionals, n),
        chains.labels(conditionals, n),
        generator=torch.Generator().manual_seed(1),
        precision=precision,
        launch=Launch(rows=block),
    )


def close(conditionals: Conditionals, n: int, launch: Launch) -> torch.Tensor:
    """Rows that a kernel makes of uniforms a hair beside the thresholds of the plain loop."""
    x, y = start(conditionals, n), chains.labels(conditionals, n)
    level, _ = chains.close_calls(conditionals, x, y, GAP)
    state, found = x.T.contiguous(), fused.served(conditionals)
    assert found is not None
    packed = pack(found.plan, found.view, conditionals.certain(found.view), precision="float32", launch=launch)
    run_cycle(packed, 0, state, y, level, launch)
    return state.T


def main(path: str) -> None:
    torch.set_num_threads(1)
    found = {
        "float32": {name: rows(kind, ROWS, block=ROWS) for name, kind in KINDS.items()},
        "bfloat16": {name: rows(KINDS[name], ROWS, block=ROWS, precision="bfloat16") for name in SHORT},
        "close": {name: close(chains.make(**KINDS[name]), ROWS, Launch(rows=ROWS)) for name in SHARP},
        "ragged": rows(KINDS["hard"], 37, block=16),
        "law": rows(LAW, LAW_ROWS, block=LAW_ROWS),
    }
    torch.save(found, path)


if __name__ == "__main__":
    main(sys.argv[1])
