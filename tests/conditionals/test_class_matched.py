"""A correction of each class is a normalised law, and its moments are those of the data, as far as rows of the class tell."""

from __future__ import annotations

import json
from typing import Any

import conditionals_cases as cases
import numpy as np
import oracles
import pytest
import torch
from torch import Tensor, nn

from neurise import conditionals as kinds_of_conditionals
from neurise import likelihood
from neurise.conditionals import _class_matching, moment_matched
from neurise.conditionals._class_matching import ByClass
from neurise.conditionals.base import Conditionals
from neurise.conditionals.class_matched import ClassMatched, ClassTerms
from neurise.conditionals.moment_matched import MomentMatched, corrected, match, match_each
from neurise.conditionals.row_conditionals import RowConditionals
from neurise.energies import moments, regressions
from neurise.networks.masked import Masked
from neurise.rows import Rows
from neurise.space import Space

CPU = torch.device("cpu")
SPACES = pytest.mark.parametrize("space", [Space(sites=4, states=2), Space(sites=3, states=4)], ids=["bits", "four"])
CLASSES, RARE = 3, 40
DRAWS = 2**16
TOLERANCE = 5 * 0.5 / 2**8
"""Five standard deviations of a share of 2^16 independent rows at most."""


def untaught(space: Space, kind: str = "pairwise sum", constant: int = -1) -> Conditionals:
    """Conditionals of classes that know nothing of any data."""
    fixed = [-1] * space.sites
    fixed[1] = constant
    where = cases.frame(space, constant=fixed, classes=CLASSES)
    if kind != "masked":
        return cases.single(kind, where)
    network, generator = Masked(space, space.sites, width=8, depth=2, classes=CLASSES), torch.Generator().manual_seed(0)
    for parameter in network.double().requires_grad_(False).parameters():
        nn.init.normal_(parameter, std=0.3, generator=generator)
    return RowConditionals(network, where)


def with_terms(inner: Conditionals, directions: int = 2) -> ClassMatched:
    """Conditionals with terms of each class that are all drawn."""
    terms, generator = ClassTerms(inner.noise.space, CLASSES, directions), torch.Generator().manual_seed(1)
    for parameter in terms.double().requires_grad_(False).parameters():
        nn.init.normal_(parameter, std=0.6, generator=generator)
    return ClassMatched(inner, terms)


@SPACES
@pytest.mark.parametrize("kind", ["pairwise sum", "masked"])
@pytest.mark.parametrize("directions", [0, 2])
def test_every_form_is_the_formula(space: Space, kind: str, directions: int) -> None:
    r"""The logits :math:`c_{y,u} + \sum_k w_{y,uk} \sum_{i>u} a_{y,ik} \phi(x_i)`, an entry at a time."""
    inner = untaught(space, kind)
    whole, x = with_terms(inner, directions), space.configurations()
    axes, along, bias = (part.numpy() for part in (whole.terms.axes, whole.terms.along, whole.terms.bias))
    each = whole.terms.outcomes
    hot = x.numpy()[..., None] == np.arange(space.states)
    features = hot[..., 1:] - 0.5 if each == 1 else hot - 1 / space.states
    for y in range(CLASSES):
        labels, start = torch.full((len(x),), y), torch.zeros(1, dtype=torch.int64)
        at_once = whole.log_conditionals(x, labels)
        walked = cases.as_log_law(cases.walked(whole, x, labels, 0)[0], space.states)
        for u in range(space.sites):
            change = np.zeros((len(x), space.states))
            for a in range(each):
                line = u * each + a
                total = np.full(len(x), bias[y, line])
                for k in range(directions):
                    for i in range(u + 1, space.sites):
                        for b in range(each):
                            total += along[y, line, k] * axes[y, i * each + b, k] * features[:, i, b]
                change[:, a if each > 1 else 1] = total
            t = torch.tensor([u])
            before = inner.log_conditional(t, t, x, labels)
            wanted = torch.log_softmax(before + torch.from_numpy(change), dim=-1)
            found = whole.log_conditional(t, t, x, labels)
            for form in (found, at_once[:, u], walked[:, u]):
                torch.testing.assert_close(form, wanted, rtol=0, atol=1e-9)
            # Other steps, rows without a label and the clean conditionals have no terms.
            for other, asked in ((t - 1, whole), (t, whole.clean)):
                answer = asked.log_conditional(other, t, x, labels)
                torch.testing.assert_close(answer, inner.log_conditional(other, t, x, labels), rtol=0, atol=0)
            assert torch.equal(whole.log_conditional(t, t, x), inner.log_conditional(t, t, x))
        law = likelihood.log_prob(whole, x, labels).exp()
        assert float(law.sum()) == pytest.approx(1, abs=1e-9)
        # A walk that begins below sites that are known.
        top = space.sites - 1
        begun = whole.walk(x.T.contiguous(), labels, start, top=top)
        lower = cases.as_log_law(begun.logits(top - 1)[None], space.states)[0]
        torch.testing.assert_close(lower, walked[:, top - 1], rtol=0, atol=1e-9)


@SPACES
def test_what_is_described_and_built_again_answers_alike(space: Space) -> None:
    whole = with_terms(untaught(space))
    where = cases.frame(space, classes=CLASSES)
    again = kinds_of_conditionals.build(json.loads(json.dumps(whole.description())), where)
    again.double().requires_grad_(False).load_state_dict(whole.state_dict())
    x, y = space.configurations(), torch.arange(len(space.configurations())) % CLASSES
    assert torch.equal(again.log_conditionals(x, y), whole.log_conditionals(x, y))
    assert again.description() == whole.description()


# --- what is found -------------------------------------------------------------------------------------------------------


def labelled(space: Space, n: int = 500) -> Rows:
    """Rows of a law per class; the last class is rare."""
    counts = [n] * (CLASSES - 1) + [RARE]
    parts = [oracles.draw(space, oracles.random_law(space, seed), count, seed) for seed, count in enumerate(counts)]
    y = torch.repeat_interleave(torch.arange(CLASSES), torch.tensor(counts))
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
    return Rows(torch.from_numpy(np.concatenate(parts)).to(torch.uint8), y).take(order)


def found_for(inner: Conditionals, rows: Rows, spreads: list[float], **more: Any) -> list[Any]:
    data = regressions.sample_of(rows, inner.noise.space.states, CPU)
    options: Any = {"draws": CLASSES * DRAWS, "classes": CLASSES, "generator": torch.Generator().manual_seed(1), **more}
    return match_each(inner, rows, data, torch.full((inner.noise.space.sites,), -1), spreads, **options)


def law_of(whole: Conditionals, y: int) -> Tensor:
    x = whole.noise.space.configurations().to(torch.uint8)
    return likelihood.log_prob(whole, x, torch.full((len(x),), y)).exp().float()


@SPACES
@pytest.mark.parametrize("spread", [0.1, 0.4])
def test_what_is_kept_back_of_a_class_is_its_own_penalty_times_the_change(
    space: Space, spread: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    r"""By enumeration of the law of each class: ⟨1(x_u = a) g⟩ = T − λ w, g being 1 and its scaled, centred directions."""
    monkeypatch.setattr(_class_matching, "STEPS", moments.ITERATIONS)  # to the minimum
    rows, inner = labelled(space), untaught(space)
    one = found_for(inner, rows, [spread])[0]
    whole, most = corrected(inner, one.fit, one.by_class), [0.0] * CLASSES
    assert isinstance(whole, ClassMatched)
    every = regressions.sample_of(Rows(space.configurations().to(torch.uint8)), space.states, CPU)
    for y in range(CLASSES):
        own = regressions.sample_of(Rows(rows.x[rows.y == y]), space.states, CPU)
        law, each = law_of(whole, y), own.outcomes
        assert float(law.sum()) == pytest.approx(1, abs=1e-5)
        shrink = (1 / len(own.features) + 1 / DRAWS) / spread**2
        for u in range(space.sites):
            lines, after = slice(u * each, (u + 1) * each), slice((u + 1) * each, None)
            along = [part.features[:, after] @ one.by_class.axes[y, after] for part in (own, every)]
            mean, scale = along[0].mean(0), 0.5 / along[0].std(0, correction=0).clamp(min=1e-6)
            scale = torch.where(along[0].std(0, correction=0) > 1e-6, scale, 0.0)
            slopes = one.by_class.along[y, lines].T / torch.where(scale > 0, scale, 1.0)[:, None]
            weights = torch.cat([(one.by_class.bias[y, lines] + mean @ one.by_class.along[y, lines].T)[None], slopes])
            found = []
            for part, axis, share in ((own, along[0], own.weight), (every, along[1], law)):
                g = torch.cat([torch.ones(len(share), 1), (axis - mean) * scale], dim=1)
                found.append(g.T @ (share[:, None] * part.target[:, u]))
            gap = found[1] - found[0]
            if each > 1:  # what the states have in common is the mean of the later sites, which site u leaves as it is
                gap = gap - gap.mean(1, keepdim=True)
            torch.testing.assert_close(gap, -shrink * weights, rtol=0, atol=3 * TOLERANCE)
            most[y] = max(most[y], float((shrink * weights).abs().max()))
    assert most[-1] > 6 * TOLERANCE  # which the penalty of a class with many rows would not pass


def off(whole: Conditionals, rows: Rows, y: int) -> float:
    """The largest error of a token's probability in a class."""
    space = whole.noise.space
    hot = (space.configurations()[..., None] == torch.arange(space.states)).float().flatten(1)
    own = (rows.x[rows.y == y][..., None] == torch.arange(space.states)).float().flatten(1)
    return float((law_of(whole, y) @ hot - own.mean(0)).abs().max())


@SPACES
@pytest.mark.parametrize("kind", ["pairwise sum", "masked"])
def test_means_of_classes_move_towards_the_data_but_for_the_noise_of_few_rows(space: Space, kind: str) -> None:
    rows, inner = labelled(space), untaught(space, kind)
    assert rows.y is not None
    whole = match(inner, rows, torch.full((space.sites,), -1), generator=torch.Generator().manual_seed(1), draws=2**14)
    together = corrected(inner, found_for(inner, rows, [0.16], classes=0)[0].fit)
    assert isinstance(together, MomentMatched)
    for y in range(CLASSES):
        # A share λ/(h + λ) is left, with h about 0.2: λ is 0.1 for 500 rows, and 1 for 40, which are hardly believed.
        most = 0.5 if y < CLASSES - 1 else 1.0
        assert off(whole, rows, y) < most * off(together, rows, y)
    assert off(whole, rows, CLASSES - 1) > 0.05


@SPACES
def test_weights_of_rows_count(space: Space) -> None:
    rows = labelled(space)
    often = rows.take(torch.arange(len(rows)).repeat_interleave(1 + torch.arange(len(rows)) % 3))
    weighted = Rows(rows.x, rows.y, 1.0 + torch.arange(len(rows)).double() % 3)
    made = []
    for part in (often, weighted):
        assert part.y is not None
        data = regressions.sample_of(part, space.states, CPU)
        varies = torch.ones(data.features.shape[1])
        one = ByClass(data, part.y, CLASSES, space, varies, [0.0, 0.3], draws=100, directions=1)
        features = torch.zeros(2 * CLASSES * 100, data.outcomes)
        for u in reversed(range(1, space.sites)):
            one.put(u, features)
        made.append(one)
    second = made[1]
    counts = torch.bincount(often.y).double()  # type: ignore[arg-type]
    torch.testing.assert_close(second.share.double(), counts / len(often), rtol=1e-5, atol=0)
    torch.testing.assert_close(second.shrink[1].double(), (1 / counts + 1 / 100) / 0.09, rtol=1e-5, atol=0)
    assert bool(second.shrink[0].isinf().all())
    assert second.noise == pytest.approx(float((counts / len(often)).square().sum()) / 100, rel=1e-5)
    means = [(one.weight @ one.known).abs() for one in made]  # a direction has no sign
    torch.testing.assert_close(*means, rtol=1e-3, atol=1e-4)


def test_a_class_without_rows_gets_nothing_of_its_own() -> None:
    space = Space(sites=4, states=2)
    rows = labelled(space)
    own = rows.take(torch.nonzero(rows.y != 1).flatten())  # type: ignore[arg-type]
    one = found_for(untaught(space), own, [0.3], draws=3 * 2**8)[0]
    assert one.by_class is not None
    assert not one.by_class.bias[1].any()
    assert not one.by_class.along[1].any()
    assert one.by_class.bias[2].any()


def test_a_constant_site_is_left_as_it_is() -> None:
    space = Space(sites=4, states=2)
    rows, inner = labelled(space), untaught(space, constant=1)
    rows.x[:, 1] = 1
    fixed = torch.tensor([-1, 1, -1, -1])
    whole = match(inner, rows, fixed, generator=torch.Generator().manual_seed(1), draws=2**10)
    assert isinstance(whole, ClassMatched)
    assert not whole.terms.axes[:, 1].any()
    assert not whole.terms.bias[:, 1].any()


def test_spreads_that_share_a_run_are_found_as_each_by_itself() -> None:
    space = Space(sites=4, states=2)
    rows, inner = labelled(space), untaught(space)
    found = found_for(inner, rows, [0.0, 0.1, 0.5])
    assert not found[0].fit.bias.any()
    assert not found[0].by_class.bias.any()
    for spread, one in zip((0.1, 0.5), found[1:], strict=True):
        alone = found_for(inner, rows, [spread])[0]
        for y in range(CLASSES):
            first, second = (law_of(corrected(inner, part.fit, part.by_class), y) for part in (one, alone))
            torch.testing.assert_close(first, second, rtol=0, atol=2 * TOLERANCE)


def test_too_many_classes_and_rows_without_labels_are_matched_together(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("labels are looked at")

    monkeypatch.setattr(moment_matched, "ByClass", never)
    space = Space(sites=4, states=2)
    rows, inner = labelled(space), untaught(space)
    most = CLASSES * _class_matching.FEWEST_OF_CLASS
    for part, draws in ((Rows(rows.x), most), (rows, most - 1)):
        assert found_for(inner, part, [0.3], draws=draws)[0].by_class is None
    with pytest.raises(AssertionError, match="labels are looked at"):
        found_for(inner, rows, [0.3], draws=most)
