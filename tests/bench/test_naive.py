"""The naive reference costs more and draws the same."""

import chains
import pytest
import torch

from neurise.bench import naive

OTHERS = {"constant", "heads", "site_input", "sizes"}
KINDS = {name: kind for name, kind in chains.KINDS.items() if not kind.keys() & OTHERS}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_same_uniforms_give_the_same_rows(kind: dict) -> None:
    conditionals, n = chains.make(**kind), 200
    x = conditionals.noise.start(n, generator=torch.Generator().manual_seed(0))
    y = chains.labels(conditionals, n)
    drawn = naive.reverse(conditionals, chains.site_mlp(conditionals), x, y, generator=torch.Generator().manual_seed(1))
    chains.assert_same_rows(conditionals, drawn, x, seed=1)


def test_it_can_end_early() -> None:
    conditionals = chains.make()
    x = conditionals.noise.start(50, generator=torch.Generator().manual_seed(0))
    drawn = naive.reverse(
        conditionals, chains.site_mlp(conditionals), x, generator=torch.Generator().manual_seed(1), steps=2
    )
    assert torch.equal(drawn[:, :4], x[:, :4])  # the last two of six sites come first
    assert not torch.equal(drawn, x)


def test_it_descends_the_loss_of_the_library() -> None:
    conditionals = chains.make()
    network = chains.site_mlp(conditionals)
    rows = conditionals.noise.start(500, generator=torch.Generator().manual_seed(0))
    rows[:, 1:] = rows[:, :1]  # all sites equal: easy to learn
    found = naive.train(conditionals, network, rows, 100, 256, generator=torch.Generator().manual_seed(1))
    assert len(found) == 100
    t = torch.arange(conditionals.noise.num_steps)
    x, u = conditionals.noise.corrupt(rows[: len(t)], t, generator=torch.Generator()), conditionals.noise.site(t)
    weight, hidden = naive._first_layer(network), conditionals.hidden(t)
    concatenated = naive._logits(network, weight, t, u, x, hidden, None)
    torch.testing.assert_close(concatenated, network(t, u, x, hidden, None))
    assert sum(found[-20:]) < 0.8 * sum(found[:20])
