"""Conditionals from counts against a slow form of them, which counts the rows anew for every question."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from neurise import conditionals, likelihood
from neurise.conditionals import _seen, _tries
from neurise.conditionals.base import Frame
from neurise.conditionals.committee import Committee
from neurise.conditionals.counts import Counts
from neurise.modeling.loaded import load_exactly
from neurise.noise.round_robin import RoundRobin
from neurise.rows import Rows
from neurise.space import Space
from neurise.walks import log_law

MIXED = Space.of([3, 2, 4, 2])
SPACES = {"four of three": Space(sites=4, states=3), "own alphabets": MIXED, "five bits": Space(sites=5, states=2)}
each = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)


def frame_of(space: Space, classes: int = 0, **noise: Any) -> Frame:
    chain = RoundRobin(space, **{"keep_prob": 0.0, "cycles": 1, **noise})
    return Frame(chain, classes, torch.full((space.sites,), -1))


def drawn(space: Space, n: int, seed: int, classes: int = 0) -> Rows:
    """Rows of a law without structure, in which the last site has a say in the first."""
    rng = np.random.default_rng(seed)
    law = rng.gamma(0.4, size=space.size)
    x = space.configurations()[torch.from_numpy(rng.choice(space.size, n, p=law / law.sum()))]
    y = None if not classes else (x[:, 0].long() + torch.from_numpy(rng.integers(0, 2, n))) % classes
    return Rows(x, y)


# --- the slow form ---------------------------------------------------------------------------------------------------

Row = tuple[list[int], float]  # tokens, −1 for what is missing, the label last; and how often


def listed(rows: Rows) -> list[Row]:
    gaps = torch.zeros_like(rows.x, dtype=torch.bool) if rows.missing is None else rows.missing
    often = [1.0] * len(rows) if rows.weights is None else rows.weights.tolist()
    labels = [[]] * len(rows) if rows.y is None else [[label] for label in rows.y.tolist()]
    tokens = rows.x.long().masked_fill(gaps, -1).tolist()
    return [(own + label, count) for own, label, count in zip(tokens, labels, often, strict=True)]


def slow_law(
    rows: Sequence[Row], u: int, tokens: int, context: Sequence[int], leans: Sequence[float], asked: list[int]
) -> list[float]:
    """The recursion, depth by depth, with a count over all rows at each."""
    law = [1 / tokens] * tokens
    for depth, c in enumerate(leans):
        sites = context[:depth]
        alike = [(x, m) for x, m in rows if x[u] >= 0 and all(x[i] >= 0 and x[i] == asked[i] for i in sites)]
        total = sum(m for _, m in alike)
        if depth and total < _tries.LEAST:
            break
        if c != math.inf:
            seen = [sum(m for x, m in alike if x[u] == a) for a in range(tokens)]
            law = [(seen[a] + c * law[a]) / (total + c) for a in range(tokens)]
    return law


def slow_left_out(rows: list[Row], u: int, tokens: int, context: Sequence[int], leans: Sequence[float]) -> float:
    """Take every row out once, and ask for it. The rows are single observations."""
    total = 0.0
    for place, (x, _) in enumerate(rows):
        if x[u] >= 0:
            rest = rows[:place] + rows[place + 1 :]
            total += math.log(slow_law(rest, u, tokens, context, leans, x)[x[u]])
    return total


def compare(counts: Counts, trees: _tries.Trees, rows: Rows, space: Space, y: Tensor | None = None) -> None:
    x, every = space.configurations(), listed(rows)
    answers = counts.log_conditionals(x, y).exp()
    for u, tokens in enumerate(space.digits):
        for place, asked in enumerate(x.tolist()):
            asked = asked if y is None else [*asked, int(y[place])]
            slow = slow_law(every, u, tokens, trees.contexts[u], trees.concentrations[u], asked)
            np.testing.assert_allclose(answers[place, u, :tokens], slow, rtol=2e-6)  # float32 of logarithms below 16
            assert not answers[place, u, tokens:].any()


@each
def test_answers_are_those_of_the_slow_form(space: Space) -> None:
    rows = drawn(space, 150, seed=3)
    trees = _tries.grow(rows, space)
    assert max(map(len, trees.contexts)) == trees.depth >= 2
    compare(Counts.of_rows(rows, frame_of(space)), trees, rows, space)


@each
def test_the_score_is_that_of_rows_left_out_one_by_one(space: Space) -> None:
    rows = drawn(space, 70, seed=5)
    trees, every = _tries.grow(rows, space), listed(rows)
    slow = 0.0
    for u, tokens in enumerate(space.digits):
        slow += slow_left_out(every, u, tokens, trees.contexts[u], trees.concentrations[u])
    assert trees.left_out == pytest.approx(slow, rel=1e-10)


def test_the_last_concentration_of_each_site_is_the_best() -> None:
    space = SPACES["four of three"]
    rows = drawn(space, 60, seed=1)
    trees, every = _tries.grow(rows, space), listed(rows)
    assert any(len(leans) > 1 for leans in trees.concentrations)
    for u, (context, leans) in enumerate(zip(trees.contexts, trees.concentrations, strict=True)):
        scores = {}
        for c in (*_tries.CONCENTRATIONS, math.inf):
            scores[c] = slow_left_out(every, u, 3, context, [*leans[:-1], c])
        assert max(scores, key=lambda c: scores[c]) == leans[-1]


# --- what it makes of rows -------------------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("classes", [0, 3])
def test_it_is_a_law(space: Space, classes: int) -> None:
    counts = Counts.of_rows(drawn(space, 200, seed=2, classes=classes), frame_of(space, classes))
    for label in range(max(1, classes)):
        y = torch.tensor([label]).expand(space.size) if classes else None
        total = likelihood.log_prob(counts, space.configurations(), y).exp().sum()
        assert float(total) == pytest.approx(1, abs=1e-5)


def test_sites_in_another_order() -> None:
    rows, order = drawn(MIXED, 300, seed=4), (2, 0, 3, 1)
    frame = frame_of(MIXED).in_order(order)
    counts = Counts.of_rows(rows.in_order(order), frame)
    x = frame.noise.space.configurations()
    assert float(likelihood.log_prob(counts, x).exp().sum()) == pytest.approx(1, abs=1e-5)
    compare(counts, _tries.grow(rows.in_order(order), frame.noise.space), rows.in_order(order), frame.noise.space)


def test_only_sites_that_were_generated_before_are_looked_at() -> None:
    space = SPACES["four of three"]
    counts, x = Counts.of_rows(drawn(space, 500, seed=0), frame_of(space)), space.configurations()
    before = counts.log_conditionals(x)
    for u in range(space.sites):
        changed = x.clone()
        changed[:, : u + 1] = (changed[:, : u + 1] + 1) % 3
        assert torch.equal(counts.log_conditionals(changed)[:, u], before[:, u])


@pytest.mark.parametrize("classes", [0, 2])
def test_weights_that_are_counts_are_repeated_rows(classes: int) -> None:
    rows = drawn(MIXED, 90, seed=6, classes=classes)
    often = torch.from_numpy(np.random.default_rng(0).integers(0, 5, 90)).double()
    weighted, repeated = Rows(rows.x, rows.y, often), rows.take(torch.arange(90).repeat_interleave(often.long()))
    first, second = (_tries.grow(part, MIXED, classes=classes) for part in (weighted, repeated))
    assert first.contexts == second.contexts
    assert first.concentrations == second.concentrations
    assert torch.equal(first.laws, second.laws)
    assert torch.equal(first.branches, second.branches)


def test_weights_count_as_many_rows_as_they_are_worth() -> None:
    rows = drawn(MIXED, 200, seed=7)
    weights = torch.rand(200, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 0.01
    worth = float(weights.sum() ** 2 / weights.square().sum())
    assert float(_seen.seen_in(Rows(rows.x, None, weights), MIXED, 0).often.sum()) == pytest.approx(worth)
    few, same = (_tries.grow(Rows(rows.x, None, w), MIXED) for w in (weights, 0.125 * weights))
    assert torch.equal(few.laws, same.laws)


def test_labels_are_part_of_the_context_and_the_pooled_counts_stand_behind_them() -> None:
    rows, label = drawn(MIXED, 400, seed=8, classes=3), MIXED.sites
    trees, counts = _tries.grow(rows, MIXED, classes=3), Counts.of_rows(rows, frame_of(MIXED, 3))
    assert label in trees.contexts[0]  # the label goes with the first site
    compare(counts, trees, rows, MIXED, torch.arange(MIXED.size) % 3)
    # A class that was never seen, or is not told, has the answers of the contexts before it.
    seldom = Rows(rows.x[:, :], torch.zeros(400, dtype=torch.int64).index_fill(0, torch.arange(200), 1))
    both, x = Counts.of_rows(seldom, frame_of(MIXED, 3)), MIXED.configurations()
    assert torch.equal(both.log_conditionals(x, torch.tensor(2)), both.log_conditionals(x))


def test_values_that_are_missing_end_a_context() -> None:
    rows = drawn(MIXED, 250, seed=9)
    gaps = torch.rand(rows.x.shape, generator=torch.Generator().manual_seed(1)) < 0.2
    rows = Rows(rows.x, missing=gaps)
    trees = _tries.grow(rows, MIXED)
    assert trees.depth > 1
    compare(Counts.of_rows(rows, frame_of(MIXED)), trees, rows, MIXED)


def test_as_many_states_and_classes_as_there_can_be() -> None:
    space, generator = Space(2, 256), torch.Generator().manual_seed(0)
    y = torch.randint(300, (4000,), generator=generator)
    x = torch.stack([y % 256, torch.randint(256, (4000,), generator=generator)], dim=1).to(torch.uint8)
    gaps = torch.rand(x.shape, generator=generator) < 0.1
    counts = Counts.of_rows(Rows(x, y, missing=gaps), frame_of(space, 300))
    told = counts.log_conditionals(x[:5], y[:5])[torch.arange(5), 0, x[:5, 0].long()].exp()
    assert float(told.min()) > 0.5  # the first site follows from the label
    assert bool(torch.isclose(counts.log_conditionals(x, y).logsumexp(-1), torch.zeros(()), atol=1e-4).all())


def test_many_rows_give_the_empirical_law() -> None:
    space = SPACES["five bits"]
    rows = drawn(space, 60_000, seed=10)
    often = torch.bincount(space.index(rows.x), minlength=space.size) / len(rows)
    law = likelihood.log_prob(Counts.of_rows(rows, frame_of(space)), space.configurations()).exp()
    assert float((law - often).abs().sum()) / 2 < 0.003  # the truth is 0.007 away


def test_a_parity_is_found_though_no_fewer_sites_tell_of_it() -> None:
    space, even = Space(4, 2), Space(4, 2).configurations()
    x = even[even.sum(1) % 2 == 0].repeat(50, 1)
    trees = _tries.grow(Rows(x), space)
    assert trees.contexts == [[1, 2, 3], [], [], []]
    assert trees.concentrations[0][1:3] == [math.inf, math.inf]
    law = likelihood.log_prob(Counts.of_rows(Rows(x), frame_of(space)), space.configurations()).exp()
    assert float(law[space.configurations().sum(1) % 2 == 1].sum()) < 0.01


def test_independent_sites_have_no_contexts() -> None:
    x = torch.randint(3, (3000, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    assert not any(_tries.grow(Rows(x), Space(8, 3)).contexts)


def test_sites_that_never_vary_are_in_no_context() -> None:
    rows = drawn(SPACES["five bits"], 300, seed=2)
    rows.x[:, 3] = 1
    trees = _tries.grow(rows, SPACES["five bits"], ignored=torch.arange(5) == 3)
    assert all(3 not in context for context in trees.contexts)
    assert not trees.contexts[3]


# --- as one way to answer among others -------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("classes", [0, 2])
def test_all_forms_of_a_question_have_one_answer(space: Space, classes: int) -> None:
    counts = Counts.of_rows(drawn(space, 300, seed=1, classes=classes), frame_of(space, classes))
    x = space.configurations()
    y, n = (torch.arange(len(x)) % classes if classes else None), len(x)
    every, state = counts.log_conditionals(x, y), torch.zeros_like(x.T)
    walk = counts.walk(state, y, torch.zeros(1, dtype=torch.int64))
    for u in reversed(range(space.sites)):
        step = torch.tensor([u])
        assert torch.equal(counts.log_conditional(step, step, x, y), every[:, u])
        torch.testing.assert_close(log_law(walk.logits(u), space.states), every[:, u])
        walk.put(u, x[:, u])
    mixed = torch.arange(n) % space.sites
    assert torch.equal(counts.log_conditional(mixed, mixed, x, y), every[torch.arange(n), mixed])


def test_it_is_a_member_of_a_committee() -> None:
    space, frame = MIXED, frame_of(MIXED)
    members = [Counts.of_rows(drawn(space, 200, seed=seed), frame) for seed in (0, 1)]
    x, whole = space.configurations(), Committee(members, [0.3, 0.7])
    product = members[0].log_conditionals(x).exp() ** 0.3 * members[1].log_conditionals(x).exp() ** 0.7
    expected = product / product.sum(-1, keepdim=True)
    torch.testing.assert_close(whole.log_conditionals(x).exp(), expected)


@pytest.mark.parametrize("classes", [0, 2])
def test_saved_and_loaded_it_is_the_same(classes: int) -> None:
    frame = frame_of(MIXED, classes)
    counts = Counts.of_rows(drawn(MIXED, 200, seed=3, classes=classes), frame)
    with torch.device("meta"):
        made = conditionals.build(json.loads(json.dumps(counts.description())), frame)
    load_exactly(made, counts.state_dict(), torch.device("cpu"))
    x, y = MIXED.configurations(), torch.zeros(MIXED.size, dtype=torch.int64) if classes else None
    assert torch.equal(made.log_conditionals(x, y), counts.log_conditionals(x, y))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [("asks", 4, "asks .* -1 to 3"), ("branches", 10**6, "branches .* -1 to"), ("first", 10**6, "first .* places of")],
)
def test_trees_that_lead_out_of_themselves_are_refused(name: str, value: int, words: str) -> None:
    frame = frame_of(MIXED)
    counts = Counts.of_rows(drawn(MIXED, 200, seed=3), frame)
    tensors = {key: tensor.clone() for key, tensor in counts.state_dict().items()}
    tensors[name][0] = value
    with torch.device("meta"):
        made = conditionals.build(counts.description(), frame)
    with pytest.raises(ValueError, match=words):
        load_exactly(made, tensors, torch.device("cpu"))


@pytest.mark.parametrize("noise", [{"keep_prob": 0.3}, {"cycles": 2}])
def test_other_noise_is_refused(noise: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="hard noise that goes round the sites once"):
        Counts.of_rows(drawn(MIXED, 20, seed=0), frame_of(MIXED, **noise))
