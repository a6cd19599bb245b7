"""The recorded loop, with recording replaced by repetition: everything but CUDA itself."""

from collections.abc import Callable

import chains
import pytest
import torch

from neurise.sampling import graphs, incremental

KINDS = chains.KINDS | chains.PARTIAL


def repeat(work: Callable[[], None]) -> Callable[[], None]:
    work()  # as a recording does, once, on whatever is in the buffers
    return work


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_same_uniforms_give_the_same_rows(kind: dict) -> None:
    conditionals, n = chains.make(**kind), 300  # padded to the next size
    x, y = conditionals.noise.start(n, generator=torch.Generator().manual_seed(0)), chains.labels(conditionals, n)
    drawn = graphs.reverse(conditionals, x, y, generator=torch.Generator().manual_seed(1), record=repeat)
    chains.assert_same_rows(conditionals, drawn, x, seed=1)


@pytest.mark.parametrize("n", [1, 3, 4, 11])
def test_any_number_of_rows(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    monkeypatch.setattr(graphs, "SIZES", (3, 5))
    conditionals = chains.make(keep_prob=0.4, cycles=2)
    x = conditionals.noise.start(n, generator=torch.Generator().manual_seed(0))
    drawn = graphs.reverse(conditionals, x, generator=torch.Generator().manual_seed(1), record=repeat)
    assert torch.equal(drawn, incremental.reverse(conditionals, x, generator=torch.Generator().manual_seed(1)))


def test_a_recording_serves_again_and_follows_the_weights() -> None:
    conditionals, recordings = chains.make(), []

    def record(work: Callable[[], None]) -> Callable[[], None]:
        recordings.append(work)
        return repeat(work)

    x = conditionals.noise.start(100, generator=torch.Generator().manual_seed(0))
    for shift in (0.0, 3.0):
        with torch.no_grad():
            chains.site_mlp(conditionals).head_bias += torch.tensor([shift, 0.0])
        drawn = graphs.reverse(conditionals, x, generator=torch.Generator().manual_seed(1), record=record)
        chains.assert_same_rows(conditionals, drawn, x, seed=1)
    assert len(recordings) == 1
    for n in (300, 2000, 5000, 300):
        x = conditionals.noise.start(n, generator=torch.Generator().manual_seed(0))
        graphs.reverse(conditionals, x, generator=torch.Generator().manual_seed(1), record=record)
    assert len(recordings) == 4
    assert len(graphs._tapes[conditionals]) <= graphs.KEPT


def test_recordings_end_with_their_conditionals() -> None:
    conditionals = chains.make()
    x = conditionals.noise.start(10, generator=torch.Generator().manual_seed(0))
    graphs.reverse(conditionals, x, generator=torch.Generator().manual_seed(1), record=repeat)
    before = len(graphs._tapes)
    del conditionals
    assert len(graphs._tapes) == before - 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_on_a_gpu_the_same_uniforms_give_the_same_rows(kind: dict) -> None:
    conditionals, n = chains.make(**kind), 300
    conditionals.cuda()
    x, y = conditionals.noise.start(n, generator=torch.Generator("cuda").manual_seed(0)), chains.labels(conditionals, n)
    first, second = (
        form(conditionals, x, None if y is None else y.cuda(), generator=torch.Generator("cuda").manual_seed(1))
        for form in (graphs.reverse, incremental.reverse)
    )
    assert (first == second).all(-1).double().mean() >= 0.99
