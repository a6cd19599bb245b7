"""Small conditionals with random weights: every context has its own answer, and nothing is trained."""

import torch

from neurise import discovery, exact
from neurise.conditionals.base import Conditionals, Frame
from neurise.conditionals.known_sites import KnownSites
from neurise.conditionals.network_conditionals import NetworkConditionals
from neurise.noise.round_robin import RoundRobin
from neurise.space import Space


class Untrained:
    """Stands for a fitted model, as the exact tools see one."""

    def __init__(self, conditionals: Conditionals) -> None:
        self.conditionals = conditionals
        self.space_ = conditionals.noise.space
        self.order_ = range(self.space_.sites)

    def label_terms(self, y: object) -> list[tuple[torch.Tensor | None, float]]:
        return [(None, 1.0)]

    def chain_law(
        self, label: torch.Tensor | None, start: torch.Tensor | None = None, sweeps: dict[int, int] | None = None
    ) -> torch.Tensor:
        return exact.chain_law(self.conditionals, label, start, sweeps=sweeps)


def untrained(
    space: Space,
    keep_prob: float,
    cycles: int = 1,
    *,
    network: str = "site_mlp",
    hide_noised: bool = True,
    scale: float = 2.0,
    constant: tuple[int, ...] | None = None,
) -> Untrained:
    noise = RoundRobin(space, keep_prob, cycles)
    module = discovery.find("neurise.networks", network)(space, noise.num_steps, width=8, depth=2)
    generator = torch.Generator().manual_seed(7)
    module.reset(generator)
    output = module.head if network == "site_mlp" else module.output
    torch.nn.init.normal_(output, std=scale, generator=generator)
    only = torch.tensor(constant or [-1] * space.sites)
    frame = Frame(noise, 0, only)
    answers = NetworkConditionals(module.double(), frame, hide_noised=hide_noised)
    return Untrained(KnownSites(answers, only, unseen=0.0) if constant else answers)
