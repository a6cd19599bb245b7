"""What the figures mean; how large they are is never tested."""

import itertools

import pytest
import torch

from neurise.bench import speed
from neurise.bench.clock import slope, steps_a_second, timed
from neurise.bench.speed import Bench, SpeedCase


def test_a_power_law_has_its_exponent() -> None:
    assert slope([10, 100, 1000], [3 * size**1.5 for size in (10, 100, 1000)]) == pytest.approx(1.5)


def test_the_best_run_counts_and_the_first_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([0.0, 0.0, 2.0, 2.0, 3.0, 3.0, 7.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(ticks))
    runs = itertools.count()
    assert timed(lambda: next(runs), torch.device("cpu"), patience=10).seconds == 1.0
    assert next(runs) == 4  # one that is not counted, and three


def test_a_row_needs_as_many_operations_as_its_products_have() -> None:
    case = SpeedCase(sites=5, states=3, width=4, depth=3, keep_prob=0.3, cycles=2)
    products = 1 * 4 + 4 * 4 + 4 * 4 + 4 * 3  # a column, two layers, the head: multiplications of a step
    assert case.flops == 5 * 2 * 2 * products


def test_every_member_has_its_products_and_pairwise_terms_are_summed_once() -> None:
    one, several = SpeedCase(sites=5, width=4), SpeedCase(sites=5, width=4, members=3, pairwise=2)
    assert several.flops == 3 * one.flops + 5 * 2 * 5  # a term per site, at each of five steps


def test_a_committee_has_members_of_its_own_some_with_pairwise_terms() -> None:
    view = (whole := SpeedCase(sites=5, width=4, members=3, pairwise=2).answering(torch.device("cpu"))).view(
        sweep=False
    )
    assert view is not None
    plan = whole.planned(view)
    assert plan is not None
    assert plan is whole.planned(view)  # laid out
    assert [weight for weight, _ in plan.layers] == pytest.approx([1 / 3] * 3)
    assert plan.pair is not None
    assert len({float(layers.columns.sum()) for _, layers in plan.layers}) == 3


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(speed, "peak_flops", lambda device: 1e9)
    small = Bench(torch.device("cpu"), quick=True)
    small.rows = 2
    return small


@pytest.mark.parametrize("section", [name for name in speed.SECTIONS if name != "training"])
def test_sections_give_figures_under_their_name(bench: Bench, section: str) -> None:
    figures = list(bench.run(section))
    assert {figure.section for figure in figures} == {section}
    assert len({figure.name for figure in figures}) == len(figures)
    rates = [figure for figure in figures if figure.unit == "rows/s"]
    assert all(figure.value > 0 and figure.share is not None and figure.share > 0 for figure in rates)
    if section in ("sampling", "forms"):
        assert all(figure.ratio is not None and figure.ratio > 0 for figure in figures)
    else:
        assert "exponent" in figures[-1].name


def test_training_is_timed(bench: Bench) -> None:
    figures = list(bench.run("training"))
    assert [figure.unit for figure in figures] == ["examples/s", "examples/s"]
    assert all(figure.value > 0 and figure.ratio is not None and figure.ratio > 0 for figure in figures)


def test_the_start_of_a_run_is_left_out_where_it_can_be() -> None:
    slow, fast = {"step": 10, "seconds": 5.0}, {"step": 30, "seconds": 6.0}
    assert steps_a_second([slow, fast]) == 20
    assert steps_a_second([slow]) == 2


def test_an_example_goes_through_every_product_three_times() -> None:
    products = 5 * 3 * 4 + 4 * 4 + 4 * 4 + 4 * 3  # all columns, two layers, the head
    assert SpeedCase(sites=5, states=3, width=4, depth=3).training_flops == 3 * 2 * products


def test_an_unknown_section_is_refused(bench: Bench) -> None:
    with pytest.raises(ValueError, match=r"section must be one of 'sampling'.*got 'speed'"):
        next(bench.run("speed"))
