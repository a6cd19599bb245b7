"""Symbols that a site never showed: unlikely, or impossible."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch

import neurise
from neurise import exact
from neurise.persistence import load_folder, save_folder

ROWS = np.array(list(itertools.product([0, 1, 2], repeat=3)))


@pytest.mark.parametrize(("members", "skip"), [(1, False), (2, False), (2, True)], ids=str)
def test_a_symbol_that_was_never_seen_is_unlikely_or_impossible(members: int, skip: bool) -> None:
    X = np.random.default_rng(0).choice(3, size=(60, 3))
    X[:, 1] = 2
    for unseen in (1e-6, 0.0):
        one = tiny.model(members=members, architecture__pairwise=skip, chain__unseen=unseen).fit(X, max_steps=20)
        law, log_prob = exact.law(one).numpy(), one.log_prob(ROWS)
        seen = ROWS[:, 1] == 2
        np.testing.assert_allclose(np.exp(log_prob), law, rtol=1e-5)
        assert law.sum() == pytest.approx(1, abs=1e-9)
        assert np.isfinite(log_prob[seen]).all()
        if not unseen:
            assert (log_prob[~seen] == -np.inf).all()
            continue
        # Whichever symbol it is, the others are judged as if it were the one that was always there.
        for other in (0, 1):
            ratio = log_prob[ROWS[:, 1] == other] - log_prob[seen]
            np.testing.assert_allclose(ratio, np.log(1e-6 / (1 - 2e-6)), atol=1e-4)


def test_a_file_from_before_unseen_symbols_had_a_probability_keeps_them_impossible(tmp_path: Path) -> None:
    X = tiny.spins()
    X[:, 1] = 1
    one = tiny.model(chain__unseen=0.0).fit(X, max_steps=5)
    one.save(tmp_path / "new")
    config, tensors = load_folder(tmp_path / "new")
    del config["params"]["unseen"], config["checksum"]
    save_folder(tmp_path / "old", config, tensors)
    loaded = neurise.load(tmp_path / "old")
    assert loaded.get_params()["unseen"] == 0
    assert torch.equal(exact.law(loaded), exact.law(one))
    for name in ("independent", "dfm"):  # which have no such parameter
        tiny.model(name).fit(X, **({"max_steps": 2} if tiny.is_trained(name) else {})).save(tmp_path / name)
        assert neurise.load(tmp_path / name).sample(3, seed=0).shape == (3, 3)
