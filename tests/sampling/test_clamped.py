"""Sampling with sites given, against the exact conditionals of the sampler's own law."""

import chains
import numpy as np
import oracles
import pytest
import torch
from fixtures import untrained

from neurise import exact
from neurise.sampling import clamped
from neurise.sampling.clamped import sample_clamped
from neurise.space import Space

SPACE = Space(sites=3, states=4)
PROCESSES = {
    "hard": {"keep_prob": 0.0},
    "hard, nothing hidden": {"keep_prob": 0.0, "hide_noised": False},
    "soft": {"keep_prob": 0.5, "cycles": 2},
    "very soft": {"keep_prob": 0.9, "cycles": 2},
}


def given_law(law: torch.Tensor, values: dict[int, int]) -> np.ndarray:
    """The law of the sampler, conditioned by enumeration."""
    kept = np.array([all(x[site] == v for site, v in values.items()) for x in oracles.configurations(SPACE)])
    law = law.numpy() * kept
    return law / law.sum()


def ask(values: dict[int, int]) -> tuple[torch.Tensor, torch.Tensor]:
    tokens, given = torch.zeros(1, 3, dtype=torch.uint8), torch.zeros(1, 3, dtype=torch.bool)
    for site, value in values.items():
        tokens[0, site], given[0, site] = value, True
    return tokens, given


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("values", [{0: 1}, {2: 3}, {1: 2}, {0: 1, 2: 3}], ids=str)
def test_rows_follow_the_law_given_what_is_given(process: str, values: dict[int, int]) -> None:
    n = 30_000
    model = untrained(SPACE, **PROCESSES[process], scale=1.0)  # type: ignore[arg-type]
    drawn = sample_clamped(model.conditionals, n, *ask(values), generator=torch.Generator().manual_seed(0))
    expected = given_law(exact.law(model), values)
    shares = torch.bincount(SPACE.index(drawn.x), minlength=SPACE.size).numpy() / n
    # n rows picked from particles worth `effective` independent ones: variances add, so they count as this many.
    worth = 1 / (1 / n + (0 if drawn.exact else 1 / float(drawn.effective.sum())))
    assert oracles.tv(shares, expected) <= oracles.sampled_tv_tolerance(expected, worth)


@pytest.mark.parametrize("process", ["hard", "soft"])
def test_every_row_may_be_given_something_of_its_own(process: str) -> None:
    n = 2_000
    model = untrained(SPACE, **PROCESSES[process], scale=1.0)  # type: ignore[arg-type]
    early, late = ask({0: 1}), ask({2: 3})
    tokens, given = (torch.cat([a.expand(n, -1), b.expand(n, -1)]) for a, b in zip(early, late, strict=True))
    drawn = sample_clamped(model.conditionals, 2 * n, tokens, given, generator=torch.Generator().manual_seed(1))
    law = exact.law(model)
    for rows, values in ((drawn.x[:n], {0: 1}), (drawn.x[n:], {2: 3})):
        expected = given_law(law, values)
        shares = torch.bincount(SPACE.index(rows), minlength=SPACE.size).numpy() / n
        # Rows are independent. Resampling one of K weighted particles is off by at most about 1 / (effective number).
        bias = 1 / float(drawn.effective.mean())
        assert oracles.tv(shares, expected) <= oracles.sampled_tv_tolerance(expected, n) + bias


def test_sites_generated_first_need_no_weights() -> None:
    conditionals = untrained(SPACE, 0.0).conditionals
    generator = torch.Generator().manual_seed(2)
    first = sample_clamped(conditionals, 50, *ask({2: 3, 1: 0}), generator=generator)
    assert first.exact
    assert first.effective.tolist() == [50.0]
    assert (first.x[:, 1:] == torch.tensor([0, 3])).all()
    assert not sample_clamped(conditionals, 50, *ask({0: 1}), generator=generator).exact


def test_simply_holding_the_sites_would_be_seen_to_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tolerance above is tight enough to notice what happens without weights."""
    n, values = 30_000, {0: 1}
    model = untrained(SPACE, 0.0, scale=1.0)
    monkeypatch.setattr(clamped, "_pick", lambda table, token: torch.zeros(token.shape, dtype=torch.float64))
    drawn = sample_clamped(model.conditionals, n, *ask(values), generator=torch.Generator().manual_seed(0))
    expected = given_law(exact.law(model), values)
    shares = torch.bincount(SPACE.index(drawn.x), minlength=SPACE.size).numpy() / n
    assert oracles.tv(shares, expected) > 2 * oracles.sampled_tv_tolerance(expected, n / 2)


def test_the_impossible_leaves_no_particles() -> None:
    conditionals = untrained(SPACE, 0.0, constant=(2, -1, -1)).conditionals
    drawn = sample_clamped(conditionals, 10, *ask({0: 1}), generator=torch.Generator().manual_seed(0))
    assert drawn.effective.tolist() == [0.0]


@pytest.mark.parametrize("process", [{}, {"keep_prob": 0.5, "cycles": 2}], ids=["hard", "soft"])
@pytest.mark.parametrize("values", [{0: 1}, {1: 0}, {1: 2, 2: 3}], ids=str)
def test_an_unseen_symbol_may_be_given_or_drawn(process: dict, values: dict[int, int]) -> None:
    n = 30_000
    conditionals = chains.make(sites=3, states=4, constant={1: 2}, unseen=0.1, **process)
    drawn = sample_clamped(conditionals, n, *ask(values), generator=torch.Generator().manual_seed(0))
    expected = given_law(exact.chain_law(conditionals), values)
    shares = torch.bincount(SPACE.index(drawn.x), minlength=SPACE.size).numpy() / n
    worth = 1 / (1 / n + (0 if drawn.exact else 1 / float(drawn.effective.sum())))  # as above
    assert oracles.tv(shares, expected) <= oracles.sampled_tv_tolerance(expected, worth)


def test_labels_that_are_not_given_are_inferred() -> None:
    """Two classes that show different tokens at site 0: given that token, the other sites must come from its class."""
    from neurise import NeurISE, Training

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)
    X = np.column_stack([y * 2 + rng.integers(0, 2, 4000), (y + (rng.random(4000) < 0.1)) % 2])
    model = NeurISE(width=16, depth=1, steps=150, training=Training(batch_size=256), loss="cross_entropy").fit(
        X, y, verbose=False
    )
    clamp = np.ma.masked_all(2, int)
    clamp[0] = 3
    n = 4000
    rows = model.sample(n, clamp=clamp, seed=0)
    law = exact.law(model).numpy().reshape(4, 4)[3]
    share = (rows[:, 1] == 1).mean()
    assert abs(share - law[1] / law.sum()) < 5 * 0.5 / (n / 2) ** 0.5
    assert (rows[:, 0] == 3).all()
