import chains
import oracles
import pytest
import torch
from fixtures import untrained

from neurise import exact
from neurise.batching import batches
from neurise.noise.round_robin import RoundRobin
from neurise.sampling.reverse import WORTHWHILE, choose, reverse, sample
from neurise.space import Space
from neurise.walks import Recomputed

SPACE = Space(sites=3, states=4)


@pytest.mark.parametrize("keep_prob", [0.0, 0.3, 0.9])
def test_exact_conditionals_draw_the_data_law(keep_prob: float) -> None:
    n, generator = 50_000, torch.Generator().manual_seed(0)
    pmf = oracles.random_law(SPACE, seed=1)
    noise = RoundRobin(SPACE, keep_prob, cycles=1)
    data = SPACE.configurations()[torch.multinomial(torch.from_numpy(pmf), n, replacement=True, generator=generator)]
    noised = noise.corrupt(data, torch.full((n,), noise.num_steps), generator=generator)
    rows = reverse(exact.ExactConditionals(pmf, noise), noised, generator=generator)
    shares = torch.bincount(SPACE.index(rows), minlength=SPACE.size).numpy() / n
    assert oracles.tv(shares, pmf) <= oracles.sampled_tv_tolerance(pmf, n)


def test_one_evaluation_a_step() -> None:
    conditionals = untrained(SPACE, 0.3, cycles=2).conditionals
    calls = []
    conditionals.network.register_forward_hook(lambda *_: calls.append(1))
    sample(conditionals, 5, generator=torch.Generator().manual_seed(0), method="reference")
    assert len(calls) == 6


def test_the_start_is_left_alone() -> None:
    start = SPACE.uniform(4, generator=torch.Generator().manual_seed(0))
    kept = start.clone()
    reverse(untrained(SPACE, 0.0).conditionals, start, generator=torch.Generator().manual_seed(1))
    assert torch.equal(start, kept)


def test_batches_fit_the_budget_and_cover_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [(b.start, b.stop) for b in batches(10, bytes_per_row=3, budget=12)] == [(0, 4), (4, 8), (8, 10)]
    assert [(b.start, b.stop) for b in batches(2, bytes_per_row=100, budget=12)] == [(0, 1), (1, 2)]
    conditionals = untrained(SPACE, 0.3).conditionals
    sizes: list[int] = []
    conditionals.network.register_forward_hook(lambda _, inputs, __: sizes.append(len(inputs[2])))
    monkeypatch.setattr("neurise.conditionals.base.MEMORY_BUDGET", 7 * conditionals.bytes_per_row)
    rows = sample(conditionals, 20, generator=torch.Generator().manual_seed(0), method="reference")
    assert rows.shape == (20, 3)
    assert max(sizes) == 7


def test_a_seed_gives_the_same_rows_by_any_method() -> None:
    conditionals = untrained(SPACE, 0.3, cycles=2).conditionals
    plain, fast, own = (
        sample(conditionals, 50, generator=torch.Generator().manual_seed(3), method=method)
        for method in ("reference", "incremental", None)
    )
    assert torch.equal(plain, fast)  # in float64 a step parts ways with a chance of about 1e-15
    assert torch.equal(fast, own)


@pytest.mark.parametrize("name", [name for name in chains.KINDS if "unseen" in name])
def test_unseen_symbols_are_drawn_by_the_plain_loop(name: str) -> None:
    conditionals, n = chains.make(**chains.KINDS[name]), 500
    x = conditionals.noise.start(n, generator=torch.Generator().manual_seed(0))
    drawn = reverse(conditionals, x, generator=torch.Generator().manual_seed(1))
    chains.assert_same_rows(conditionals, drawn, x, seed=1)
    for site, only in chains.KINDS[name]["constant"].items():
        assert (drawn[:, site] != only).any()


def test_what_has_no_plan_is_evaluated_anew_at_every_step() -> None:
    for plain in (
        untrained(SPACE, 0.0, network="local_mlp").conditionals,
        exact.ExactConditionals(oracles.random_law(SPACE, seed=1), RoundRobin(SPACE, 0.0, cycles=1)),
    ):
        walk = plain.walk(torch.zeros(3, 5, dtype=torch.uint8), None, torch.zeros(1, dtype=torch.int64))
        assert isinstance(walk, Recomputed)
        first, second, own = (
            sample(plain, 50, generator=torch.Generator().manual_seed(0), method=method)
            for method in ("reference", "incremental", None)
        )
        assert torch.equal(first, second)
        assert torch.equal(second, own)
        with pytest.raises(ValueError, match="method 'graphs' cannot serve"):
            choose(plain, "graphs")
    with pytest.raises(ValueError, match=r"method must be one of .*, got 'quick'"):
        choose(untrained(SPACE, 0.0).conditionals, "quick")


def test_for_few_draws_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    conditionals = untrained(SPACE, 0.0).conditionals
    asked: list[str] = []

    def serves(method: str, *_: object) -> bool:
        asked.append(method)
        return method == "incremental"

    monkeypatch.setattr("neurise.sampling.reverse.serves", serves)
    choose(conditionals, draws=WORTHWHILE - 1)
    assert asked == ["incremental"]
    asked.clear()
    choose(conditionals, draws=WORTHWHILE)
    assert asked == ["fused", "graphs", "incremental"]
