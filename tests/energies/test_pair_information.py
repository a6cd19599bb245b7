"""What two sites tell about each other given all others, against enumeration; and what the loss of a pair costs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from neurise.energies import graph_selection, pair_information
from neurise.energies.exact_laws import exact_laws
from neurise.energies.family import Family
from neurise.energies.graph_selection import absent_from, additions, decimate, promising, wald, worth
from neurise.energies.maximum_likelihood import Aim, Fit, Prior, fit
from neurise.rows import Rows
from neurise.space import Space


def fitted(family: Family, rows: Rows) -> tuple[Fit, Aim]:
    """Maximise the likelihood of rows."""
    laws, aim = exact_laws(family), Aim.of(rows, family.classes)
    assert laws is not None
    return fit(laws, aim, prior=Prior(0.1)), aim


def drawn(law: Tensor, space: Space, n: int, seed: int) -> Rows:
    """Draw rows of a law."""
    place = torch.multinomial(law, n, replacement=True, generator=torch.Generator().manual_seed(seed))
    return Rows(space.configurations()[place])


def information(law: Tensor, i: int, j: int) -> float:
    """Sum it up over all configurations; ``law`` has one axis per site."""
    both = law.sum((i, j), keepdim=True)
    apart = law.sum(i, keepdim=True) * law.sum(j, keepdim=True)
    return float((torch.xlogy(law, law) + torch.xlogy(law, both) - torch.xlogy(law, apart)).sum())


@pytest.mark.parametrize("classes", [0, 2])
def test_information_given_the_rest(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_information, "DRAWS", 200_000)
    space = Space(4, 3, (3, 2, 3, 3))
    family = Family(space, np.array([[0, 1], [1, 2], [0, 2], [2, 3]]), classes)
    x = space.uniform(400, generator=torch.Generator().manual_seed(1))
    x[:200, 2], x[100:300, 1] = x[:200, 0], 0  # so that sites depend on each other
    rows = Rows(x) if classes == 0 else Rows(x, torch.arange(400) % classes)
    found, aim = fitted(family, rows)
    expected = np.zeros(4)
    for kind, share in enumerate(aim.shares.tolist()):
        energy = family.interactions(found.theta, kind).log_weight(space.configurations())
        law = energy.softmax(0).view(3, 2, 3, 3)
        expected += share * np.array([information(law, i, j) for i, j in family.edges.tolist()])
    assert expected.max() > 0.05
    # A row tells between 0 and log 3: its standard deviation is at most half of that. Five standard errors.
    allowed = 5 * math.log(3) / 2 / math.sqrt(200_000)
    np.testing.assert_allclose(pair_information.of(found, aim.shares, seed=0), expected, rtol=0, atol=allowed)


def exactly_one(n: int) -> Rows:
    """Draw rows of six sites: exactly one of each three is 1, and the second three follow the first eight times in ten."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 3, n)
    second = np.where(rng.random(n) < 0.8, first, rng.integers(0, 3, n))
    return Rows(torch.from_numpy(np.concatenate([np.eye(3)[first], np.eye(3)[second]], axis=1)).to(torch.uint8))


def test_pairs_that_exclude_states_are_worth_much() -> None:
    """The curvature sees next to nothing of them: within the rows one pair says what the fields say."""
    family, rows = Family.dense(Space(6, 2)), exactly_one(1000)
    found, aim = fitted(family, rows)
    place = family.edges.tolist().index([0, 1])
    fewer, _ = fitted(family.restricted(np.arange(15) != place)[0], rows)
    lost = 1000 * (found.value - fewer.value)
    assert lost > 20
    assert wald(found)[place] < 0.25 * lost
    assert 0.25 * lost < worth(found, aim.shares)[place] <= 1.05 * lost


def test_decimation_asks_for_few_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    found, aim = fitted(Family.dense(Space(6, 2)), exactly_one(1000))
    rule, fits = graph_selection.Rule(0.5 * math.log(1000), 0.5 * math.log(15), Prior(0.1)), list[int]()
    ordinary = graph_selection.Rule.fit

    def counted(self: graph_selection.Rule, laws: object, *rest: object) -> Fit:
        fits.append(1)
        return ordinary(self, laws, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(graph_selection.Rule, "fit", counted)
    kept = {tuple(pair) for pair in decimate(found, aim, rule).family.edges.tolist()}
    assert {(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5)} <= kept
    assert len(fits) <= 8  # twice as many without an estimate that sees what excludes states


def test_pairs_that_pay_are_promising(monkeypatch: pytest.MonkeyPatch) -> None:
    space = Space(8, 3)
    x = space.uniform(600, generator=torch.Generator().manual_seed(0))
    x[:300, 5], x[:250, 7] = x[:300, 2], x[:250, 0]
    found, aim = fitted(Family(space, np.array([[0, 1]])), Rows(x))
    rule, absent = graph_selection.Rule(2.0, 2.0, Prior(0.1)), absent_from(found.family)
    assert promising(found, absent, aim, rule) is absent  # so few are looked at one by one
    monkeypatch.setattr(graph_selection, "FEW_PAIRS", 0)
    fewer = promising(found, absent, aim, rule)
    pays = additions(found, absent, aim) > rule.price(absent)
    wanted = {tuple(pair) for pair in absent.edges[pays].tolist()}
    assert {(2, 5), (0, 7)} <= wanted <= {tuple(pair) for pair in fewer.edges.tolist()}
    assert len(fewer.edges) < len(absent.edges)


def test_pairs_without_which_no_sums_can_be_done_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """An order of elimination is a guess, and may be wider for fewer pairs."""
    x = Space(5, 2).uniform(500, generator=torch.Generator().manual_seed(0))
    found, aim = fitted(Family.dense(Space(5, 2)), Rows(x))
    rule = graph_selection.Rule(5.0, 5.0, Prior(0.1))
    assert len(decimate(found, aim, rule).family.edges) == 0  # nothing interacts
    ordinary = graph_selection.exact_laws

    def narrow(family: Family, device: torch.device | None = None) -> object:
        return None if len(family.edges) < 4 else ordinary(family, device)

    monkeypatch.setattr(graph_selection, "exact_laws", narrow)
    assert len(decimate(found, aim, rule).family.edges) == 4
