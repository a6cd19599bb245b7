"""Many networks trained as one do what each would do alone."""

from typing import Any

import pytest
import tiny
import torch
from torch import Tensor, nn

from neurise import discovery
from neurise.models import _many
from neurise.modeling.trained import TrainedModel
from neurise.modeling.model import Run
from neurise.training import loop
from neurise.rows import Rows
from neurise.training.clip import clip_
from neurise.training.stacked import ManyObjective, ManyRows, Stacked
from neurise.training.state import TrainingState

TRAINED = [name for name in discovery.names("neurise.models") if tiny.is_trained(name)]
MODELS = 3


def source(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def begun(name: str, *, labels: bool = False, **params: Any) -> list[TrainedModel]:
    """Models that know their data, in double precision, with random weights everywhere."""
    models: list[TrainedModel] = []
    for k in range(MODELS):
        x = tiny.spins(30, sites=4, seed=k)
        y = (x[:, 0] > 0).astype(int) if labels else None
        run = Run(k, None, False, None, None, None)
        model = _many._trial(tiny.model(name, **params), x, y, None, None, run=run, place=torch.device("cpu")).model
        assert isinstance(model, TrainedModel)
        model.begin(Rows(torch.zeros(1, 4)), model.settings(None, None), seed=k)
        for parameter in model.objective_.network.double().parameters():
            nn.init.normal_(parameter, generator=source(k))
        models.append(model)
    return models


CASES = [(name, {}) for name in TRAINED] + [
    ("neurise", {"network": "local_mlp"}),
    ("neurise", {"keep_prob": 0.5, "cycles": 2, "depth": 2, "loss": "cross_entropy"}),
    ("d3pm", {"noise": "absorbing"}),
    ("sedd", {"noise": "uniform"}),
]


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize(("name", "params"), CASES, ids=[f"{name}{list(params.values())}" for name, params in CASES])
def test_each_network_has_the_gradient_that_it_has_alone(name: str, params: dict[str, Any], labels: bool) -> None:
    models = begun(name, labels=labels, **params)
    stacked = Stacked([model.objective_.network for model in models])
    objective = ManyObjective(models[0].objective_, stacked)
    x = torch.randint(2, (10, MODELS, 4), generator=source(), dtype=torch.uint8)
    y = torch.randint(2, (10, MODELS), generator=source(1)) if labels else None
    drawn = objective.draw(x, y, generator=source(2))
    losses, scores = (part(stacked, drawn) for part in (objective.losses, objective.scores))
    together = torch.autograd.grad(losses.mean(0).sum(), list(stacked.parameters()), materialize_grads=True)
    for k, model in enumerate(models):
        own = tuple(None if part is None else part[:, k] for part in drawn)
        network = model.objective_.network
        alone = model.objective_.losses(network, own)
        torch.testing.assert_close(losses[:, k], alone, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(scores[:, k], model.objective_.scores(network, own), rtol=1e-10, atol=1e-10)
        gradients = torch.autograd.grad(alone.mean(), list(network.parameters()), materialize_grads=True)
        assert any(gradient.abs().max() > 1e-3 for gradient in gradients)
        for ours, theirs in zip(together, gradients, strict=True):
            torch.testing.assert_close(ours[k], theirs, rtol=1e-10, atol=1e-10)


def test_a_stack_gives_its_networks_back() -> None:
    networks = [model.objective_.network for model in begun("neurise", depth=2)]
    stacked = Stacked(networks)
    for k, network in enumerate(networks):
        assert stacked.weights_of(k).keys() == network.state_dict().keys()
        assert all(torch.equal(stacked.weights_of(k)[name], weight) for name, weight in network.state_dict().items())


def test_a_network_with_buffers_is_refused() -> None:
    with pytest.raises(ValueError, match="with buffers cannot be stacked: it has running_mean"):
        Stacked([nn.BatchNorm1d(2), nn.BatchNorm1d(2)])


def gradients(models: int | None = None) -> list[Tensor]:
    shape = () if models is None else (models,)
    return [torch.randn((*shape, *own), generator=source()) for own in ((4, 3), (5,), (0, 2))]


def test_every_model_is_clipped_by_its_own_norm() -> None:
    parts = gradients(3)
    for part in parts:
        part[1] *= 1000
        part[2] *= 1e-3
    expected = []
    for k in range(3):
        alone = [nn.Parameter(torch.zeros_like(part[k])) for part in parts]
        for parameter, part in zip(alone, parts, strict=True):
            parameter.grad = part[k].clone()
        nn.utils.clip_grad_norm_(alone, 0.7)
        expected.append([parameter.grad for parameter in alone])
    clip_(parts, 0.7, stacked=True)
    for k, ours in enumerate(expected):
        for part, own in zip(parts, ours, strict=True):
            torch.testing.assert_close(part[k], own)


@pytest.mark.parametrize("norm", [0.7, 1e9, float("inf")])
def test_one_model_is_clipped_as_torch_does(norm: float) -> None:
    parts, parameters = gradients(), [nn.Parameter(torch.zeros_like(part)) for part in gradients()]
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.grad = part.clone()
    nn.utils.clip_grad_norm_(parameters, norm)
    clip_(parts, norm)
    assert all(torch.equal(part, parameter.grad) for part, parameter in zip(parts, parameters, strict=True))


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
    x, y = ManyRows.of(parts).draw(n, generator=source())
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
    x, _ = ManyRows.of(parts).spread(101, generator=source())
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
    models = begun("neurise")
    objective = ManyObjective(models[0].objective_, Stacked([model.objective_.network for model in models]))
    generator, x = source(), torch.zeros(n, MODELS, 4, dtype=torch.uint8)
    return torch.cat([objective.draw(x, None, generator=generator)[0] for _ in range(draws)])


def test_the_times_of_every_model_are_stratified() -> None:
    assert torch.equal(times(4, 1), torch.arange(4)[:, None].expand(4, MODELS))


def test_no_model_has_times_of_its_own() -> None:
    seen = times(1, 900)  # one example a model and draw: any time may come
    for k in range(MODELS):
        counts = torch.bincount(seen[:, k], minlength=4)
        # Binomial(900, 1/4) has a standard deviation of 13; five of them are exceeded once in 10^6.
        assert ((counts - 225).abs() <= 65).all()


def test_rows_and_labels_stay_with_their_model() -> None:
    models = begun("dfm", labels=True)
    objective = ManyObjective(models[0].objective_, Stacked([model.objective_.network for model in models]))
    x = torch.arange(24).reshape(2, MODELS, 4)
    _, _, y, x_1 = objective.draw(x, torch.arange(6).reshape(2, MODELS), generator=source())
    assert torch.equal(x_1, x)
    assert torch.equal(y, torch.arange(6).reshape(2, MODELS))


def test_every_model_is_judged_as_if_it_were_alone() -> None:
    network, patience = nn.Linear(1, 1), 3
    settings = tiny.model(patience=patience).settings(100, None)  # type: ignore[attr-defined]
    scores = 2 + torch.rand((12, 20, MODELS), generator=source(), dtype=torch.float64)
    scores[4:, :, 0] += 1  # the first model gets worse, and loses its patience before the others
    many = TrainingState(network, torch.optim.SGD(network.parameters()), source(), average={}, models=MODELS)
    alone = [TrainingState(network, torch.optim.SGD(network.parameters()), source(), average={}) for _ in range(MODELS)]
    for number, values in enumerate(scores):
        many.average = {"weight": torch.full((MODELS, 2), float(number))}
        loop.evaluate(lambda values=values: values, many, torch.zeros(MODELS), settings)  # type: ignore[misc]
        for k, state in enumerate(alone):
            if int(state.stale) == patience:
                continue  # training would have ended here
            state.average = {"weight": torch.full((2,), float(number))}
            loop.evaluate(lambda own=values[:, k]: own, state, torch.zeros(()), settings)  # type: ignore[misc]
    assert any(int(state.stale) == patience for state in alone)
    for k, state in enumerate(alone):
        assert torch.equal(many.usable()["weight"][k], state.usable()["weight"])
        assert (many.best_score[k], many.stale[k]) == (state.best_score, state.stale)
