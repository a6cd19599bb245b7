"""What models that move all sites at once share: sites that never vary are never noised."""

import pytest
import torch

from neurise import discovery
from neurise.modeling.joint import Denoiser
from neurise.networks.joint_mlp import JointMLP
from neurise.space import Space

SPACE = Space(sites=4, states=3)
CONSTANT = torch.tensor([-1, 2, -1, 0])


@pytest.fixture(params=["uniform", "absorbing"])
def denoiser(request: pytest.FixtureRequest) -> Denoiser:
    noise = discovery.find("neurise.noise", request.param)(SPACE)
    return Denoiser(JointMLP(SPACE, width=4, depth=1), noise, CONSTANT, width=4)


def test_constant_sites_are_never_noised(denoiser: Denoiser) -> None:
    n, generator = 500, torch.Generator().manual_seed(0)
    x_0 = torch.tensor([[1, 2, 0, 0]], dtype=torch.uint8).expand(n, -1)
    for x in (denoiser.corrupt(x_0, torch.zeros(n), generator=generator), denoiser.start(n, generator=generator)):
        assert (x[:, 1] == 2).all()
        assert (x[:, 3] == 0).all()
        assert (x[:, 0] != 1).any()  # pure noise elsewhere
        assert (x[:, 2] != 0).any()
    assert denoiser.varies.tolist() == [True, False, True, False]


def test_their_laws_are_certain(denoiser: Denoiser) -> None:
    start = denoiser.start_law()
    tokens = denoiser.noise.tokens
    assert start.shape == (SPACE.sites, tokens)
    torch.testing.assert_close(start.sum(-1), torch.ones(SPACE.sites, dtype=torch.float64))
    assert start[1].tolist() == [float(token == 2) for token in range(tokens)]
    assert start[3].tolist() == [float(token == 0) for token in range(tokens)]
    even = torch.full((5, SPACE.sites, tokens), 1 / tokens).log()
    settled = denoiser.settled(even).exp()
    assert settled[:, 1].tolist() == [[float(token == 2) for token in range(tokens)]] * 5
    torch.testing.assert_close(settled[:, 0], even[:, 0].exp())
