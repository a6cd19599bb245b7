"""What the peers' network is shown of tokens, number by number."""

from __future__ import annotations

import pytest
import torch

from neurise.networks.joint_mlp import JointMLP
from neurise.space import Space

SPACE = Space(sites=4, states=3)
NUMBERS = {"spins": (-1.0, 0.0, 1.0, 0.0), "integers": (-1.0, -1 / 3, 1 / 3, 1.0)}
"""Of the tokens 0, 1, 2 and a mask."""


def network(inputs: str) -> JointMLP:
    made = JointMLP(SPACE, width=5, depth=1, classes=2, inputs=inputs).double()
    generator = torch.Generator().manual_seed(3)
    made.reset(generator)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    return made


@pytest.mark.parametrize("inputs", ["one_hot", "spins", "integers"])
@torch.no_grad()
def test_every_term_is_where_it_should_be(inputs: str) -> None:
    f = network(inputs)
    x = torch.randint(4, (20, 4), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    t, y = torch.linspace(0, 1, 20, dtype=torch.float64), torch.arange(20) % 2
    found = f(t, x, y)
    for k in range(20):
        h = f.bias + (2 * t[k] - 1) * f.time + f.label[y[k]]
        for site, token in enumerate(x[k].tolist()):
            if inputs != "one_hot":
                h = h + NUMBERS[inputs][token] * f.token[site]
            elif token < 3:
                h = h + f.token[3 * site + token]
        expected = f.output(f.hidden(h)).view(4, 3)
        torch.testing.assert_close(found[k], expected, rtol=1e-10, atol=1e-10)


def test_spins_of_one_state_are_numbers() -> None:
    made = JointMLP(Space(2, 1), width=2, depth=1, inputs="spins")
    made.reset(torch.Generator().manual_seed(0))
    assert made(torch.zeros(1), torch.tensor([[0, 1]])).isfinite().all()


def test_unknown_inputs_are_refused() -> None:
    with pytest.raises(ValueError, match="inputs must be one of 'one_hot', 'spins', 'integers', got 'bits'"):
        network("bits")
