"""The fused kernel of committees, pairwise terms and wide layers, run by Triton's interpreter, against the other forms."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chains
import pytest
import torch

from neurise.conditionals.committee import Committee
from neurise.sampling import _probe, fused, incremental
from neurise.sampling._kind import Kind
from neurise.sampling._launch import Launch

pytest.importorskip("triton")
import interpreted_committees as interpreted
from interpreted import GAP
from triton.runtime.errors import OutOfResources

from neurise.sampling import _kernel, _members

SCRIPT = Path(interpreted.__file__)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("interpreter") / "rows.pt"
    subprocess.run([sys.executable, "-W", "ignore", SCRIPT, path], check=True, cwd=SCRIPT.parent)
    return torch.load(path)


@pytest.mark.parametrize("name", interpreted.KINDS)
def test_the_same_uniforms_give_the_same_rows(found: dict[str, Any], name: str) -> None:
    conditionals = interpreted.make(name)
    x = interpreted.start(conditionals, interpreted.ROWS)
    chains.assert_same_rows(conditionals, found["rows"][name], x, seed=1)


@pytest.mark.parametrize("name", interpreted.WEIGHTED)
def test_members_have_weights_and_some_have_pairwise_terms(found: dict[str, Any], name: str) -> None:
    conditionals = interpreted.mixed(name)
    x = interpreted.start(conditionals, interpreted.ROWS)
    chains.assert_same_rows(conditionals, found["weighted"][name], x, seed=1)
    assert not torch.equal(found["weighted"][name], found["rows"][name])


@pytest.mark.parametrize("name", interpreted.UNLIKE)
def test_weights_reach_networks_and_pairwise_terms(found: dict[str, Any], name: str) -> None:
    conditionals = interpreted.unlike(**interpreted.UNLIKE[name])
    x = interpreted.start(conditionals, interpreted.ROWS)
    _, plain = chains.close_calls(conditionals, x, None, GAP)
    assert torch.equal(found["unlike"][name], plain)


@pytest.mark.parametrize("name", interpreted.SHARP)
def test_probabilities_are_those_of_the_plain_loop(found: dict[str, Any], name: str) -> None:
    """Every uniform is 1e-5 beside a threshold: a probability that is off by more would give another token."""
    conditionals = interpreted.make(name)
    x, y = interpreted.start(conditionals, interpreted.ROWS), chains.labels(conditionals, interpreted.ROWS)
    _, plain = chains.close_calls(conditionals, x, y, GAP)
    assert torch.equal(found["close"][name], plain)


@pytest.mark.parametrize("name", interpreted.RAGGED)
def test_a_last_block_that_is_not_full(found: dict[str, Any], name: str) -> None:
    conditionals = interpreted.make(name)
    x = interpreted.start(conditionals, interpreted.FEW)
    plain = incremental.reverse(conditionals, x, generator=torch.Generator().manual_seed(1))
    assert torch.equal(found["ragged"][name], plain)


@pytest.mark.parametrize("other", [{"width": 24}, {"depth": 2}, {"residual": True}, {"heads": "site"}], ids=str)
def test_members_of_several_shapes_are_left_to_others(other: dict) -> None:
    members = [chains.make(), chains.make(**other)]
    assert fused.served(Committee(members, [0.5, 0.5])) is None
    assert fused.served(Committee(members[:1] * 2, [0.5, 0.5])) is not None


def test_a_trial_runs_and_finds_a_launch(found: dict[str, Any]) -> None:
    assert found["rows of a trial"] == {"one network": 128, "pairwise": 64, "a committee": 64, "wide": 64}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", [*interpreted.KINDS, "one network"])
def test_the_kernel_that_is_tried_is_the_kernel_that_is_used(
    monkeypatch: pytest.MonkeyPatch, name: str, precision: str
) -> None:
    """A kernel is compiled for its constants, for the types of its arguments and for the alignment of its pointers."""
    seen: list[tuple[Any, ...]] = []

    class Kernel:
        def __init__(self, name: str) -> None:
            self.name = name

        def __getitem__(self, grid: tuple[int]) -> Callable[..., None]:
            return self

        def __call__(self, *arguments: Any, **constants: Any) -> None:
            kinds = [
                (one.dtype, one.data_ptr() % 16) if isinstance(one, torch.Tensor) else type(one) for one in arguments
            ]
            seen.append((self.name, kinds, constants))

    monkeypatch.setattr(_kernel, "cycle_kernel", Kernel("one"))
    monkeypatch.setattr(_members, "members_kernel", Kernel("several"))
    conditionals = interpreted.make(name) if name in interpreted.KINDS else chains.make()
    launch = Launch(**interpreted.KINDS.get(name, {}).get("launch", {}))
    served = fused.served(conditionals)
    assert served is not None
    _probe.attempt(torch.device("cpu"), served.kind, precision, launch)
    x, y = interpreted.start(conditionals, 64), chains.labels(conditionals, 64)
    fused.reverse(conditionals, x, y, generator=torch.Generator(), precision=precision, launch=launch)
    assert len(seen) > 1
    assert all(one == seen[0] for one in seen)


def test_where_the_chip_has_no_room_fewer_rows_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def attempt(device: torch.device, kind: Kind, precision: str, launch: Launch) -> None:
        tried.append(launch.rows)
        if launch.rows > 32:
            raise OutOfResources(300_000, 232_448, "shared memory")

    monkeypatch.setattr(_probe, "attempt", attempt)
    _probe.launch_for.cache_clear()
    for conditionals, rows in (
        (chains.make(), [128, 64, 32]),
        (chains.make(pairwise=True), [64, 32]),
        (chains.committee(2, width=256, sites=2), [64, 32]),
        (chains.make(width=512, sites=2), [64, 64, 32]),
    ):
        tried.clear()
        assert fused.fits(conditionals)
        assert tried == rows
    _probe.launch_for.cache_clear()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", interpreted.KINDS)
def test_on_a_gpu_the_same_uniforms_give_the_same_rows(name: str) -> None:
    conditionals, n = interpreted.make(name), 300
    conditionals.cuda()
    x, y = conditionals.noise.start(n, generator=torch.Generator("cuda").manual_seed(0)), chains.labels(conditionals, n)
    y = None if y is None else y.cuda()
    launch = Launch(**interpreted.KINDS[name].get("launch", {}))
    first = fused.reverse(conditionals, x, y, generator=torch.Generator("cuda").manual_seed(1), launch=launch)
    second = incremental.reverse(conditionals, x, y, generator=torch.Generator("cuda").manual_seed(1))
    assert (first == second).all(-1).double().mean() >= 0.99
