"""Committees: every member has rows that it never learns from, and is judged by those; and what each kind is worth."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tiny
import torch

import neurise
from neurise import exact
from neurise.conditionals import committee
from neurise.energies import regressions
from neurise.modeling import many
from neurise.modeling.model import Run
from neurise.modeling.trained import Job
from neurise.rows import Batch, Rows

FOLDS = 5
MEMBERS = 3
RUN = Run(5, None, False, 20, None, False, 0.0)
both = pytest.mark.parametrize("states", [2, 3])


@pytest.fixture(autouse=True)
def roughly_fitted_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairwise terms are found for certain elsewhere; here a few iterations will do."""
    monkeypatch.setattr(regressions, "ITERATIONS", 10)


def jobs(X: np.ndarray | None = None, validation: Any = None, **params: Any) -> list[Job]:
    """What a model would train."""
    model, data = tiny.model(**params), tiny.spins() if X is None else X
    return many._trial(model, data, None, None, validation, run=RUN, place=torch.device("cpu")).jobs


def divided(**given: Any) -> tuple[Rows, Rows | None]:
    (job,) = jobs(**given)
    return job.rows, job.held


def objective(states: int = 2) -> Any:
    """A committee with weights that make every context differ, in float64."""
    X = np.random.default_rng(0).integers(states, size=(40, 4))
    (job,) = jobs(X, members=MEMBERS, loss="cross_entropy")
    job.begin()
    generator = torch.Generator().manual_seed(1)
    network = job.objective.network.double()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    return replace(job.objective, folds=FOLDS)  # type: ignore[type-var]


def drawn_from(one: Any, states: int = 2, n: int = 40) -> Any:
    """Examples of n rows."""
    x = torch.randint(states, (n, 4), generator=torch.Generator().manual_seed(2), dtype=torch.uint8)
    return one.draw(Batch(x), generator=torch.Generator().manual_seed(3))


# --- what is learnt, and by what it is judged --------------------------------------------------------------------------


@both
def test_a_member_learns_nothing_from_its_own_fold(states: int) -> None:
    one = objective(states)
    for k in range(FOLDS):
        example = drawn_from(one, states)._replace(fold=torch.full((40,), k))
        one.network.zero_grad()
        one.losses(one.network, example).sum().backward()
        for name in ("token", "head", "head_bias"):
            size = one.network.pattern.get_parameter(name).grad.flatten(1).norm(dim=1)
            assert torch.equal(size > 0, torch.arange(MEMBERS) != k)


@both
def test_on_average_a_member_learns_from_the_other_folds_alone(states: int) -> None:
    one = objective(states)
    example = drawn_from(one, states)._replace(fold=torch.arange(40) % FOLDS)  # eight of each
    with torch.no_grad():
        said = torch.log_softmax(one.network(*example[:5]), -1)  # (n, members, states)
        truth = -said.gather(-1, example.x_u.long()[:, None, None].expand(-1, MEMBERS, 1)).squeeze(-1)
        others = [truth[example.fold != k, k].mean() for k in range(MEMBERS)]
        found = one.losses(one.network, example).mean()
    torch.testing.assert_close(found, torch.stack(others).mean(), rtol=1e-12, atol=0)


@both
def test_without_folds_all_members_learn_from_all_rows(states: int) -> None:
    one = objective(states)
    example = drawn_from(one, states)
    with torch.no_grad():
        said = torch.log_softmax(one.network(*example[:5]), -1)
        truth = -said.gather(-1, example.x_u.long()[:, None, None].expand(-1, MEMBERS, 1)).squeeze(-1)
        torch.testing.assert_close(one.losses(one.network, example), truth.mean(-1), rtol=1e-12, atol=0)
        together = torch.log_softmax(said.mean(-2), -1)[torch.arange(40), example.x_u.long()]
        torch.testing.assert_close(one.scores(one.network, example), -together, rtol=1e-12, atol=0)


@both
def test_a_row_is_judged_by_the_member_of_its_fold_alone(states: int) -> None:
    one = objective(states)
    one.network.requires_grad_(False)
    example = drawn_from(one, states)._replace(fold=torch.arange(40) % MEMBERS)
    before = one.scores(one.network, example)
    own = torch.log_softmax(one.network(*example[:5]), -1)[torch.arange(40), example.fold, example.x_u.long()]
    torch.testing.assert_close(before, -own, rtol=1e-12, atol=0)
    for k in range(MEMBERS):
        kept = [parameter.clone() for parameter in one.network.parameters()]
        for parameter in one.network.parameters():
            parameter[k] += 0.5
        same = one.scores(one.network, example) == before
        assert torch.equal(same, example.fold != k)
        for parameter, old in zip(one.network.parameters(), kept, strict=True):
            parameter.copy_(old)


def test_each_member_learns_as_if_it_were_alone() -> None:
    one = objective()
    example = drawn_from(one)
    one.losses(one.network, example).mean().backward()
    for k, network in enumerate(one.network.networks()):
        alone = replace(one, network=type(one.network)([network]))
        alone.losses(alone.network, example).mean().backward()
        for name, parameter in alone.network.pattern.named_parameters():
            whole = one.network.pattern.get_parameter(name).grad
            if whole is None or parameter.grad is None:  # without classes there are no labels to learn
                assert name == "label"
                continue
            torch.testing.assert_close(MEMBERS * whole[k], parameter.grad[0], rtol=1e-9, atol=1e-12)


# --- rows --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "folds"),
    [
        ({"members": 3}, 10),
        ({"members": 12}, 12),
        ({"members": 2, "training__validation_fraction": 0.9}, 2),
        ({"members": 2, "training__validation_fraction": 0.3}, 3),
        ({"members": 2, "training__validation_fraction": 1e-4}, 256),
    ],
    ids=str,
)
def test_there_are_folds_enough_for_all_members(params: dict[str, Any], folds: int) -> None:
    (job,) = jobs(tiny.spins(600), **params)
    assert job.objective.folds == folds
    assert torch.equal(job.rows.fold.unique().long(), torch.arange(folds))
    assert torch.equal(job.held.x, job.rows.x[job.rows.fold < params["members"]])
    assert torch.equal(job.held.fold, job.rows.fold[job.rows.fold < params["members"]])


@pytest.mark.parametrize(
    "given",
    [
        {"members": 1},
        {"members": 3, "training__validation_fraction": 0},
        {"members": 3, "validation": tiny.spins(20, seed=1)},
        {"members": 12, "X": tiny.spins(11)},
        {"members": 300, "X": tiny.spins(400)},
    ],
    ids=[
        "one network",
        "nothing held back",
        "an own validation set",
        "fewer rows than folds",
        "more members than bytes",
    ],
)
def test_elsewhere_rows_are_held_back_as_ever(given: dict[str, Any]) -> None:
    learnt, held = divided(**given)
    plain, aside = divided(**{**given, "members": 1})
    assert learnt.fold is None
    assert torch.equal(learnt.x, plain.x)
    assert (held is None) == (aside is None)
    assert held is None or torch.equal(held.x, aside.x)


@pytest.mark.parametrize(
    "given",
    [{"training__validation_fraction": 0}, {"X": tiny.spins(11)}, {"validation": tiny.spins(20, seed=1)}],
    ids=["nothing held back", "few rows", "an own validation set"],
)
@pytest.mark.parametrize("pairwise", [False, True])
def test_the_plain_way_gives_a_model_too(given: dict[str, Any], pairwise: bool) -> None:
    own = dict(given)
    X, validation = own.pop("X", tiny.spins()), own.pop("validation", None)
    model = tiny.model(members=12 if len(X) < 12 else 2, architecture__pairwise=pairwise, **own)
    model.fit(X, validation=validation, max_steps=10)
    assert ("validation" in model.history_[-1]) == (own.get("training__validation_fraction") != 0)
    assert float(exact.law(model).sum()) == pytest.approx(1, abs=1e-12)


def test_counts_teach_a_committee_what_repeated_rows_do() -> None:
    X = np.array([[a, b] for a in range(4) for b in range(4)])
    counts = np.random.default_rng(1).multinomial(4000, np.random.default_rng(0).dirichlet(np.ones(16)))
    scores = []
    for data, weights in ((X, counts), (np.repeat(X, counts, axis=0), None)):
        model = tiny.model(members=2, training__learning_rate=0.05).fit(data, weights=weights, max_steps=100)
        scores.append(float(counts @ model.log_prob(X)) / 4000)
    best = float(counts[counts > 0] @ np.log(counts[counts > 0] / 4000)) / 4000
    # A committee whose members had each been kept from a tenth of the configurations would miss them by far more.
    assert best - scores[0] < 0.05
    assert abs(scores[0] - scores[1]) < 0.03


@pytest.mark.parametrize(
    ("sizes", "validation"),
    [((8, 60), (None, None)), ((60, 50), (None, tiny.spins(20, seed=1)))],
    ids=["few rows and many", "an own validation set and none"],
)
def test_data_with_folds_and_without_are_not_trained_as_one(sizes: Any, validation: Any) -> None:
    Xs = [tiny.spins(n) for n in sizes]
    fitted = neurise.fit_many(tiny.model(members=2), Xs, validation=validation, max_steps=10)
    for seed, (model, X, held) in enumerate(zip(fitted, Xs, validation, strict=True)):
        assert tiny.same_weights(model, tiny.model(members=2).fit(X, validation=held, seed=seed, max_steps=10))


# --- what is put together ----------------------------------------------------------------------------------------------


def test_a_committee_starts_from_different_weights_and_a_seed_gives_the_same() -> None:
    one, two = (tiny.model(members=2).fit(tiny.spins(), max_steps=20) for _ in range(2))
    assert tiny.same_weights(one, two)
    first, second = one.conditionals.members
    assert not torch.allclose(first.network.token, second.network.token)
    assert one.num_parameters_ == 2 * tiny.model().fit(tiny.spins(), max_steps=1).num_parameters_
    assert one.conditionals.weights == [0.5, 0.5]


@both
@pytest.mark.parametrize("members", [2, 4])
def test_the_shares_are_what_rows_held_back_say(states: int, members: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fitted committee of two kinds weighs each as a sum over the held rows, written out here, finds best."""
    told: list[Any] = []
    genuine = committee.find_shares

    def noting(answers: Any, observed: Any, sizes: Any) -> list[float]:
        told.append((answers, observed, sizes))
        return genuine(answers, observed, sizes)

    monkeypatch.setattr("neurise.modeling.round_robin.find_shares", noting)
    X = np.random.default_rng(0).integers(states, size=(80, 4))
    X[:, 1] = X[:, 0]
    model = tiny.model(members=members, architecture__pairwise=True).fit(X, max_steps=20)
    ((answers, observed, _),) = told
    n = len(observed)
    pair, plain = (np.asarray(answer) for answer in answers)
    np.testing.assert_allclose(np.logaddexp.reduce(pair, axis=-1), 0, atol=1e-6)
    costs = {}
    for share in np.linspace(0, 1, committee.SHARES):
        mixed = share * plain + (1 - share) * pair
        costs[share] = np.logaddexp.reduce(mixed, axis=-1) - mixed[np.arange(n), observed.long()]
    best = min(costs, key=lambda share: costs[share].mean())
    excess = {share: cost - costs[best] for share, cost in costs.items()}
    bar = {share: more.std(ddof=1) / math.sqrt(n) + committee.TIE for share, more in excess.items()}
    equal = [share for share in costs if excess[share].mean() <= bar[share]]
    wanted = min(equal, key=lambda share: round(abs(share - 0.5), 9))
    found = model.shares_["site_mlp"]
    assert abs(found - 0.5) == pytest.approx(abs(wanted - 0.5), abs=1e-9)
    assert min(abs(found - share) for share in equal) < 1e-9
    weights = model.conditionals.weights
    np.testing.assert_allclose(
        weights, [(1 - found) / (members // 2)] * (members // 2) + [found / (members // 2)] * (members // 2)
    )


def test_without_rows_held_back_kinds_share_alike() -> None:
    params = {"members": 2, "architecture__pairwise": True, "training__validation_fraction": 0}
    model = tiny.model(**params).fit(tiny.spins(), max_steps=5)
    assert model.shares_ == {"pairwise_terms + site_mlp": 0.5, "site_mlp": 0.5}
