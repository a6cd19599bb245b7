"""A calibrated model generates the means and correlations of the data it has learnt from."""

from __future__ import annotations

import json
from typing import Any

import chi_square
import conditionals_cases as cases
import numpy as np
import oracles
import pytest
import tiny
import torch
from sklearn.base import clone
from torch import Tensor, nn

import neurise
from neurise import conditionals as kinds_of_conditionals
from neurise import exact, likelihood
from neurise.conditionals._directions import directions_of
from neurise.conditionals._matching import drawn_evenly, enough_draws
from neurise.conditionals.base import Conditionals, Frame
from neurise.conditionals.committee import Committee
from neurise.conditionals.known_sites import KnownSites
from neurise.conditionals.moment_matched import MomentMatched, corrected, match, match_each
from neurise.energies import regressions
from neurise.energies.frontier import adjacency
from neurise.modeling.groups import Corrector
from neurise.models.neurise import NeurISE
from neurise.networks.pairwise_terms import PairwiseTerms
from neurise.rows import Rows
from neurise.sampling.reverse import sample
from neurise.space import Space

CLEAN = Corrector(clean=0.25)
SPACES = pytest.mark.parametrize("space", [Space(sites=4, states=2), Space(sites=3, states=4)], ids=["bits", "four"])


def untaught(
    space: Space, *, members: int = 1, classes: int = 0, clean: bool = False, constant: int = -1, graph: Any = None
) -> Any:
    """Conditionals that know nothing of any data: all weights are drawn, and every pair of sites has terms.

    The clean terms, if there are any, look at the neighbours in a graph alone, and the network says nothing then.
    """
    fixed = [-1] * space.sites
    fixed[1] = constant
    where = cases.frame(space, constant=fixed, classes=classes)
    found = [cases.single("pairwise sum", where, seed, clean=clean) for seed in range(members)]
    for one in found:
        terms: Any = one.network.parts[0]
        for parameter in one.network.parameters():
            parameter.mul_(0.5)  # as far from any data as six of Newton's steps go without a penalty
        if graph is not None:
            near = adjacency(graph, range(space.sites)).repeat_interleave(space.states, 1)
            terms.clean_pair.mul_(near[:, None])
            one.network.parts[1].head.zero_()
            cases.meet(one.network)
    inner: Conditionals = found[0] if members == 1 else Committee(found, [1 / members] * members)
    return inner if constant < 0 else KnownSites(inner, where.constant, unseen=0.0)


@pytest.fixture(autouse=True)
def roughly_fitted_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairwise terms are found for certain elsewhere; here a few iterations will do."""
    monkeypatch.setattr(regressions, "ITERATIONS", 20)


def data(space: Space, n: int = 500, seed: int = 0) -> Tensor:
    return torch.from_numpy(oracles.draw(space, oracles.random_law(space, seed), n, seed)).to(torch.uint8)


def law_of(conditionals: Any, y: Tensor | None = None) -> Tensor:
    """The probability of every configuration, by the likelihood."""
    x = torch.tensor(oracles.configurations(conditionals.noise.space), dtype=torch.uint8)
    labels = None if y is None else y.expand(len(x))
    return likelihood.log_prob(conditionals, x, labels).exp()


def pairs(weight: Tensor, x: Tensor, states: int) -> Tensor:
    """Probabilities of every pair of tokens at every pair of sites, and on the diagonal of single ones."""
    hot = (x[..., None] == torch.arange(states)).double().flatten(1)
    return hot.T @ (weight[:, None] * hot)


def off(conditionals: Any, rows: Rows, weight: Tensor | None = None) -> float:
    """The largest error of a pair's probability."""
    space = conditionals.noise.space
    x = torch.tensor(oracles.configurations(space))
    counts = torch.ones(len(rows)).double() if rows.weights is None else rows.weights
    model = law_of(conditionals) if weight is None else weight
    return float((pairs(model, x, space.states) - pairs(counts / counts.sum(), rows.x, space.states)).abs().max())


def matched(inner: Any, rows: Rows, constant: int = -1, **more: Any) -> MomentMatched:
    fixed = torch.full((inner.noise.space.sites,), -1)
    fixed[1] = constant
    options = {"draws": 2**15, "spread": 10.0, **more}  # of 500 rows the penalty is 2·10^-5
    return match(inner, rows, fixed, generator=torch.Generator().manual_seed(1), **options)


TOLERANCE = 5 * 0.5 / 2**7.5
"""Five standard deviations of a share of 2^15 independent rows at most; those drawn are spread more evenly."""


@SPACES
@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("directions", [0, 3])
def test_pairs_have_the_probabilities_of_the_data(space: Space, members: int, directions: int) -> None:
    rows, inner = Rows(data(space)), untaught(space, members=members)
    assert off(inner, rows) > 5 * TOLERANCE
    better = matched(inner, rows, directions=directions)
    assert off(better, rows) < TOLERANCE
    assert float(law_of(better).sum()) == pytest.approx(1, abs=1e-5)
    assert off(inner, rows) > 5 * TOLERANCE  # what is inside stays as it was


@SPACES
def test_weights_of_rows_count(space: Space) -> None:
    x = data(space)
    rows, inner = Rows(x, None, 1.0 + torch.arange(len(x)).double() % 4), untaught(space)
    assert off(matched(inner, rows), rows) < TOLERANCE


def test_labels_are_drawn_as_the_data_have_them() -> None:
    space = Space(sites=4, states=2)
    x = data(space)
    y = (x[:, 0] + x[:, 2] > 0).long()
    rows = Rows(x, y)
    conditionals = matched(untaught(space, classes=2), rows)
    share = y.double().mean()
    both = (1 - share) * law_of(conditionals, torch.tensor(0)) + share * law_of(conditionals, torch.tensor(1))
    assert off(conditionals, rows, both) < TOLERANCE


# --- the correction belongs to the chain ---------------------------------------------------------------------------------

GRAPH = [[0, 2], [1, 2]]  # site 0 does not depend on sites 1 and 3, given site 2


@pytest.mark.parametrize("members", [1, 2])
@SPACES
def test_the_correction_is_no_part_of_the_clean_conditionals(space: Space, members: int) -> None:
    graph = [pair for pair in GRAPH if max(pair) < space.sites]
    inner = untaught(space, clean=True, members=members, graph=graph)
    rows = Rows(data(space))
    better = matched(inner, rows)
    x, t = space.configurations(), torch.tensor([0])
    for site in range(space.sites):
        u = torch.tensor([site])
        found = better.clean.log_conditional(t, u, x)
        assert torch.equal(found, inner.log_conditional(t, u, x))
        # Step 0 is where the chain and a sweep meet: the chain corrects its site 0, and a sweep must not see that.
        assert torch.equal(better.log_conditional(t, u, x), found) == (site > 0)
        table = found.view([space.states] * space.sites + [-1])
        for other in range(space.sites):
            near = [site, other] in graph or [other, site] in graph
            differs = bool((table.amax(other) - table.amin(other)).max() > 1e-6)
            assert differs == near


@SPACES
def test_sweeps_draw_from_the_clean_conditionals(space: Space) -> None:
    inner = untaught(space, clean=True, graph=[pair for pair in GRAPH if max(pair) < space.sites])
    better = matched(inner, Rows(data(space)))
    before = exact.chain_law(better)
    found = exact.chain_law(better, sweeps={0: 2})
    torch.testing.assert_close(found, exact.swept(inner, before, sweeps=2), rtol=1e-12, atol=1e-15)
    assert float((found - before).abs().sum()) > 0.01
    drawn = sample(better, 20_000, generator=torch.Generator().manual_seed(3), sweeps={0: 2})
    chi_square.assert_drawn_from(space.index(drawn).numpy(), found.numpy())


@SPACES
def test_walks_answer_as_the_reference(space: Space) -> None:
    better, x = matched(untaught(space, members=2), Rows(data(space)), draws=2**10), space.configurations()
    found = cases.as_log_law(cases.walked(better, x, None, 0), space.states)
    torch.testing.assert_close(found, cases.recomputed(better, x, None, 0), rtol=1e-6, atol=1e-6)


def test_a_constant_site_is_left_as_it_is() -> None:
    space = Space(sites=4, states=2)
    x = data(space)
    x[:, 1] = 1
    rows = Rows(x)
    known = untaught(space, constant=1)
    inside = matched(known.inner, rows, constant=1)  # as models do it
    for whole in (KnownSites(inside, known.constant, unseen=0.0), matched(known, rows, constant=1)):
        assert off(whole, rows) < TOLERANCE
    terms = inside.terms.pair.view(4, 2, 4, 2)
    assert float(terms.abs().max()) < 1e3
    assert not terms[1].any()
    assert not terms[:, :, 1].any()  # it is hidden from the others, so that terms for it would be lost


def found_for(inner: Any, rows: Rows, spread: float, draws: int = 2**15) -> Any:
    """What is added for a spread, in features, where no directions are looked at."""
    space, generator = inner.noise.space, torch.Generator().manual_seed(1)
    whole = regressions.sample_of(rows, space.states, torch.device("cpu"))
    options: Any = {"draws": draws, "directions": 0, "generator": generator}
    return whole, match_each(inner, rows, whole, torch.full((space.sites,), -1), [spread], **options)[0].fit


@SPACES
@pytest.mark.parametrize("spread", [0.05, 0.15])
def test_what_is_kept_back_is_the_penalty_times_the_change(space: Space, spread: float) -> None:
    r"""By enumeration of the matched law: ⟨1(x_u = a) g⟩ = T − λ w, with g the constant and the centred later sites."""
    rows, inner = Rows(data(space)), untaught(space)
    sample_, fit = found_for(inner, rows, spread)
    shrink = (1 / len(rows) + 1 / 2**15) / spread**2
    all_rows = regressions.sample_of(Rows(space.configurations().to(torch.uint8)), space.states, torch.device("cpu"))
    law, outcomes, most = law_of(corrected(inner, fit)).float(), sample_.outcomes, 0.0
    mean = sample_.weight @ sample_.features
    for u in range(space.sites):
        lines, after = slice(u * outcomes, (u + 1) * outcomes), slice((u + 1) * outcomes, None)
        pairs = fit.weight[lines, after].T  # (k, O)
        weights = torch.cat([fit.bias[None, lines] + mean[after] @ pairs, pairs])
        moments = []
        for part, share in ((sample_, sample_.weight), (all_rows, law)):
            g = torch.cat([torch.ones(len(share), 1), (part.features - mean)[:, after]], dim=1)
            moments.append(g.T @ (share[:, None] * part.target[:, u]))
        gap = moments[1] - moments[0]
        if outcomes > 1:  # what the states have in common is the mean of the later sites, which site u leaves as it is
            gap = gap - gap.mean(1, keepdim=True)
        torch.testing.assert_close(gap, -shrink * weights, rtol=0, atol=TOLERANCE)
        most = max(most, float((shrink * weights).abs().max()))
    assert most > 2 * TOLERANCE  # which a wrong penalty would not pass


@SPACES
def test_without_a_spread_nothing_is_changed(space: Space) -> None:
    inner, x = untaught(space, members=2), data(space)
    torch.testing.assert_close(law_of(matched(inner, Rows(x), spread=0.0)), law_of(inner))
    near = matched(inner, Rows(x), spread=1e-4)
    # λ = 2·10⁵, so that no weight is more than a moment over it; a logit of a few features is 10⁻⁴ off at most.
    torch.testing.assert_close(law_of(near), law_of(inner), rtol=1e-3, atol=0)


@SPACES
def test_data_without_noise_do_not_distort_a_law_that_is_right(space: Space) -> None:
    inner = untaught(space)
    law = law_of(inner)
    rows = Rows(space.configurations().to(torch.uint8), None, (law * 1e9).round().double())
    better = matched(inner, rows, spread=0.3)
    assert off(better, rows) < TOLERANCE
    assert float((law_of(better) - law).abs().max()) < TOLERANCE


@SPACES
def test_spreads_that_share_a_run_are_found_as_each_by_itself(space: Space) -> None:
    rows, inner = Rows(data(space)), untaught(space)
    whole = regressions.sample_of(rows, space.states, torch.device("cpu"))
    options: Any = {"draws": 2**13, "generator": torch.Generator().manual_seed(1)}
    found = match_each(inner, rows, whole, torch.full((space.sites,), -1), [0.0, 0.1, 0.5], **options)
    assert not found[0].fit.weight.any()
    errors = [off(corrected(inner, one.fit), rows) for one in found]
    assert errors[0] > errors[1] > errors[2]
    for spread, one in zip((0.1, 0.5), found[1:], strict=True):
        alone = law_of(matched(inner, rows, spread=spread))
        # Each is as far off as the noise of 2^13 rows drawn.
        torch.testing.assert_close(law_of(corrected(inner, one.fit)), alone, rtol=0, atol=2 * TOLERANCE)


def test_weights_of_rows_tell_how_noisy_their_moments_are() -> None:
    x = data(Space(sites=4, states=2), n=6)

    def noise(weights: list[float] | None) -> float:
        counts = None if weights is None else torch.tensor(weights).double()
        return regressions.sample_of(Rows(x, None, counts), 2, torch.device("cpu")).noise

    assert noise(None) == pytest.approx(1 / 6, rel=1e-5)
    assert noise([3, 1, 1, 1, 1, 1]) == pytest.approx(1 / 8, rel=1e-5)  # counts are observations
    assert noise([0.5, 0.1, 0.1, 0.1, 0.1, 0.1]) == pytest.approx(0.25 + 5 * 0.01, rel=1e-5)
    assert enough_draws(regressions.sample_of(Rows(x), 2, torch.device("cpu")), 4) == 2**11


def test_directions_are_those_in_which_rows_vary_most() -> None:
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randint(0, 2, (400, 2), generator=generator)
    flips = torch.rand(400, 9, generator=generator) < 0.1
    x = torch.cat([hidden[:, :1].expand(-1, 6), hidden[:, 1:].expand(-1, 3)], dim=1) ^ flips
    whole = regressions.sample_of(Rows(x.to(torch.uint8)), 2, torch.device("cpu"))
    found = directions_of(whole, 2)
    wanted = torch.linalg.eigh(torch.cov(whole.features.T, correction=0))[1][:, -2:] * 3
    # Signs are nobody's choice; twelve products leave an eigenvalue that is a third of these (1/3)^12 of its share.
    torch.testing.assert_close((found.T @ wanted / 9).abs(), torch.eye(2), rtol=0, atol=1e-3)


@pytest.mark.parametrize(("sites", "states", "kinds"), [(128, 2, 3), (784, 2, 5), (2000, 2, 2), (30, 4, 3)])
def test_rows_of_few_kinds_vary_in_few_directions(sites: int, states: int, kinds: int) -> None:
    """In float32 the others seem to vary, by rounding alone: 20 directions are asked for, and two rows have one."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(0, states, (kinds, sites), generator=generator)
    rows = Rows(x[torch.randint(0, kinds, (1000,), generator=generator)].to(torch.uint8))
    found = directions_of(regressions.sample_of(rows, states, torch.device("cpu")), 20)
    lengths = found.norm(dim=0) / (sites * (1 if states == 2 else states)) ** 0.5
    wanted = torch.cat([torch.zeros(21 - kinds), torch.ones(kinds - 1)])
    torch.testing.assert_close(lengths, wanted, rtol=0, atol=1e-5)


def test_a_direction_of_little_variance_is_one() -> None:
    """All sites change together, and one in a hundred rows has another site that does not: 1,300 times less variance."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(0, 2, (4000, 1), generator=generator).expand(-1, 128).clone()
    x[torch.randperm(4000, generator=generator)[:40], 5] ^= 1
    found = directions_of(regressions.sample_of(Rows(x.to(torch.uint8)), 2, torch.device("cpu")), 20)
    lengths = found.norm(dim=0) / 128**0.5
    torch.testing.assert_close(lengths, torch.cat([torch.zeros(18), torch.ones(2)]), rtol=0, atol=1e-5)
    assert float(found[5, -2].abs()) > 0.99 * 128**0.5


def test_even_draws_follow_the_law_and_are_even() -> None:
    n = 4096
    logits = torch.linspace(-3, 3, n)[torch.randperm(n, generator=torch.Generator().manual_seed(0)), None].double()
    token = drawn_evenly(logits[None], torch.Generator().manual_seed(0))[0].double()
    wanted = torch.sigmoid(logits[:, 0])
    for low, high in ((-3, 3), (-3, -1), (0, 2)):
        here = (logits[:, 0] >= low) & (logits[:, 0] < high)
        # Independent draws would be off by about √n/2 of 4096: 32. Golden levels are off by a few.
        assert abs(float((token - wanted)[here].sum())) < 6
    rates = torch.stack(
        [drawn_evenly(logits[None, :64], torch.Generator().manual_seed(s))[0].double() for s in range(4000)]
    ).mean(0)
    assert float((rates - wanted[:64]).abs().max()) < 5 * 0.5 / 4000**0.5  # each row by itself


@pytest.mark.parametrize(
    ("members", "many", "constant"), [(1, False, False), (2, True, False), (1, False, True), (2, False, True)]
)
def test_a_model_is_calibrated_when_it_was_trained(members: int, many: bool, constant: bool) -> None:
    x = tiny.spins(n=200, sites=4)
    if constant:
        x[:, 3] = x[:, 1] * x[:, 2]
        x[:, 2] = 1
    small = {"members": members, "architecture__pairwise": True, "steps": 30, "width": 8}
    made, often = [NeurISE(calibrate=calibrate).set_params(**small) for calibrate in (False, True)], np.full(200, 50)
    for model in made:  # each row is seen fifty times, so that there is little noise
        if many:
            neurise.fit_many([model, clone(model)], [x, x], weights=[often, often], verbose=False, device="cpu")
        else:
            model.fit(x, weights=often, verbose=False, device="cpu")
    spins = 2.0 * np.array(oracles.configurations(Space(sites=4, states=2))) - 1
    errors = []
    for model in made:
        law = exact.law(model).double().numpy().ravel()
        errors.append(np.abs((spins.T * law) @ spins - x.T.astype(float) @ x / len(x)).max())
    assert errors[1] < 0.7 * errors[0], errors


def test_it_is_saved_with_the_model(tmp_path: Any) -> None:
    x = tiny.spins(n=100, sites=4)
    graph = np.array([[0, 1], [2, 3]])
    model = NeurISE(calibrate=True, graph=graph, corrector=CLEAN, steps=5, width=8)
    model.fit(x, verbose=False, device="cpu")
    model.save(tmp_path / "model")
    again = neurise.load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(again.log_prob(x), model.log_prob(x))
    np.testing.assert_array_equal(again.sample(50, seed=0, sweeps=1), model.sample(50, seed=0, sweeps=1))
    assert again.get_params()["graph"] == graph.tolist()


@pytest.mark.parametrize(
    "wrong",
    [{"keep_prob": 0.5}, {"chain__hide_noised": False}, {"architecture__pairwise": False}, {"network": "local_mlp"}],
)
def test_what_cannot_be_calibrated_says_why(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="calibrate needs the pairwise terms"):
        NeurISE(calibrate=True).set_params(**wrong).fit(tiny.spins(), verbose=False, device="cpu")


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ([[0, 3]], "graph has \\[0, 3\\] at row 0; a pair is two different sites from 0 to 2"),
        ([0, 1], "pairs of sites"),
        ([[0.5, 1.0]], "whole numbers"),
    ],
)
def test_a_wrong_graph_says_why(graph: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NeurISE(graph=graph).fit(tiny.spins(), verbose=False, device="cpu")


@pytest.mark.parametrize("wrong", [{"architecture__pairwise": False}, {"keep_prob": 0.5}])
def test_a_graph_that_would_do_nothing_says_so(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"graph (needs the pairwise terms|is for the conditionals)"):
        NeurISE(graph=[[0, 1]], corrector=CLEAN).set_params(**wrong).fit(tiny.spins(), verbose=False, device="cpu")


def clean_terms(model: NeurISE, member: int) -> list[list[int]]:
    """The pairs of places that the clean terms of a member look at."""
    whole = model.conditionals.clean
    one: Any = list(whole)[member] if isinstance(whole, Committee) else whole
    sites, states = model.space_.sites, model.space_.states
    pair = one.network.parts[0].clean_pair.view(sites, states, sites, states).abs().amax((1, 3))
    return torch.nonzero(pair).tolist()


@pytest.mark.parametrize("calibrate", [False, True])
def test_of_two_kinds_the_one_with_pairwise_terms_looks_at_the_graph(calibrate: bool) -> None:
    model = NeurISE(graph=[[0, 2]], corrector=CLEAN, members=2, steps=5, width=8, calibrate=calibrate)
    model.fit(tiny.spins(), verbose=False, device="cpu")
    assert clean_terms(model, 0) == [[0, 2], [2, 0]]
    assert list(model.shares_) == ["pairwise_terms + site_mlp", "site_mlp"]


def test_a_graph_follows_the_order_of_the_sites() -> None:
    near = adjacency([[0, 1]], order=(2, 0, 1))  # site 0 is at place 1, site 1 at place 2
    assert torch.nonzero(near).tolist() == [[1, 2], [2, 1]]


@pytest.mark.parametrize("calibrate", [False, True])
def test_sweeps_look_at_the_graph_alone(calibrate: bool) -> None:
    # The site of step 0 is no neighbour of any other: a calibration that wrote into its terms would show here.
    model = NeurISE(graph=[[0, 2]], order=[1, 2, 0], corrector=CLEAN, members=1, steps=5, width=8, calibrate=calibrate)
    model.fit(tiny.spins(n=100), verbose=False, device="cpu")
    assert isinstance(model.conditionals, MomentMatched) == calibrate
    assert clean_terms(model, 0) == [[1, 2], [2, 1]]
    view = model.conditionals.clean.view(sweep=True)
    plan: Any = model.conditionals.clean.plan(view)
    assert torch.nonzero(plan.pair.abs().amax((1, 3))).tolist() == [[1, 2], [2, 1]]


# --- files -------------------------------------------------------------------------------------------------------------


def nested(where: Frame) -> dict[str, Conditionals]:
    """Conditionals of every kind in each other."""

    def terms(seed: int) -> PairwiseTerms:
        made = PairwiseTerms(where.noise.space, where.noise.num_steps)
        for parameter in made.parameters():
            nn.init.normal_(parameter, generator=torch.Generator().manual_seed(seed))
        return made.double().requires_grad_(False)

    def known(inner: Conditionals) -> KnownSites:
        return KnownSites(inner, where.constant, unseen=0.01)

    def one(kind: str, seed: int) -> Conditionals:
        return cases.single(kind, where, seed, clean=True, hide_noised=seed != 2)

    site, local, both = one("site_mlp", 0), one("local_mlp", 1), one("pairwise sum", 2)
    committee = Committee([site, local, both], [0.2, 0.5, 0.3])
    return {
        "network": site,
        "sum": both,
        "committee": committee,
        "known": known(both),
        "matched": MomentMatched(site, terms(5)),
        "known around matched around committee": known(MomentMatched(committee, terms(6))),
        "matched around known": MomentMatched(known(both), terms(7)),
        "committee of all": Committee([known(local), MomentMatched(site, terms(8)), committee], [0.1, 0.6, 0.3]),
    }


@pytest.mark.parametrize("space", cases.SPACES.values(), ids=cases.SPACES)
@pytest.mark.parametrize("keep_prob", [0.0, 0.4])
def test_what_is_described_and_built_again_answers_alike(space: Space, keep_prob: float) -> None:
    where = cases.frame(space, keep_prob, 2 if keep_prob else 1, constant=[-1] * (space.sites - 1) + [1])
    for name, whole in nested(where).items():
        described = json.loads(json.dumps(whole.description()))
        again = kinds_of_conditionals.build(described, where).double().requires_grad_(False)
        again.load_state_dict(whole.state_dict())
        assert again.description() == whole.description(), name
        assert type(again) is type(whole)
        assert again.is_autoregressive == whole.is_autoregressive
        for t, u, x in cases.questions(whole):
            for first, second in ((again, whole), (again.clean, whole.clean)):
                found, wanted = (asked.log_conditional(t, u, x) for asked in (first, second))
                torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12, msg=name)


@pytest.mark.parametrize("space", cases.SPACES.values(), ids=cases.SPACES)
@pytest.mark.parametrize("sweep", [False, True], ids=["chain", "sweep"])
def test_whatever_is_in_each_other_walks_as_the_reference(space: Space, sweep: bool) -> None:
    where = cases.frame(space, constant=[-1] * (space.sites - 1) + [1])
    x = space.configurations()
    for name, whole in nested(where).items():
        asked = whole.clean if sweep else whole
        found = cases.as_log_law(cases.walked(asked, x, None, 0, sweep=sweep), space.states)
        wanted = cases.recomputed(asked, x, None, 0, sweep=sweep)
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9, msg=name)
