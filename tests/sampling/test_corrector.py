import chi_square
import numpy as np
import oracles
import pytest
import tiny
import torch
from fixtures import untrained

from neurise import exact
from neurise.noise.round_robin import RoundRobin
from neurise.rows import Batch
from neurise.sampling import graphs
from neurise.sampling.corrector import correct, sweep
from neurise.space import Space

SPACES = [Space(sites=4, states=2), Space(sites=2, states=3)]


@pytest.mark.parametrize("space", SPACES, ids=["bits", "trits"])
@pytest.mark.parametrize("keep_prob", [0.0, 0.4])
@pytest.mark.parametrize("hide_noised", [False, True])
def test_exact_conditionals_leave_the_noised_law_as_it_is(space: Space, keep_prob: float, hide_noised: bool) -> None:
    pmf = oracles.random_law(space, seed=1)
    noise = RoundRobin(space, keep_prob, cycles=2)
    conditionals = exact.ExactConditionals(pmf, noise, hide_noised=hide_noised)
    laws = oracles.noised_laws(space, pmf, keep_prob, cycles=2)
    for t in range(noise.num_steps):
        swept = exact.swept(conditionals, torch.from_numpy(laws[t]), t=t, sweeps=2)
        np.testing.assert_allclose(swept, laws[t], rtol=0, atol=1e-14)


def test_a_sweep_by_hand() -> None:
    space = SPACES[0]
    pmf, start = oracles.random_law(space, seed=2), oracles.random_law(space, seed=3)
    conditionals = exact.ExactConditionals(pmf, RoundRobin(space, 0.4, cycles=1))
    law = start.reshape([2] * 4)
    for u in (3, 2, 1, 0):
        table = pmf.reshape([2] * 4)
        law = law.sum(u, keepdims=True) * table / table.sum(u, keepdims=True)
    np.testing.assert_allclose(exact.swept(conditionals, torch.from_numpy(start)), law.flatten(), rtol=0, atol=1e-14)


@pytest.mark.parametrize("space", SPACES, ids=["bits", "trits"])
@pytest.mark.parametrize(("keep_prob", "t"), [(0.3, 0), (0.3, 1), (0.0, 0), (0.0, 1)])
def test_rows_are_drawn_from_the_swept_law(space: Space, keep_prob: float, t: int) -> None:
    conditionals = untrained(space, keep_prob).conditionals
    generator, n = torch.Generator().manual_seed(4), 20_000
    start = space.uniform(n, generator=generator)
    rows = sweep(conditionals, sweep(conditionals, start, t=t, generator=generator), t=t, generator=generator)
    uniform = torch.full((space.size,), 1 / space.size, dtype=torch.float64)
    law = exact.swept(conditionals, uniform, t=t, sweeps=2)
    chi_square.assert_drawn_from(space.index(rows).numpy(), law.numpy())


def test_no_sweeps_change_nothing_and_batches_cover_all(monkeypatch: pytest.MonkeyPatch) -> None:
    space, generator = SPACES[1], torch.Generator().manual_seed(0)
    conditionals = untrained(space, 0.3).conditionals
    x = space.uniform(10, generator=generator)
    assert correct(conditionals, x, sweeps=0, generator=generator) is x
    monkeypatch.setattr("neurise.conditionals.base.MEMORY_BUDGET", 3 * conditionals.bytes_per_row)
    assert correct(conditionals, x, sweeps=1, generator=generator).shape == x.shape


def test_a_model_is_corrected_towards_the_conditionals_it_was_taught() -> None:
    X = tiny.spins()
    model = tiny.model(corrector__clean=0.5, corrector__sweeps=3).fit(X, max_steps=100)
    law = exact.law(model).numpy()
    rows = (model.sample(20_000, seed=1) > 0).astype(np.uint8)
    chi_square.assert_drawn_from(model.space_.index(torch.from_numpy(rows)).numpy(), law)
    plain = exact.law(model.set_params(corrector__sweeps=0)).numpy()
    assert oracles.tv(plain, law) > 1e-3  # otherwise nothing was tested
    # Many sweeps end where no further one changes anything.
    far = exact.law(model.set_params(corrector__sweeps=60))
    further = exact.law(model.set_params(corrector__sweeps=61))
    assert oracles.tv(far.numpy(), further.numpy()) < 1e-6


def test_a_network_that_was_taught_clean_conditionals_is_asked_for_them() -> None:
    X = tiny.spins()
    model = tiny.model(corrector__clean=0.5, keep_prob=0.5, cycles=2).fit(X, max_steps=60)
    x = torch.from_numpy((X > 0).astype(np.uint8))
    for site in range(X.shape[1]):
        t, u = torch.zeros(1, dtype=torch.int64), torch.tensor([site])
        expected = model.conditionals.log_conditional(t, u, x).double().softmax(-1)
        np.testing.assert_allclose(model.conditional(X, site=site), expected, rtol=0, atol=1e-12)


def test_clean_examples_are_rows_as_they_are_at_any_site() -> None:
    model = tiny.model(corrector__clean=0.25, keep_prob=0.5, cycles=2).fit(tiny.spins(), max_steps=10)
    n, space = 40_000, model.space_
    x = space.uniform(n, generator=torch.Generator().manual_seed(0))
    drawn = model._build().draw(Batch(x, None, None), generator=torch.Generator().manual_seed(1))
    clean = drawn.u != drawn.t % space.sites
    assert bool((drawn.t[clean] == 0).all())
    assert torch.equal(drawn.x[clean], x[clean])
    assert torch.equal(drawn.x_u, drawn.x.gather(-1, drawn.u[:, None]).squeeze(-1))
    # A clean example at site 0 cannot be told from a step's own: what is seen is clean · (q − 1)/q of all, ± five deviations.
    share = 0.25 * (space.sites - 1) / space.sites
    assert abs(float(clean.double().mean()) - share) <= 5 * (share / n) ** 0.5


def test_what_sweeps_cannot_do_is_said() -> None:
    X = tiny.spins()
    with pytest.raises(ValueError, match="set corrector__clean above 0"):
        tiny.model(corrector__sweeps=2).fit(X, max_steps=10)
    with pytest.raises(ValueError, match="fit with corrector__clean above 0"):
        tiny.model().fit(X, max_steps=10).sample(5, sweeps=2)
    with pytest.raises(ValueError, match=r"clean must be in \[0, 1\), got 1.5"):
        tiny.model(corrector__clean=1.5).fit(X, max_steps=10)
    with pytest.raises(ValueError, match="needs site_mlp"):
        tiny.model(corrector__clean=0.5, network="local_mlp").fit(X, max_steps=10)


def test_the_likelihood_is_that_of_the_chain_without_sweeps() -> None:
    X = tiny.spins()
    model = tiny.model(corrector__clean=0.5, corrector__sweeps=2).fit(X, max_steps=10)
    rows = 2 * oracles_rows(model.space_) - 1
    chain = exact.law(model, sweeps=0)
    np.testing.assert_allclose(np.exp(model.log_prob(rows)), chain, rtol=0, atol=1e-6)
    assert oracles.tv(chain.numpy(), exact.law(model).numpy()) > 1e-4  # sweeps change the law, and not the likelihood
    np.testing.assert_array_equal(
        model.elbo(rows, seed=0).value, model.set_params(corrector__sweeps=0).elbo(rows, seed=0).value
    )


def oracles_rows(space: Space) -> np.ndarray:
    return np.array(oracles.configurations(space))


@pytest.mark.parametrize("space", SPACES, ids=["bits", "trits"])
@pytest.mark.parametrize(
    "settings",
    [{"keep_prob": 0.3}, {}, {"architecture__pairwise": True}, {"architecture__pairwise": True, "members": 2}],
    ids=str,
)
def test_sweeps_that_update_the_first_layer_draw_what_plain_ones_draw(
    space: Space, settings: dict[str, object]
) -> None:
    X = space.uniform(40, generator=torch.Generator().manual_seed(1)).numpy()
    alphabet = list(range(space.states))
    model = tiny.model("neurise", corrector__clean=0.4, alphabet=alphabet, **settings)
    conditionals = model.fit(X, max_steps=1, verbose=False).conditionals  # type: ignore[attr-defined]
    with torch.no_grad():  # a network that has hardly learnt anything would hide a wrong context
        generator = torch.Generator().manual_seed(2)
        for parameter in conditionals.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    conditionals.lay_out()
    start = space.uniform(500, generator=torch.Generator().manual_seed(3))
    generator = torch.Generator().manual_seed(4)
    slow = start
    for _ in range(2):
        slow = sweep(conditionals, slow, generator=generator)
    fast = correct(conditionals, start, sweeps=2, generator=torch.Generator().manual_seed(4))
    # Rounding moves a threshold by 1e-6 or so: a draw in 2 · sites · 500 lies that near to it with a chance below a hundredth.
    assert torch.equal(slow, fast)
    repeated = graphs.sweep(conditionals, start, generator=torch.Generator().manual_seed(4), record=lambda work: work)
    once = sweep(conditionals, start, generator=torch.Generator().manual_seed(4))
    assert torch.equal(repeated, once)
