"""Many networks trained as one do what each would do alone."""

from typing import Any

import pytest
import tiny
import torch
from torch import Tensor, nn

from neurise import discovery
from neurise.modeling import many
from neurise.modeling.model import Run
from neurise.networks.parts.stack import Stack
from neurise.rows import Batch, Rows
from neurise.training.objective import Objective
from neurise.training.stacked import ManyObjective, ManyRows
from neurise.training.state import TrainingState

TRAINED = [name for name in discovery.names("neurise.models") if tiny.is_trained(name)]
MODELS = 3


def source(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def begun(name: str, *, labels: bool = False, **params: Any) -> list[Objective]:
    """Objectives of models that know their data, in double precision, with random weights everywhere."""
    objectives: list[Objective] = []
    for k in range(MODELS):
        x = tiny.spins(30, sites=4, seed=k)
        y = (x[:, 0] > 0).astype(int) if labels else None
        run = Run(k, None, False, None, None, None, 0.0)
        (job,) = many._trial(tiny.model(name, **params), x, y, None, None, run=run, place=torch.device("cpu")).jobs
        job.begin()
        for parameter in job.objective.network.double().parameters():
            nn.init.normal_(parameter, generator=source(k))
        objectives.append(job.objective)
    return objectives


def together(objectives: list[Objective]) -> ManyObjective:
    return ManyObjective(objectives[0], Stack([objective.network for objective in objectives]))


LOOP = {"pairwise": {"estimator": "loss"}}  # what is solved by default is not trained
CASES = [(name, LOOP.get(name, {})) for name in TRAINED] + [
    ("neurise", {"network": "local_mlp"}),
    ("neurise", {"keep_prob": 0.5, "cycles": 2, "depth": 2, "loss": "cross_entropy"}),
    ("d3pm", {"noise": "absorbing"}),
    ("sedd", {"noise": "uniform"}),
]


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize(("name", "params"), CASES, ids=[f"{name}{list(params.values())}" for name, params in CASES])
def test_each_network_has_the_gradient_that_it_has_alone(name: str, params: dict[str, Any], labels: bool) -> None:
    objectives = begun(name, labels=labels, **params)
    whole = together(objectives)
    x = torch.randint(2, (10, MODELS, 4), generator=source(), dtype=torch.uint8)
    y = torch.randint(2, (10, MODELS), generator=source(1)) if labels else None
    drawn = whole.draw(Batch(x, y), generator=source(2))
    losses, scores = (part(whole.network.each, drawn) for part in (whole.losses, whole.scores))
    assert losses.shape == scores.shape == (10, MODELS)
    stacked = torch.autograd.grad(losses.mean(0).sum(), list(whole.network.parameters()), materialize_grads=True)
    for k, objective in enumerate(objectives):
        own = tuple(None if part is None else part[:, k] for part in drawn)
        network = objective.network
        alone = objective.losses(network, own)
        torch.testing.assert_close(losses[:, k], alone, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(scores[:, k], objective.scores(network, own), rtol=1e-10, atol=1e-10)
        gradients = torch.autograd.grad(alone.mean(), list(network.parameters()), materialize_grads=True)
        assert any(gradient.abs().max() > 1e-3 for gradient in gradients)
        for ours, theirs in zip(stacked, gradients, strict=True):
            torch.testing.assert_close(ours[k], theirs, rtol=1e-10, atol=1e-10)


def data_sets(weighted: bool) -> tuple[list[Rows], list[Tensor]]:
    """Three data sets of 2, 5 and 3 rows; row i of set k is (k, i), and its label 10 k + i."""
    weights = [torch.tensor(w).double() for w in ([1.0, 3.0], [0.0, 2.0, 1.0, 1.0, 0.0], [5.0, 0.0, 5.0])]
    parts = []
    for k, n in enumerate((2, 5, 3)):
        x = torch.stack([torch.full((n,), k), torch.arange(n)], dim=1).to(torch.uint8)
        parts.append(Rows(x, 10 * k + torch.arange(n), weights[k] if weighted else None))
    shares = [w / w.sum() if weighted else torch.full((len(w),), 1 / len(w)) for w in weights]
    return parts, shares


@pytest.mark.parametrize("weighted", [False, True])
def test_every_model_draws_its_own_rows_by_their_weight(weighted: bool) -> None:
    parts, shares = data_sets(weighted)
    n = 20_000
    x, y, _, _ = ManyRows.of(parts).draw(n, generator=source())
    assert y is not None
    assert x.shape == (n, 3, 2)
    assert torch.equal(x[..., 0].long(), torch.arange(3).expand(n, 3))
    assert torch.equal(10 * x[..., 0].long() + x[..., 1], y)
    for k, share in enumerate(shares):
        counts = torch.bincount(x[:, k, 1].long(), minlength=len(share))
        # Binomial(n, share): five standard deviations are exceeded once in 10^6.
        assert ((counts - n * share).abs() <= 5 * (n * share * (1 - share)).sqrt()).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_spreading_gives_each_row_its_share_to_within_one(weighted: bool) -> None:
    parts, shares = data_sets(weighted)
    x, _, _, _ = ManyRows.of(parts).spread(101, generator=source())
    for k, share in enumerate(shares):
        counts = torch.bincount(x[:, k, 1].long(), minlength=len(share))
        assert ((counts - 101 * share).abs() <= 1).all()
        assert not torch.equal(x[:, k, 1], x[:, k, 1].sort().values)


def test_even_the_last_level_stays_in_its_own_data_set() -> None:
    parts, _ = data_sets(weighted=True)
    last = ManyRows.of(parts).at(torch.full((1, 3), 1 - 2.0**-53, dtype=torch.float64))[0][0]
    assert last.tolist() == [[0, 1], [1, 3], [2, 2]]


def times(n: int, draws: int) -> Tensor:
    """Times of three models over 4 steps, (draws · n, 3)."""
    objective = together(begun("neurise"))
    generator, x = source(), torch.zeros(n, MODELS, 4, dtype=torch.uint8)
    return torch.cat([objective.draw(Batch(x), generator=generator)[0] for _ in range(draws)])


def test_the_times_of_every_model_are_stratified() -> None:
    assert torch.equal(times(4, 1), torch.arange(4)[:, None].expand(4, MODELS))


def test_no_model_has_times_of_its_own() -> None:
    seen = times(1, 900)  # one example per model and draw: any time may come
    for k in range(MODELS):
        counts = torch.bincount(seen[:, k], minlength=4)
        # Binomial(900, 1/4) has a standard deviation of 13; five of them are exceeded once in 10^6.
        assert ((counts - 225).abs() <= 65).all()


def test_rows_and_labels_stay_with_their_model() -> None:
    objective = together(begun("dfm", labels=True))
    x = torch.arange(24).reshape(2, MODELS, 4)
    _, _, y, x_1 = objective.draw(Batch(x, torch.arange(6).reshape(2, MODELS)), generator=source())
    assert torch.equal(x_1, x)
    assert torch.equal(y, torch.arange(6).reshape(2, MODELS))


def test_every_model_is_judged_as_if_it_were_alone() -> None:
    network, patience = nn.Linear(1, 1), 3
    scores = 2 + torch.rand((12, 20, MODELS), generator=source(), dtype=torch.float64)
    scores[4:, :, 0] += 1  # the first model gets worse, and loses its patience before the others
    many = TrainingState(network, torch.optim.SGD(network.parameters()), source(), models=MODELS)
    alone = [TrainingState(network, torch.optim.SGD(network.parameters()), source()) for _ in range(MODELS)]
    for number, values in enumerate(scores):
        many.average = {"weight": torch.full((MODELS, 2), float(number))}
        many.record(torch.zeros(MODELS), values, patience)
        for k, state in enumerate(alone):
            if int(state.stale) == patience:
                continue  # training would have ended here
            state.average = {"weight": torch.full((2,), float(number))}
            state.record(torch.zeros(()), values[:, k], patience)
    assert any(int(state.stale) == patience for state in alone)
    for k, state in enumerate(alone):
        assert torch.equal(many.usable()["weight"][k], state.usable()["weight"])
        assert (many.best_score[k], many.stale[k]) == (state.best_score, state.stale)


def test_folds_stay_with_their_rows() -> None:
    parts = [Rows(part.x, fold=part.x[:, 1] % 3) for part in data_sets(weighted=False)[0]]
    x, y, fold, _ = ManyRows.of(parts).draw(50, generator=source())
    assert y is None
    assert fold is not None
    assert torch.equal(fold, x[..., 1] % 3)
