"""Several processes, started by torchrun, that train one model or draw from one.

Every process draws the whole batch from the same random numbers and takes its slice, so that a run does not depend on how
many there are. What only one may do, writing files and talking to the user, is the leader's; what the clock or the user decide is
agreed upon, so that all processes always do the same.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor
from torch import distributed as torch_distributed

from neurise import devices

TEAM: ContextVar[Team | None] = ContextVar("team", default=None)
"""The processes that this one trains with; None where it is alone."""


class Team:
    """The processes of one run, as one of them sees it."""

    def __init__(self, rank: int, size: int, device: torch.device) -> None:
        self.rank, self.size, self.device = rank, size, device
        self._part = 1.0  # of the batch that was shared last

    @property
    def is_leader(self) -> bool:
        """Whether this process is the one that writes and speaks."""
        return self.rank == 0

    def slice(self, n: int) -> slice:
        """Which of n things are this process's: as many as any other's to within one."""
        return slice(n * self.rank // self.size, n * (self.rank + 1) // self.size)

    def share(self, drawn: Any) -> tuple[Any, ...]:
        """Cut this process's part out of a batch that all of them drew alike."""
        n = _length(drawn)
        if n < self.size:
            raise ValueError(f"a batch of {n} cannot be shared by {self.size} processes; use a larger batch_size")
        own = self.slice(n)
        self._part = (own.stop - own.start) / n
        return tuple(None if part is None else part[own] for part in drawn)

    def average(self, tensors: Sequence[Tensor]) -> None:
        """Average means over the parts of a batch, weighted by the parts' sizes, to means over all of it, in place."""
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors]).mul_(self._part)
        torch_distributed.all_reduce(flat)
        for tensor, total in zip(tensors, torch.split(flat, [tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(total.view_as(tensor))

    def joined(self, own: Tensor, n: int) -> Tensor:
        """Put together what each process computed of its slice of n examples, the same for all processes."""
        whole = torch.zeros((n, *own.shape[1:]), dtype=own.dtype, device=own.device)
        whole[self.slice(n)] = own
        torch_distributed.all_reduce(whole)
        return whole

    def agree(self, number: float, flag: bool) -> tuple[float, bool]:
        """Take the leader's number, and a flag that is up if anybody's is."""
        said = torch.tensor([number if self.is_leader else 0.0, float(flag)], dtype=torch.float64)
        torch_distributed.all_reduce(said)
        return float(said[0]), bool(said[1] > 0)

    def gather(self, own: Any) -> list[Any] | None:
        """Bring something of every process to the leader, in the order of ranks; None for the others."""
        everything: list[Any] | None = [None] * self.size if self.is_leader else None
        torch_distributed.gather_object(own, everything)
        return everything

    def seed(self, seed: int | None) -> int | None:
        """Make this process's own seed of one for all; without one, each process takes fresh random numbers.

        It is a hash of the seed and the rank: no two processes share random numbers, and the same seed with the same number
        of processes gives the same ones.
        """
        if seed is None:
            return None
        return int.from_bytes(hashlib.sha256(f"{seed} of process {self.rank}".encode()).digest()[:7])


def launched() -> bool:
    """Whether torchrun, or anything that sets the same variables, has started this process as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and all(name in os.environ for name in ("RANK", "MASTER_ADDR"))


def current() -> Team | None:
    """Return the team that this process has joined, if any."""
    return TEAM.get()


def is_leader() -> bool:
    """Whether this process may write and speak: it is alone, or the first of its team."""
    team = current()
    return team is None or team.is_leader


@contextmanager
def joined(device: str | torch.device | None = None) -> Iterator[Team | None]:
    """Join the other processes that torchrun has started; None where this process is alone.

    Each takes the GPU of its number on the machine, unless it is told another device, and all of them wait for each other.
    Inside, ``fit`` trains one model with all processes.
    """
    if not launched():
        yield None
        return
    place = devices.resolve(device)
    if place.type == "cuda":
        if device is None or str(device) == "cuda":
            local = int(os.environ.get("LOCAL_RANK", "0"))
            if local >= torch.cuda.device_count():
                raise ValueError(f"process {local} has no GPU of its own: this machine has {torch.cuda.device_count()}")
            place = torch.device("cuda", local)
        torch.cuda.set_device(place)
    torch_distributed.init_process_group("cpu:gloo,cuda:nccl" if place.type == "cuda" else "gloo")
    team = Team(torch_distributed.get_rank(), torch_distributed.get_world_size(), place)
    token = TEAM.set(team)
    try:
        yield team
        torch_distributed.barrier()  # none takes its connections down while another still uses them
    finally:
        TEAM.reset(token)
        torch_distributed.destroy_process_group()


def agreed(number: float) -> float:
    """Take the leader's number in the place of one that differs from process to process, as a clock's does."""
    team = current()
    return number if team is None else team.agree(number, flag=False)[0]


@contextmanager
def leader_first() -> Iterator[None]:
    """Let the leader do something before the others do: they find what it has left, a download say."""
    team = current()
    if team is not None and not team.is_leader:
        torch_distributed.barrier()
    yield
    if team is not None and team.is_leader:
        torch_distributed.barrier()


def _length(drawn: Any) -> int:
    return len(next(part for part in drawn if part is not None))
