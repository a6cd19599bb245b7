"""Networks that answer together."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import tiny
import torch

import neurise
from neurise import exact
from neurise.conditionals import NetworkConditionals
from neurise.networks._committee import Committee, agreed
from neurise.networks.site_mlp import SiteMLP
from neurise.noise.round_robin import RoundRobin
from neurise.space import Space

SPACE = Space(sites=4, states=3)
MAKE = partial(SiteMLP, SPACE, 4, width=6, depth=2, heads="site", residual=True)


def committee(members: int = 3) -> Committee:
    with torch.device("meta"):
        made = Committee(MAKE, members)
    generator = torch.Generator().manual_seed(1)
    made.to_empty(device="cpu").reset(generator)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    return made.double()


def member(whole: Committee, number: int) -> SiteMLP:
    alone = MAKE().double()
    alone.load_state_dict({name: whole.members[name.replace(".", "/")][number].detach() for name in whole.names})
    return alone


def examples(n: int = 20) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    u = torch.randint(4, (n,), generator=generator)
    return u, u, SPACE.uniform(n, generator=generator), torch.rand(n, 4, generator=generator) < 0.3


def test_every_member_answers_for_itself() -> None:
    whole, inputs = committee(), examples()
    logits = whole(*inputs)
    assert logits.shape == (20, 3, 3)
    for number in range(3):
        torch.testing.assert_close(logits[:, number], member(whole, number)(*inputs), rtol=1e-12, atol=1e-12)
    assert not torch.allclose(logits[:, 0], logits[:, 1])


def test_together_they_say_the_geometric_mean() -> None:
    whole, inputs = committee(), examples()
    noise = RoundRobin(SPACE, 0.0, 1)
    conditionals = NetworkConditionals(whole, noise, torch.full((4,), -1), hide_noised=True, width=6)
    t, u, x, _ = inputs
    found = conditionals.log_conditional(t, u, x).exp()
    probs = np.stack([member(whole, k)(t, u, x, conditionals.hidden(t)).softmax(-1).detach().numpy() for k in range(3)])
    product = probs.prod(axis=0) ** (1 / 3)
    np.testing.assert_allclose(found.detach(), product / product.sum(-1, keepdims=True), rtol=1e-12)
    certain = torch.tensor([[0.0, -torch.inf], [0.0, -torch.inf]])
    assert torch.equal(agreed(certain), torch.tensor([0.0, -torch.inf]))


def test_each_member_learns_as_if_it_were_alone() -> None:
    model = tiny.model(members=3, heads="site").fit(tiny.spins(), max_steps=10)
    objective = model.objective_
    drawn = objective.draw(
        model.space_.uniform(50, generator=torch.Generator().manual_seed(0)),
        None,
        generator=torch.Generator().manual_seed(1),
    )
    whole = objective.network.double().requires_grad_(True)
    objective.losses(whole, drawn).mean().backward()
    for number in range(3):
        alone = tiny.model(heads="site")
        alone.schema_, alone.device_ = model.schema_, model.device_
        lone = alone._built()
        lone.network.to_empty(device="cpu").double()
        lone.network.load_state_dict({n: whole.members[n.replace(".", "/")][number].detach() for n in whole.names})
        lone.losses(lone.network, drawn).mean().backward()
        for name, parameter in lone.network.named_parameters():
            own = whole.members[name.replace(".", "/")].grad
            if own is None or parameter.grad is None:  # without classes there are no labels to learn
                assert name == "label"
                continue
            torch.testing.assert_close(3 * own[number], parameter.grad, rtol=1e-9, atol=1e-12)


def test_a_committee_starts_from_different_weights_and_a_seed_gives_the_same(tmp_path: Path) -> None:
    one, two = (tiny.model(members=2).fit(tiny.spins(), max_steps=20) for _ in range(2))
    assert tiny.same_weights(one, two)
    token = one.objective_.network.members["token"]
    assert not torch.allclose(token[0], token[1])
    assert one.num_parameters_ == 2 * tiny.model().fit(tiny.spins(), max_steps=1).num_parameters_
    one.save(tmp_path / "model")
    law = exact.law(one)
    assert torch.equal(exact.law(neurise.load(tmp_path / "model")), law)
    # The law of the samples is that of the agreed conditionals, so it sums to one.
    assert abs(float(law.sum()) - 1) < 1e-12
