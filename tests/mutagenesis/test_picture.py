"""Maps of proteins and of many spins: labels that do not touch, colours around zero, and grey where nothing is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import figure_checks
import numpy as np
import pytest

from neurise import mutagenesis
from neurise.mutagenesis import Mutations


def made(sites: int, symbols: list[Any], constant: tuple[int, ...] = ()) -> Mutations:
    rng = np.random.default_rng(sites)
    wild = rng.integers(0, len(symbols), sites)
    values = rng.normal(-3, 2, (sites, len(symbols)))
    values[np.arange(sites), wild] = 0
    values[list(constant)] = np.where(values[list(constant)] == 0, 0, -13.8)
    is_wild = wild[:, None] == np.arange(len(symbols))
    table = np.array([symbols] * sites, dtype=object)
    return Mutations(np.array(symbols)[wild], table, is_wild, values, None, "log_prob", constant)


@pytest.mark.parametrize(
    ("sites", "symbols"), [(53, list("-ACDEFGHIKLMNPQRSTVWY")), (263, [-1, 1]), (3, [0, 1, 2]), (130, list(range(40)))]
)
def test_every_size_can_be_read(
    sites: int, symbols: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = made(sites, symbols)
    figure = figure_checks.drawn_figure(monkeypatch, lambda: mutagenesis.draw(found, tmp_path / "map.png"))
    figure_checks.check(figure)
    panels = figure.axes[:-1]  # the last one is the colour bar
    assert len(panels) == -(-sites // 66)
    dots = np.concatenate([panel.collections[0].get_offsets() for panel in panels])
    assert dots[:, 1].tolist() == np.nonzero(found.is_wild)[1].tolist()  # one for each site, at its symbol
    for panel in panels:
        low, high = panel.images[0].get_clim()
        assert low == -high
    assert (tmp_path / "map.png").stat().st_size > 0


def test_sites_that_never_varied_are_grey_and_set_no_scale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = made(10, list("abc"), constant=(4,))
    found.log_ratio[2, np.flatnonzero(~found.is_wild[2])[0]] = -np.inf
    figure = figure_checks.drawn_figure(monkeypatch, lambda: mutagenesis.draw(found, tmp_path / "map.svg"))
    image = figure.axes[0].images[0]
    assert np.ma.getmaskarray(image.get_array())[:, 4].all()
    assert np.ma.getmaskarray(image.get_array()).sum() == 4
    assert image.get_clim()[1] < 13
    assert "never varied" in figure.get_suptitle()
