"""Conditionals of an energy against the law written out: every context of every site, in several orders."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
import torch
from conditionals_cases import frame, walked

from neurise import conditionals
from neurise.conditionals.base import Frame
from neurise.conditionals.committee import Committee
from neurise.conditionals.energy_conditionals import MOST_ENTRIES, EnergyConditionals, entries
from neurise.conditionals.known_sites import KnownSites
from neurise.interactions import Interactions
from neurise.likelihood import log_prob
from neurise.sampling.reverse import sample
from neurise.space import Space

RING = [(0, 3), (1, 2), (0, 4), (2, 4), (1, 3)]
"""A ring 0 – 3 – 1 – 2 – 4 – 0, whose frontier is not its neighbours."""
SPACES = {"bits": Space(5, 2), "three": Space(5, 3), "own": Space(5, 3, (2, 3, 1, 3, 2))}


def laws(space: Space, classes: int = 0, *, order: tuple[int, ...] = (0, 1, 2, 3, 4)) -> list[Interactions]:
    """Random couplings on the ring, its sites in another order, and fields for each class."""
    rng = np.random.default_rng(3)
    place = np.argsort(order)
    edges, tables = place[np.array(RING)], rng.normal(size=(len(RING), space.states, space.states))
    fields = rng.normal(size=(max(1, classes), space.sites, space.states))
    return [Interactions(edges, tables, own[list(order)], space.in_order(order).sizes) for own in fields]


def written_out(law: Interactions) -> np.ndarray:
    """The law over all configurations that are possible, and the others with probability zero, p^q numbers."""
    every = Space(law.sites, law.states)
    weight = np.exp(law.log_weight(every.configurations()).numpy())
    return weight / weight.sum()


def conditional_of(law: Interactions, u: int) -> np.ndarray:
    """μ(x_u | x_>u) for every configuration, an entry at a time, NaN where the sites after u are impossible."""
    every = Space(law.sites, law.states)
    rows, mass = oracles.configurations(every), written_out(law)
    joint: dict[tuple[int, ...], float] = {}
    for row, own in zip(rows, mass, strict=True):
        joint[row[u:]] = joint.get(row[u:], 0.0) + own
    table = np.array([[joint[(token, *row[u + 1 :])] for token in range(every.states)] for row in rows])
    with np.errstate(invalid="ignore"):
        return np.asarray(table / table.sum(1, keepdims=True))


def made_of(space: Space, classes: int = 0, order: tuple[int, ...] = (0, 1, 2, 3, 4)) -> EnergyConditionals:
    made = EnergyConditionals.of(laws(space, classes, order=order), frame(space.in_order(order), classes=classes))
    assert made is not None
    return made


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 0, 2, 1, 3), (3, 1, 4, 2, 0)])
@pytest.mark.parametrize("classes", [0, 2])
@pytest.mark.parametrize("name", SPACES)
def test_every_conditional_is_that_of_the_law(name: str, classes: int, order: tuple[int, ...]) -> None:
    made, own = made_of(SPACES[name], classes, order), laws(SPACES[name], classes, order=order)
    x = Space(5, own[0].states).configurations()
    for kind, law in enumerate(own):
        y = torch.full((len(x),), kind) if classes else None
        for u in range(5):
            at = torch.tensor([u])
            with np.errstate(invalid="ignore"):  # of sites that hold what they cannot
                both = oracles.conditional(Space(5, law.states), written_out(law), u)
            for asked, truth in ((made, conditional_of(law, u)), (made.clean, both)):
                found = asked.log_conditional(at, at, x, y).exp().numpy()
                known = np.isfinite(truth).all(1)
                np.testing.assert_allclose(found[known], truth[known], atol=1e-12)
                assert known.any()


@pytest.mark.parametrize("classes", [0, 2])
@pytest.mark.parametrize("name", ["bits", "three"])
def test_walks_and_passes_say_what_the_reference_says(name: str, classes: int) -> None:
    made = made_of(SPACES[name], classes)
    x = made.noise.space.configurations()
    y = torch.arange(len(x)) % 2 if classes else None
    for asked, sweep in ((made, False), (made.clean, True)):
        found = [walked(one, x, y, 0, sweep=sweep) for one in (asked, Recomputing(asked))]
        if name == "three":  # logits are known up to a constant
            found = [own.log_softmax(-1) for own in found]
        torch.testing.assert_close(*found)
    each = torch.stack([made.log_conditional(torch.tensor([u]), torch.tensor([u]), x, y) for u in range(5)], 1)
    torch.testing.assert_close(made.log_conditionals(x, y), each)
    mixed = torch.arange(len(x)) % 5  # a site of its own for every row
    torch.testing.assert_close(made.log_conditional(mixed, mixed, x, y), each[torch.arange(len(x)), mixed])


class Recomputing(EnergyConditionals):
    """The same, without a walk of its own."""

    def __init__(self, asked: EnergyConditionals) -> None:
        own = Frame(asked.noise, asked.kinds if asked.kinds > 1 else 0, torch.full((5,), -1))
        super().__init__(own, asked.pairs, sides=asked.sides)
        self.asked = asked

    def log_conditional(self, t, u, x, y=None):  # type: ignore[no-untyped-def]
        return self.asked.log_conditional(t, u, x, y)

    def _walk_without_plan(self, x, y, cycle, *, top, sweep, precision):  # type: ignore[no-untyped-def]
        return super(EnergyConditionals, self)._walk_without_plan(
            x, y, cycle, top=top, sweep=sweep, precision=precision
        )


def test_what_is_drawn_and_scored_is_the_law() -> None:
    made = made_of(SPACES["three"])
    (law,) = laws(SPACES["three"])
    truth, n = written_out(law), 20_000
    scored = log_prob(made, made.noise.space.configurations()).exp().numpy()
    np.testing.assert_allclose(scored, truth, rtol=1e-9)
    drawn = sample(made, n, generator=torch.Generator().manual_seed(0))
    gap = np.abs(oracles.empirical(made.noise.space, drawn) - truth).sum() / 2
    assert gap < oracles.sampled_tv_tolerance(truth, n)


def test_saved_and_loaded_alone_among_others_and_around_constant_sites() -> None:
    where = frame(SPACES["bits"])
    made = made_of(SPACES["bits"])
    both = KnownSites(Committee([made, made.clean], [0.5, 0.5]), torch.tensor([-1, -1, -1, -1, -1]), unseen=0.0)
    for asked in (made, made.clean, both):
        again = conditionals.build(asked.description(), where)
        again.load_state_dict(asked.state_dict())
        x = where.noise.space.configurations()
        at = torch.tensor([2])
        torch.testing.assert_close(again.log_conditional(at, at, x), asked.log_conditional(at, at, x))


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ([[0, 1], [1, 5]], "sites 0 … 4"),
        ([[1, 0], [1, 2]], "i < j"),
        ([[0, 1], [0, 1]], "twice"),
    ],
)
def test_pairs_that_are_none_are_refused(edges: list[list[int]], words: str) -> None:
    made = EnergyConditionals(frame(SPACES["bits"]), 2)
    with pytest.raises(ValueError, match=words):
        made.load_state_dict({**made.state_dict(), "edges": torch.tensor(edges)})


def test_tables_that_are_too_large_are_not_made() -> None:
    space = Space(40, 2)
    every = np.argwhere(np.triu(np.ones((40, 40)), 1))
    assert entries(every, space) > MOST_ENTRIES
    law = Interactions(every, np.zeros((len(every), 2, 2)), np.zeros((40, 2)))
    assert EnergyConditionals.of([law], frame(space)) is None
    made = EnergyConditionals(frame(space), len(every))
    with pytest.raises(ValueError, match="tables of more than"):
        made.load_state_dict({**made.state_dict(), "edges": torch.from_numpy(every)})


PRODUCTS = ((0, 2, 3), (1, 2, 3, 4), (0, 1, 4))
STRENGTHS = np.array([0.8, -0.7, 0.5])


def with_products(classes: int = 0) -> tuple[EnergyConditionals, list[np.ndarray]]:
    """Conditionals of spins with products of three and four, and the law of each class, an entry at a time."""
    space = SPACES["bits"]
    own = laws(space, classes)
    made = EnergyConditionals.of(own, frame(space, classes=classes), PRODUCTS)
    assert made is not None
    made.describe_products(STRENGTHS, np.ones(3))
    spins = 2.0 * np.array(oracles.configurations(space)) - 1
    higher = sum(strength * spins[:, list(sites)].prod(1) for sites, strength in zip(PRODUCTS, STRENGTHS, strict=True))
    weights = [written_out(law) * np.exp(higher) for law in own]
    return made, [weight / weight.sum() for weight in weights]


@pytest.mark.parametrize("classes", [0, 2])
def test_products_of_three_and_four_spins_are_in_every_conditional(classes: int) -> None:
    made, truths = with_products(classes)
    x = made.noise.space.configurations()
    for kind, truth in enumerate(truths):
        y = torch.full((len(x),), kind) if classes else None
        np.testing.assert_allclose(log_prob(made, x, y).exp().numpy(), truth, rtol=1e-9)
        for u in range(5):
            at = torch.tensor([u])
            found = made.clean.log_conditional(at, at, x, y).exp().numpy()
            np.testing.assert_allclose(found, oracles.conditional(made.noise.space, truth, u), atol=1e-12)


def test_products_are_saved_and_those_of_other_sites_refused() -> None:
    made, (truth,) = with_products()
    for asked in (made, made.clean):
        again = conditionals.build(asked.description(), frame(SPACES["bits"]))
        again.load_state_dict(asked.state_dict())
        x, at = made.noise.space.configurations(), torch.tensor([1])
        torch.testing.assert_close(again.log_conditional(at, at, x), asked.log_conditional(at, at, x))
    for wrong in ([0, 2, 5, -1], [2, 1, 3, -1], [1, 2, -1, -1], [0, -1, 2, 3]):
        tensors = {**made.state_dict(), "products": torch.tensor([wrong] * 3)}
        with pytest.raises(ValueError, match="tensor products must hold three or four of the sites 0 … 4"):
            conditionals.build(made.description(), frame(SPACES["bits"])).load_state_dict(tensors)
    with pytest.raises(ValueError, match=r"products must be 0 where sites have more than two states"):
        conditionals.build(made.description(), frame(SPACES["three"]))
    assert truth.sum() == pytest.approx(1)


def test_an_energy_of_pairs_alone_is_saved_as_it_always_was() -> None:
    made = made_of(SPACES["bits"])
    assert "products" not in made.description()
    assert not {"products", "strengths", "strength_errors"} & set(made.state_dict())
