"""Run LayerNorm → SiLU in Triton's interpreter, which must be chosen before Triton is imported: a process of its own."""

import os
import sys
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from neurise.networks.parts import _normed
from neurise.networks.site_mlp import SiteMLP
from neurise.space import Space

EPS = 1e-5
CASES: dict[str, dict[str, Any]] = {
    "one row": {"rows": (1,), "width": 24},
    "an uneven width": {"rows": (5,), "width": 24},
    "two axes of rows, with a bias": {"rows": (3, 7), "width": 40, "bias": True},
    "three models, all parts": {"groups": (3,), "rows": (37,), "width": 24, "bias": True, "added": True},
    "three models, rows in full tiles": {"groups": (3,), "rows": (64,), "width": 16},
    "models of models": {"groups": (2, 3), "rows": (5,), "width": 8, "bias": True},
    "rows that hardly vary": {"rows": (5,), "width": 24, "spread": 1e-3, "offset": 0.0},
    "many programs": {"rows": (150,), "width": 16, "added": True},
    "a program with several tiles": {"groups": (2,), "rows": (21,), "width": 200, "bias": True},
    "several warps": {"rows": (9,), "width": 520, "bias": True},
    "short numbers": {"groups": (2,), "rows": (9,), "width": 24, "bias": True, "added": True, "dtype": torch.bfloat16},
    "short numbers out of long ones": {"rows": (9,), "width": 24, "added": True, "out": torch.bfloat16},
}
SPACE, STEPS, MODELS, ROWS = Space(sites=3, states=2), 6, 3, 11


def parts(case: dict[str, Any]) -> tuple[list[Tensor | None], Tensor]:
    """Draw z, bias, weight, shift and what is added, and the gradient of y; z has an offset that the norm must take away."""
    generator = torch.Generator().manual_seed(0)
    groups, rows, width = case.get("groups", ()), case["rows"], case["width"]

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    dtype = case.get("dtype", torch.float32)
    z, added, dy = (draw(*groups, *rows, width) for _ in range(3))
    bias, weight, shift = (draw(*groups, width) for _ in range(3))
    own = [
        (case.get("spread", 2.0) * z + case.get("offset", 3.0)).to(dtype),
        bias if case.get("bias") else None,
        1 + weight / 2,
        shift,
        added.to(dtype) if case.get("added") else None,
    ]
    return own, dy.to(case.get("out", dtype))


def run(case: dict[str, Any]) -> list[Tensor]:
    """Return y and the gradients of all that is there."""
    own, dy = parts(case)
    leaves = [None if part is None else part.requires_grad_() for part in own]
    y = _normed.Normed.apply(*leaves, EPS, dy.dtype)
    return [y.detach(), *torch.autograd.grad(y, [leaf for leaf in leaves if leaf is not None], dy)]


def mapped(axis: int, *, shared: bool) -> list[Tensor]:
    """The case of three models, mapped: their axis somewhere in z, and weight and shift each model's own or all models'."""
    own, dy = parts(CASES["three models, all parts"])
    leaves = [part.detach().clone() for part in own if part is not None]
    leaves[0] = leaves[0].movedim(0, axis)
    if shared:
        leaves[2:4] = [leaf[0] for leaf in leaves[2:4]]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    axes = (axis, 0, None if shared else 0, None if shared else 0, 0)
    y = vmap(lambda *own: _normed.Normed.apply(*own, EPS, torch.float32), in_dims=axes)(*leaves)
    gradients = torch.autograd.grad(y, leaves, dy)
    return [y.detach(), gradients[0].movedim(axis, 0), *gradients[1:]]


def stacked(*, residual: bool) -> list[Tensor]:
    """Logits of three stacked networks, and their gradients."""
    networks = []
    for seed in range(MODELS):
        network = SiteMLP(SPACE, STEPS, width=24, depth=3, residual=residual)
        for parameter in network.parameters():
            torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(seed))
        networks.append(network)
    weights, _ = stack_module_state(networks)
    generator = torch.Generator().manual_seed(9)
    t = torch.randint(STEPS, (ROWS,), generator=generator)
    x = SPACE.uniform(ROWS, generator=generator)
    hidden = torch.zeros(ROWS, SPACE.sites, dtype=torch.bool)
    logits = vmap(lambda own: functional_call(networks[0], own, (t, t % SPACE.sites, x, hidden)))(weights)
    cotangent = torch.randn(logits.shape, generator=generator)
    used = [weight for weight in weights.values() if weight.numel()]
    return [logits.detach(), *torch.autograd.grad(logits, used, cotangent)]


def main(path: str) -> None:
    torch.set_num_threads(1)
    found: dict[str, Any] = {name: run(case) for name, case in CASES.items()}
    found |= {f"axis {axis}": mapped(axis, shared=False) for axis in (0, 1)}
    found["shared"] = mapped(0, shared=True)
    _normed.serves = lambda h: True  # type: ignore[assignment]
    found |= {f"stacked {residual}": stacked(residual=residual) for residual in (False, True)}
    torch.save(found, path)


if __name__ == "__main__":
    main(sys.argv[1])
