"""The fused kernel, run by Triton's interpreter on a CPU, against the plain loop and the exact law."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import chains
import pytest
import torch
from chi_square import assert_drawn_from

from neurise import exact
from neurise.conditionals.base import Frame
from neurise.conditionals.network_conditionals import NetworkConditionals
from neurise.networks.local_mlp import LocalMLP
from neurise.networks.pairwise_terms import PairwiseTerms
from neurise.networks.parts.layers import terms
from neurise.sampling import _probe, fused, incremental
from neurise.sampling._kind import MAX_STATES, MAX_WIDTH
from neurise.sampling._packing import tiles

pytest.importorskip("triton")
import interpreted

SCRIPT = Path(interpreted.__file__)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("interpreter") / "rows.pt"
    subprocess.run([sys.executable, "-W", "ignore", SCRIPT, path], check=True, cwd=SCRIPT.parent)
    return torch.load(path)


@pytest.mark.parametrize("name", interpreted.KINDS)
def test_the_same_uniforms_give_the_same_rows(found: dict[str, Any], name: str) -> None:
    conditionals = chains.make(**interpreted.KINDS[name])
    x = interpreted.start(conditionals, interpreted.ROWS)
    chains.assert_same_rows(conditionals, found["float32"][name], x, seed=1)


@pytest.mark.parametrize("name", interpreted.SHARP)
def test_probabilities_are_those_of_the_plain_loop(found: dict[str, Any], name: str) -> None:
    """Every uniform is 1e-5 beside a threshold: a probability that is off by more would give another token."""
    kind = interpreted.KINDS[name]
    conditionals = chains.make(**kind)
    x, y = interpreted.start(conditionals, interpreted.ROWS), chains.labels(conditionals, interpreted.ROWS)
    _, plain = chains.close_calls(conditionals, x, y, interpreted.GAP)
    assert torch.equal(found["close"][name], plain)


@pytest.mark.parametrize("name", interpreted.SHORT)
def test_short_numbers_change_few_rows(found: dict[str, Any], name: str) -> None:
    """bfloat16 moves a probability by at most 0.02, so a row of T steps parts with a chance of at most 0.02 T."""
    conditionals = chains.make(**interpreted.KINDS[name])
    same = (found["bfloat16"][name] == found["float32"][name]).all(-1).double().mean()
    assert same >= 1 - 0.02 * conditionals.noise.num_steps


def test_a_last_block_that_is_not_full(found: dict[str, Any]) -> None:
    conditionals = chains.make(**interpreted.KINDS["hard"])
    x = interpreted.start(conditionals, 37)
    plain = incremental.reverse(conditionals, x, generator=torch.Generator().manual_seed(1))
    assert torch.equal(found["ragged"], plain)


def test_rows_follow_the_exact_law(found: dict[str, Any]) -> None:
    conditionals = chains.make(**interpreted.LAW)
    places = conditionals.noise.space.index(found["law"]).numpy()
    assert_drawn_from(places, exact.chain_law(conditionals).numpy())


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (1, (16, 0)),
        (24, (32, 0)),
        (128, (128, 0)),
        (129, (128, 16)),
        (192, (128, 64)),
        (200, (128, 128)),
        (256, (128, 128)),
    ],
)
def test_a_width_is_cut_into_powers_of_two(width: int, expected: tuple[int, int]) -> None:
    assert tiles(width) == expected


def test_terms_add_up_to_the_number() -> None:
    numbers = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    for count, bits in ((1, 8), (2, 16), (3, 24)):
        total = sum(term.double() for term in terms(numbers, count))
        # Round to nearest: half a unit in the last of so many bits.
        assert ((total - numbers) / numbers).abs().max() <= 2.0**-bits


def test_without_cuda_the_kernel_is_left_alone() -> None:
    assert not fused.available(torch.device("cpu"))


@pytest.mark.parametrize(
    "kind",
    [{"width": MAX_WIDTH + 1}, {"states": MAX_STATES + 1}, {"steps": 9}, {"steps": 9, "keep_prob": 0.4}, {"steps": 4}],
    ids=str,
)
def test_what_the_kernel_cannot_do_is_left_to_others(kind: dict) -> None:
    conditionals = chains.make(**kind)
    assert not fused.fits(conditionals)
    x = interpreted.start(conditionals, 2)
    with pytest.raises(ValueError, match="no fused kernel serves these NetworkConditionals with this chain"):
        fused.reverse(conditionals, x, generator=torch.Generator())


def test_a_full_number_of_cycles_may_be_given_as_steps() -> None:
    assert fused.served(chains.make(steps=12, keep_prob=0.4)) is not None


def test_longer_numbers_are_left_to_others() -> None:
    assert fused.served(chains.make().double()) is None


def test_what_has_no_plan_is_left_to_others() -> None:
    noise = chains.make().noise
    frame = Frame(noise, 0, torch.full((noise.space.sites,), -1))
    local = LocalMLP(noise.space, noise.num_steps, width=4, depth=1)
    for network in (local, PairwiseTerms(noise.space, noise.num_steps)):
        assert fused.served(NetworkConditionals(network, frame, hide_noised=True)) is None


def test_a_plan_that_is_laid_out_is_not_made_again() -> None:
    for name in ("hard", "constant sites"):
        conditionals = chains.make(**interpreted.KINDS[name]).lay_out()
        first, second = fused.served(conditionals), fused.served(conditionals)
        assert first is not None
        assert second is not None
        assert first.plan is second.plan


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", interpreted.KINDS)
def test_on_a_gpu_the_same_uniforms_give_the_same_rows(name: str) -> None:
    conditionals, n = chains.make(**interpreted.KINDS[name]), 300
    conditionals.cuda()
    x, y = conditionals.noise.start(n, generator=torch.Generator("cuda").manual_seed(0)), chains.labels(conditionals, n)
    first, second = (
        form(conditionals, x, None if y is None else y.cuda(), generator=torch.Generator("cuda").manual_seed(1))
        for form in (fused.reverse, incremental.reverse)
    )
    assert (first == second).all(-1).double().mean() >= 0.99


def test_what_cannot_be_compiled_is_left_to_other_forms_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_compiler(*_: Any, **__: Any) -> None:
        raise RuntimeError("Failed to find C compiler.\nSet CC.")

    monkeypatch.setattr(_probe, "attempt", no_compiler)
    _probe.launch_for.cache_clear()
    conditionals = chains.make()
    with pytest.warns(UserWarning, match=r"cannot be compiled here \(Failed to find C compiler\.\); sampling goes on"):
        assert not fused.fits(conditionals)
    assert not fused.fits(conditionals)  # said once
    _probe.launch_for.cache_clear()
