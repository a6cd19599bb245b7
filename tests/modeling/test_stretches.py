"""A stretch of steps of one row is learnt as single steps are: the same logits, the same gradients, the same mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest
import tiny
import torch

import neurise
from neurise import losses
from neurise.conditionals.base import Frame
from neurise.modeling.model import Run
from neurise.modeling.round_robin_objective import Example, RoundRobinObjective
from neurise.modeling.stretches import stretches_of
from neurise.networks.pairwise_terms import PairwiseTerms, Sum
from neurise.networks.parts.stack import Stack
from neurise.networks.site_mlp import SiteMLP
from neurise.noise.base import SiteNoise
from neurise.noise.masked_round_robin import MaskedRoundRobin
from neurise.noise.round_robin import RoundRobin
from neurise.rows import Batch
from neurise.schema import learn_schema
from neurise.space import Space

CLASSES = 2
NOISES = {
    "hard": (RoundRobin, {"keep_prob": 0.0}),
    "soft": (RoundRobin, {"keep_prob": 0.4, "cycles": 2}),
    "hard, two cycles": (RoundRobin, {"keep_prob": 0.0, "cycles": 2}),
    "masked": (MaskedRoundRobin, {"keep_prob": 0.4, "cycles": 2}),
}
SPACES = [Space(sites=5, states=2), Space(sites=4, states=3)]

in_spaces = pytest.mark.parametrize("space", SPACES, ids=str)
with_noises = pytest.mark.parametrize("noise", NOISES)


def made(name: str, space: Space, **options: Any) -> SiteNoise:
    kind, own = NOISES[name]
    return kind(space, **{**own, **options})


def stack(space: Space, steps: int, *, heads: str, clean: bool, members: int = 2, site_input: str = "one_hot") -> Stack:
    """Networks with pairwise terms and without, in float64, whose weights are all away from zero."""
    generator, networks = torch.Generator().manual_seed(0), []
    for _ in range(members):
        terms = PairwiseTerms(space, steps, classes=CLASSES, clean=clean)
        form = {"heads": heads, "residual": True, "site_input": site_input}
        mlp = SiteMLP(space, steps, width=6, depth=2, classes=CLASSES, **form)
        networks.append(Sum([terms, mlp]))
    found = Stack(networks)
    found.reset(generator)
    for parameter in found.parameters():
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
    return found.double()


def objective(
    noise: SiteNoise, *, constant: bool = False, heads: str = "site", site_input: str = "one_hot", **options: Any
) -> RoundRobinObjective:
    known = torch.full((noise.space.sites,), -1)
    if constant:
        known[1] = 1
    form = {"heads": heads, "site_input": site_input}
    network = stack(noise.space, noise.num_steps, clean=options.get("clean", 0) > 0, **form)
    own = {"hide_noised": True, "stretch": 3, **options}
    return RoundRobinObjective(network, Frame(noise, CLASSES, known), losses.cross_entropy, **own)


def rows(space: Space, n: int = 24) -> Batch:
    x = space.uniform(n, generator=torch.Generator().manual_seed(1))
    return Batch(x, torch.arange(n) % CLASSES, torch.arange(n) % 2)


def one_by_one(drawn: Example, states: int) -> list[Example]:
    """The questions of the stretches as single ones: a row is told what each step makes of its site."""
    x, hidden, found = drawn.x.clone(), drawn.hidden.clone(), []
    everyone = torch.arange(len(x))
    for k in range(drawn.t.shape[1]):
        u = drawn.u[:, k]
        found.append(Example(drawn.t[:, k], u, x.clone(), hidden.clone(), drawn.y, drawn.x_u[:, k], drawn.fold))
        assert drawn.after is not None
        token = drawn.after[:, k] if drawn.after.shape[1] else torch.full_like(u, states)
        gone = token == states
        hidden[everyone, u] |= gone
        x[everyone, u] = torch.where(gone, x[everyone, u], token.to(x.dtype))
    return found


@with_noises
@in_spaces
@pytest.mark.parametrize(("heads", "site_input"), [("shared", "one_hot"), ("site", "one_hot"), ("shared", "number")])
@pytest.mark.parametrize("clean", [0.0, 0.5])
@pytest.mark.parametrize("hide_noised", [True, False])
def test_logits_and_gradients_are_those_of_single_questions(
    noise: str, space: Space, heads: str, site_input: str, clean: float, hide_noised: bool
) -> None:
    form = {"heads": heads, "site_input": site_input}
    learnt = objective(made(noise, space), constant=True, clean=clean, hide_noised=hide_noised, **form)
    drawn = learnt.draw(rows(space), generator=torch.Generator().manual_seed(2))
    together = learnt.network(*drawn[:5], drawn.after)
    single = [learnt.network(*question[:5]) for question in one_by_one(drawn, space.states)]
    torch.testing.assert_close(together, torch.stack(single, dim=1))
    pull = torch.randn(together.shape, generator=torch.Generator().manual_seed(3), dtype=together.dtype)
    parameters = list(learnt.network.parameters())
    ours, theirs = (
        torch.autograd.grad((answer * pull).sum(), parameters, materialize_grads=True)
        for answer in (together, torch.stack(single, dim=1))
    )
    for first, second in zip(ours, theirs, strict=True):
        torch.testing.assert_close(first, second)


@pytest.mark.parametrize("noise", [name for name in NOISES if name != "masked"])  # a mask hides a site by itself
def test_questions_show_what_single_ones_would(noise: str) -> None:
    """What is hidden, what is asked for and what changes are those of the chain at each time."""
    chain = made(noise, Space(4, 3))
    learnt = objective(chain, constant=True)
    drawn = learnt.draw(rows(chain.space), generator=torch.Generator().manual_seed(2))
    for question in one_by_one(drawn, chain.space.states):
        assert torch.equal(question.u, chain.site(question.t))
        own = torch.nn.functional.one_hot(question.u, chain.space.sites).bool()
        erased = chain.erased(question.t) | (learnt.frame.constant >= 0)
        assert torch.equal(question.hidden | own, erased | own)
        expected = chain.target(rows(chain.space).x, question.x, question.u)
        assert torch.equal(question.x_u, expected)


@pytest.mark.parametrize("noise", ["soft", "masked"])
def test_a_stretch_follows_the_law_of_the_chain(noise: str) -> None:
    """After two steps of a stretch a row has the law of the noised data two steps later, site by site."""
    chain, n = made(noise, Space(4, 3), cycles=1), 40_000
    learnt = objective(chain, stretch=4)  # one stretch of all steps, from time 0
    x = torch.ones(n, 4, dtype=torch.uint8)
    drawn = learnt.draw(Batch(x, torch.zeros(n, dtype=torch.int64)), generator=torch.Generator().manual_seed(0))
    assert drawn.after is not None
    law = chain.log_noised_token(torch.tensor(1), torch.tensor(1)).exp()
    for k in range(4):
        counts = torch.bincount(drawn.after[:, k], minlength=chain.tokens) / n
        spread = (law * (1 - law) / n).sqrt()
        assert bool(((counts - law).abs() <= 6 * spread + 1e-12).all())


@pytest.mark.parametrize(("steps", "length"), [(10, 3), (7, 7), (9, 4), (5, 1), (3, 8), (100, 32)])
def test_stretches_count_every_step_alike(steps: int, length: int) -> None:
    places = torch.arange(steps) * 2
    cut = stretches_of(places, length)
    total = torch.zeros(2 * steps).index_add_(0, cut.steps.flatten(), cut.weight.flatten())
    torch.testing.assert_close(total[places], torch.full((steps,), cut.steps.numel() / steps))
    assert torch.equal(cut.steps, cut.steps[:, :1] + 2 * torch.arange(cut.steps.shape[1]))
    assert cut.weight.mean().item() == pytest.approx(1, abs=1e-6)


@with_noises
def test_the_mean_loss_is_that_of_single_questions(noise: str) -> None:
    """Over all rows and stretches the losses average to the mean over steps; hard noise leaves nothing to chance."""
    chain = made(noise, Space(5, 2))
    learnt, n = objective(chain, constant=True), 4000
    x = Space(5, 2).uniform(1, generator=torch.Generator().manual_seed(1)).expand(n, -1).contiguous()
    batch = Batch(x, torch.zeros(n, dtype=torch.int64))
    parts = []
    for each in (learnt, learnt.one_by_one()):
        drawn = each.draw(batch, generator=torch.Generator().manual_seed(4))
        parts.append(each.losses(each.network, drawn).detach())
    error = (parts[0].var() / n + parts[1].var() / n).sqrt()  # stratified draws spread less than this
    assert abs(float(parts[0].mean() - parts[1].mean())) <= 5 * float(error)


def test_a_fold_is_kept_from_its_member_in_every_question() -> None:
    learnt = objective(made("hard", Space(4, 3)), folds=5)
    drawn = learnt.draw(rows(Space(4, 3)), generator=torch.Generator().manual_seed(2))
    assert drawn.fold is not None
    losses_of = learnt.losses(learnt.network, drawn._replace(fold=torch.zeros_like(drawn.fold)))
    gradients = torch.autograd.grad(losses_of.sum(), list(learnt.network.parameters()))
    assert all(float(gradient[0].abs().max()) == 0 for gradient in gradients)  # of member 0
    assert any(float(gradient[1].abs().max()) > 0 for gradient in gradients)
    assert learnt.scores(learnt.network, drawn).shape == (24,)


def fit(X: np.ndarray, **params: Any) -> Any:
    own = {"chain__stretch": 3, "training__learning_rate": 0.03, "width": 16, **params}
    return tiny.model(**own).fit(X, max_steps=150)


@pytest.mark.parametrize("params", [{}, {"keep_prob": 0.3, "cycles": 2}, {"corrector__clean": 0.4}], ids=str)
def test_a_law_is_learnt_from_stretches(params: dict[str, Any]) -> None:
    space = Space(4, 2)
    law = oracles.random_law(space, seed=3)
    X = oracles.draw(space, law, 4000, seed=0)
    model = fit(X, members=2, **params)
    assert oracles.tv(neurise.exact.law(model).numpy(), law) < 0.5 * oracles.tv(np.full(space.size, 1 / 16), law)


def test_a_batch_of_stretches_has_fewer_rows() -> None:
    X = tiny.spins(60, sites=6)
    model: Any = tiny.model(chain__stretch=3, training__batch_size=64)
    model.begin_fit(torch.device("cpu"))
    model.schema_, own, _ = learn_schema(X, None, None, None, alphabet=None, order=None)
    model.check()
    job = model.jobs(own, None, Run(0, None, False, 3, None, None, 0.0))[0]
    assert job.settings.batch_size == 21
    assert dict(tiny.model(chain__stretch=3).fit(X, max_steps=3).summary())["stretch"] == 3


def test_stretches_resume_and_are_fitted_together(tmp_path: Path) -> None:
    X = tiny.spins(60, sites=6)
    make = lambda: tiny.model(chain__stretch=3, members=2)  # noqa: E731
    whole = make().fit(X, max_steps=20)
    make().fit(X, max_steps=20, checkpoint=tmp_path / "run", callback=lambda step, *_: step >= 10)
    assert tiny.same_weights(whole, make().fit(X, max_steps=20, checkpoint=tmp_path / "run", resume=True))
    several = neurise.fit_many(make(), X, seeds=[0, 1], max_steps=10)
    assert all(np.isfinite(model.log_prob(X)).all() for model in several)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"network": "local_mlp"}, "local_mlp"),
        ({"corrector__clean": 0.3, "corrector__anytime": True}, "anytime"),
        ({"chain__stretch": 0}, "stretch"),
    ],
)
def test_stretches_are_refused_where_they_cannot_be_learnt(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tiny.model(**{"chain__stretch": 3, **params}).fit(tiny.spins(), max_steps=2)
