"""Trajectories: every state of a chain, the site that each step redraws, and the law that it draws from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from neurise import devices
from neurise.alphabet import Alphabet
from neurise.sampling.stepwise import Move
from neurise.schema import Schema


class Chains(NamedTuple):
    """Chains that are about to run: where they start, how many steps there are, and the steps as they are made."""

    start: Tensor  # (n, sites) tokens in the order of the model
    time: int  # of the start
    steps: int
    tokens: int  # that a site may hold on the way
    moves: Iterator[Move]
    joint: bool = False  # whether a step moves all sites


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The states of n chains, from the first to the last; ``trajectory[k]`` is the state after k steps in the user's symbols.

    Sites are numbered as the user's columns are, and the tokens of a site are the places of its alphabet. A token that is no
    place of it (as many as there are states) is a mask, the symbol that some kinds of noise have of their own.
    """

    schema: Schema
    tokens: np.ndarray
    """(steps + 1, n, sites) whole numbers."""
    times: np.ndarray
    """(steps + 1,): the time of the chain at each state. Time 0 is the data; sweeps do not change the time."""
    sites: np.ndarray | None
    """(steps, n): the site that each step redraws; None where every step moves all of them."""
    laws: np.ndarray
    """(steps, n, tokens): what each token was drawn from, the reverse kernel. (steps, n, sites, tokens) where all move."""
    conditionals: np.ndarray | None
    """(steps, n, states): the learnt conditional of the site given the others, where the chain asks for one."""

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, step: int) -> Any:
        """Return the state after so many steps, (n, sites): as ``sample`` does, masked where a site holds noise's own symbol."""
        tokens = self.tokens[step]
        sizes = np.array(self.schema.space.digits)[np.argsort(self.schema.order)]
        masked = tokens >= sizes
        rows = torch.from_numpy(np.where(masked, 0, tokens).astype(np.uint8))
        found = self.schema.decode(rows[:, list(self.schema.order)], torch.Generator().manual_seed(0))
        return np.ma.MaskedArray(np.asarray(found), masked) if masked.any() else found

    @property
    def states(self) -> np.ndarray:
        """All states in the user's symbols, (steps + 1, n, sites), masked where a site holds noise's own symbol."""
        found = [self[step] for step in range(len(self))]
        masked = any(isinstance(state, np.ma.MaskedArray) for state in found)
        return np.ma.stack(found) if masked else np.stack([np.asarray(state) for state in found])

    @property
    def is_lettered(self) -> bool:
        """Whether all sites share one alphabet."""
        return isinstance(self.schema.alphabet, Alphabet)


def recorded(schema: Schema, chains: Chains) -> Trajectory:
    """Run chains to their end, and record every state."""
    (n, sites), steps, order = chains.start.shape, chains.steps, np.array(schema.order)
    wide = n * chains.tokens * (sites if chains.joint else 2) * 4 + n * sites * 2
    advice = f"ask for fewer than n={n:,} chains of {steps:,} steps"
    devices.require_memory(steps * wide, torch.device("cpu"), advice)
    tokens = np.empty((steps + 1, n, sites), dtype=np.uint8 if chains.tokens <= 256 else np.uint16)
    tokens[0][:, order] = chains.start.cpu().numpy()
    times, moved, laws, conditionals = [chains.time], list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()
    rows = np.arange(n)
    for number, move in enumerate(chains.moves, 1):
        tokens[number] = tokens[number - 1]
        if move.site is None:
            tokens[number][:, order] = move.token.cpu().numpy()
            law = np.empty(move.law.shape, dtype=np.float32)
            law[:, order] = probabilities(move.law)
        else:
            moved.append(order[move.site.cpu().numpy()])
            tokens[number, rows, moved[-1]] = move.token.cpu().numpy()
            law = probabilities(move.law)
        times.append(move.time)
        laws.append(law)
        if move.conditional is not None:
            conditionals.append(probabilities(move.conditional))
    return Trajectory(
        schema,
        tokens[: len(times)],
        np.array(times),
        np.stack(moved) if moved else None,
        np.stack(laws),
        np.stack(conditionals) if conditionals else None,
    )


def probabilities(log_law: Tensor) -> np.ndarray:
    """Return probabilities in float32, of laws in logarithms."""
    return log_law.double().softmax(-1).float().cpu().numpy()
