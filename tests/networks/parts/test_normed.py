"""LayerNorm → SiLU as one operation: the kernels, run by Triton's interpreter on a CPU, against plain torch."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from neurise.networks.parts import _normed
from neurise.networks.parts.layers import Blocks, normed

pytest.importorskip("triton")
import interpreted_norms

SCRIPT = Path(interpreted_norms.__file__)
UNIT = 2.0**-24
"""Half the distance from 1 to the next float32."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("interpreter") / "norms.pt"
    subprocess.run([sys.executable, "-W", "ignore", SCRIPT, path], check=True, cwd=SCRIPT.parent)
    return torch.load(path)


def plain(own: list[Tensor | None], dy: Tensor) -> list[Tensor]:
    """y and the gradients of what is there, in float64, each group by itself."""
    leaves = [None if part is None else part.double().requires_grad_() for part in own]
    z, bias, weight, shift, added = leaves
    assert z is not None
    assert weight is not None
    assert shift is not None
    width = z.shape[-1]
    flat = weight.reshape(-1, width)
    ys = []
    for group, rows in enumerate(z.reshape(len(flat), -1, width)):
        rows = rows if bias is None else rows + bias.reshape(-1, width)[group]
        centred = rows - rows.mean(-1, keepdim=True)
        unit = centred / (centred.square().mean(-1, keepdim=True) + interpreted_norms.EPS).sqrt()
        line = unit * flat[group] + shift.reshape(-1, width)[group]
        ys.append(line * torch.sigmoid(line))
    y = torch.stack(ys).reshape(z.shape)
    y = y if added is None else y + added
    return [y.detach(), *torch.autograd.grad(y, [leaf for leaf in leaves if leaf is not None], dy.double())]


def assert_near(ours: list[Tensor], exact: list[Tensor], *, rows: int) -> None:
    """Compare by the largest number of each tensor.

    A number takes about thirty roundings, of which the norm's division by a spread of 2 enlarges none; a gradient of a
    parameter is a sum over rows, each with its own. What is stored in short numbers is cut to 8 bits: the interpreter does not
    round them.
    """
    assert len(ours) == len(exact)
    for mine, right in zip(ours, exact, strict=True):
        assert mine.shape == right.shape
        short = 2.0**-7 if mine.dtype == torch.bfloat16 else 0.0
        gap = (mine.double() - right).abs().max() / right.abs().max()
        assert gap <= 32 * UNIT * (1 + rows) ** 0.5 + short


@pytest.mark.parametrize("name", interpreted_norms.CASES)
def test_values_and_gradients_are_those_of_plain_torch(found: dict[str, Any], name: str) -> None:
    case = interpreted_norms.CASES[name]
    own, dy = interpreted_norms.parts(case)
    assert [part.dtype for part in found[name][:2]] == [dy.dtype, case.get("dtype", torch.float32)]
    assert_near(found[name], plain(own, dy), rows=dy.numel() // dy.shape[-1])


@pytest.mark.parametrize("axis", [0, 1])
def test_mapped_over_models_each_gets_what_it_gets_alone(found: dict[str, Any], axis: int) -> None:
    own, dy = interpreted_norms.parts(interpreted_norms.CASES["three models, all parts"])
    for k in range(3):
        alone = plain([None if part is None else part[k] for part in own], dy[k])
        assert_near([part[k] for part in found[f"axis {axis}"]], alone, rows=dy.shape[1])


def test_models_that_share_their_norm_add_its_gradients_up(found: dict[str, Any]) -> None:
    own, dy = interpreted_norms.parts(interpreted_norms.CASES["three models, all parts"])
    shared = [part[:1].expand_as(part) if place in (2, 3) else part for place, part in enumerate(own)]  # type: ignore[index, union-attr]
    exact = plain(shared, dy)  # type: ignore[arg-type]
    exact[3:5] = [part.sum(0) for part in exact[3:5]]
    assert_near(found["shared"], exact, rows=dy.numel() // dy.shape[-1])


@pytest.mark.parametrize("residual", [False, True])
def test_stacked_networks_do_not_notice(found: dict[str, Any], residual: bool) -> None:
    """Both are float32: a rounding of the first layer is carried through three norms and products of 24 random weights."""
    without = interpreted_norms.stacked(residual=residual)
    for ours, theirs in zip(found[f"stacked {residual}"], without, strict=True):
        assert (ours - theirs).abs().max() <= 2e-5 * theirs.abs().max()


def test_on_a_cpu_nothing_changes() -> None:
    norm, linear = nn.LayerNorm(24), nn.Linear(24, 24)
    h = torch.randn(7, 24, generator=torch.Generator().manual_seed(0))
    assert not _normed.serves(h)
    block = functional.silu(norm(linear(h)))
    assert torch.equal(normed(h, norm), functional.silu(norm(h)))
    assert torch.equal(normed(h, norm, linear), block)
    assert torch.equal(normed(h, norm, linear, residual=True), h + block)


def test_a_network_without_numbers_has_shapes() -> None:
    with torch.device("meta"):
        assert Blocks(24, 3)(torch.empty(5, 24)).shape == (5, 24)


@pytest.mark.parametrize("residual", [False, True])
def test_plain_blocks_have_the_slope_of_their_values(residual: bool) -> None:
    blocks = Blocks(5, 3, residual=residual).double()
    blocks.reset(torch.Generator().manual_seed(0))
    h = torch.randn(4, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(blocks, h)


def test_a_second_derivative_of_the_kernels_is_refused() -> None:
    """Nothing can be followed through a kernel: to go on without it would be a wrong answer."""
    z, one = torch.randn(2, 8, requires_grad=True), torch.ones(8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_normed.Normed, "forward", lambda z, *_: z.clone())
        patch.setattr(_normed, "_back", lambda z, bias, weight, shift, dy, eps: (dy * z, None, weight, shift))
        y = _normed.Normed.apply(z, None, one, one, None, 1e-5, z.dtype)
        (slope,) = torch.autograd.grad(y.square().sum(), z, create_graph=True)
        with pytest.raises(RuntimeError, match="once_differentiable"):
            slope.sum().backward()


@pytest.mark.parametrize(("rows", "expected"), [(1, 8), (1024, 8), (51_200, 16), (204_800, 64), (10**7, 64)])
def test_rows_are_shared_out_among_programs(rows: int, expected: int) -> None:
    assert _normed._chunk(rows) == expected


@pytest.mark.parametrize("width", [1, 24, 64, 256, 300, 1024])
def test_a_tile_is_made_of_whole_rows(width: int) -> None:
    shape = _normed._shape(width, _normed.TILE)
    assert shape["COLUMNS"] >= width
    assert shape["ROWS"] * shape["COLUMNS"] <= _normed.TILE * shape["num_warps"]
    assert shape["ROWS"] & (shape["ROWS"] - 1) == 0


def test_what_cannot_be_compiled_is_left_to_plain_torch_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_compiler(*_: Any) -> None:
        raise RuntimeError("Failed to find C compiler.\nSet CC.")

    monkeypatch.setattr(_normed.Normed, "forward", no_compiler)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    _normed._compiles.cache_clear()
    with pytest.warns(UserWarning, match=r"cannot be compiled here \(Failed to find C compiler\.\); plain torch does"):
        assert not _normed._compiles(torch.device("cpu"))
    assert not _normed._compiles(torch.device("cpu"))  # said once
    _normed._compiles.cache_clear()
