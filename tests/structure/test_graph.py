"""Which pairs are edges, and how they compare with the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neurise import datasets, structure
from neurise.dataset import Dataset
from neurise.structure.threshold import select, two_groups


class Noisy:
    """Stands for a model that learnt a data set's law with Gaussian errors on its couplings, fields and alphabet apart."""

    def __init__(self, data: Dataset, couplings: np.ndarray) -> None:
        self.data, self.couplings = data, couplings  # (sites, sites), each pair above the diagonal

    def log_prob(self, X: np.ndarray) -> np.ndarray:
        spins = np.asarray(X, dtype=float)
        return np.einsum("ni,ij,nj->n", spins, np.triu(self.couplings, 1), spins) + spins @ self.data.fields


def lattice(errors: float, seed: int = 0) -> tuple[Noisy, Dataset, np.ndarray]:
    data = datasets.edwards_anderson(side=3, seed=seed, h=0.1)
    couplings = np.random.default_rng(seed).normal(size=(9, 9)) * errors
    for (i, j), J in zip(np.sort(data.edges, axis=1).tolist(), data.couplings, strict=True):
        couplings[i, j] += J
    return Noisy(data, couplings), data, np.triu(couplings, 1)


def test_edges_stand_out_from_the_errors_by_the_default_rule() -> None:
    model, data, couplings = lattice(errors=0.1)
    found = structure.recover(model, data)
    result = structure.compare(found, data)
    assert found.rule == "two groups"
    assert result.perfect
    assert result.area == 1
    assert (result.true_edges, result.found_edges, result.pairs) == (18, 18, 36)
    upper = np.triu_indices(9, 1)
    truth = np.zeros((9, 9))
    truth[tuple(np.sort(data.edges, axis=1).T)] = data.couplings
    edge = truth[upper] != 0
    difference = (couplings - truth)[upper]
    assert result.rms == pytest.approx(np.sqrt((difference**2).mean()), rel=1e-9)
    assert result.rms_edges == pytest.approx(np.sqrt((difference[edge] ** 2).mean()), rel=1e-9)
    slope = (couplings[upper] * truth[upper]).sum() / (truth[upper] ** 2).sum()
    assert result.slope == pytest.approx(slope, rel=1e-9)
    assert result.rms_fields == pytest.approx(0, abs=1e-9)


def test_mistakes_are_named() -> None:
    model, data, _ = lattice(errors=0.0)
    pairs = {tuple(sorted(edge)) for edge in data.edges.tolist()}
    missing, turned = sorted(pairs)[:2]
    extra = next((i, j) for i in range(9) for j in range(i + 1, 9) if (i, j) not in pairs)
    model.couplings[missing] = 0
    model.couplings[turned] *= -1
    model.couplings[extra] = 1.1
    result = structure.compare(structure.recover(model, data), data)
    assert (result.missed, result.false, result.wrong_signs) == ((missing,), (extra,), (turned,))
    assert not result.perfect
    assert result.area < 1
    assert result.to_dict()["missed"] == [list(missing)]


def test_a_given_threshold_is_used() -> None:
    model, data, couplings = lattice(errors=0.3)
    found = structure.recover(model, data, threshold=1.0)
    expected = np.argwhere(np.abs(couplings) > 1.0)
    assert found.rule == "given"
    assert found.edges.tolist() == expected.tolist()


@pytest.mark.parametrize("strength", [0.0, 0.3])
def test_no_edge_or_all_alike_are_told_by_their_errors(strength: float) -> None:
    pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    data = datasets.ising(pairs, strength, 0.0)
    couplings = np.triu(np.full((5, 5), strength), 1)
    found = structure.recover(Noisy(data, couplings), data)
    result = structure.compare(found, data)
    assert found.rule == "four standard errors"
    assert found.threshold is None
    assert len(found.edges) == (10 if strength else 0)
    assert np.isnan(result.area)  # there are no pairs of the other kind


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_not_cut_in_two(seed: int) -> None:
    """Halves of a Gaussian, and a Gaussian far from zero, are one group; two clouds are two."""
    noise = np.random.default_rng(seed).normal(size=500)
    assert two_groups(np.abs(noise)) is None
    assert two_groups(5 + noise) is None
    threshold = two_groups(np.append(np.abs(noise), 10 + noise[:40]))
    assert threshold is not None
    assert np.abs(noise).max() < threshold < 10 + noise[:40].min()


def test_the_cut_leaves_the_least_variance_within() -> None:
    rng = np.random.default_rng(1)
    scores = np.abs(np.append(rng.normal(0, 0.3, 28), rng.normal(1.4, 0.3, 12)))
    ranked = np.sort(scores)
    within = [k * ranked[:k].var() + (40 - k) * ranked[k:].var() for k in range(1, 40)]
    best = int(np.argmin(within)) + 1
    assert two_groups(scores) == pytest.approx((ranked[best - 1] + ranked[best]) / 2)


def test_an_undefined_score_is_no_edge() -> None:
    chosen, _, _ = select(np.array([0.01, np.nan, 1.0, 1.1, 0.02]), np.full(5, 0.1), None)
    assert chosen.tolist() == [False, False, True, True, False]


@pytest.mark.parametrize("threshold", [-1.0, float("nan"), "much"])
def test_a_threshold_that_is_none(threshold: Any) -> None:
    with pytest.raises(ValueError, match="threshold must be a number"):
        select(np.ones(3), np.ones(3), threshold)


@pytest.mark.parametrize("seed", range(4))
def test_roc_is_that_of_scikit_learn(seed: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(seed)
    positive = rng.random(50) < 0.3
    scores = np.round(rng.normal(size=50) + positive, 1)  # with ties
    found = structure.roc(scores, positive)
    fpr, tpr, _ = metrics.roc_curve(positive, scores, drop_intermediate=False)
    np.testing.assert_allclose(found.false_positive, fpr)
    np.testing.assert_allclose(found.true_positive, tpr)
    assert found.area == pytest.approx(metrics.roc_auc_score(positive, scores))


def test_roc_mistakes() -> None:
    with pytest.raises(ValueError, match="two vectors of one length"):
        structure.roc([1.0, 2.0], [True])
    with pytest.raises(ValueError, match="NaN at index 1"):
        structure.roc([1.0, np.nan], [True, False])


def test_what_cannot_be_compared() -> None:
    model, data, _ = lattice(errors=0.0)
    found = structure.recover(model, data)
    with pytest.raises(ValueError, match="couplings of the rows are not known"):
        structure.compare(found, Dataset("the rows", data.space, data.symbols))
    with pytest.raises(ValueError, match=r"9 sites of 2 states; .* has 16"):
        structure.compare(found, datasets.edwards_anderson(side=4))


def drawn_lines(monkeypatch: pytest.MonkeyPatch, *arguments: Any, **options: Any) -> list[tuple[str, int]]:
    """Draw, and list the titles of the panels with how many lines each has."""
    figures = pytest.importorskip("matplotlib.figure")
    shown = []
    save = figures.Figure.savefig

    def watch(figure: Any, *places: Any, **style: Any) -> None:
        shown.extend((panel.get_title(), len(panel.lines)) for panel in figure.axes)
        save(figure, *places, **style)

    monkeypatch.setattr(figures.Figure, "savefig", watch)
    structure.draw(*arguments, **options)
    return shown


def test_the_picture_shows_the_true_and_the_recovered_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, data, _ = lattice(errors=0.0)
    model.couplings[tuple(sorted(data.edges[0].tolist()))] = 0
    found = structure.recover(model, data.sample(500, seed=0))  # the lattice is known from the data set
    path = tmp_path / "graph.png"
    panels = drawn_lines(monkeypatch, found, path, data)
    assert path.read_bytes()[:4] == b"\x89PNG"
    # 12 edges of a 3 × 3 torus are straight lines and 6 wrap around as two stubs; the missed edge is dotted, but drawn.
    assert panels[0] == ("true: 18 edges", 24)
    assert panels[1] == ("recovered: 17 edges, 1 missed (dotted)", 24)


def test_the_picture_without_a_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, data, _ = lattice(errors=0.0)
    found = structure.recover(model, data.sample(500, seed=0))  # rows alone: no lattice is known
    panels = drawn_lines(monkeypatch, found, tmp_path / "graph.svg")
    assert panels[0] == ("recovered: 18 edges", 0)  # a matrix
    assert panels[1][0] == "rule: two groups"
    with pytest.raises(ValueError, match=r"positions must be \(9, 2\)"):
        structure.draw(found, tmp_path / "other.png", positions=np.zeros((3, 2)))
