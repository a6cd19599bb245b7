"""Models that version 0.1 saved still load, and answer as they did then."""

import json
from pathlib import Path

import numpy as np
import pytest

import neurise

SAVED = Path(__file__).parents[1] / "saved_models" / "v0.1"
NAMES = sorted(folder.name for folder in SAVED.iterdir())


def loaded(name: str) -> tuple[neurise.Model, dict]:
    return neurise.load(SAVED / name, "cpu"), json.loads((SAVED / name / "answers.json").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_a_model_of_version_0_1_has_the_law_and_the_likelihood_that_it_had(name: str) -> None:
    model, answers = loaded(name)
    np.testing.assert_allclose(neurise.exact.law(model).numpy(), answers["law"], rtol=1e-5, atol=1e-9)
    if "log_prob" in answers:
        found = model.log_prob(np.array(answers["rows"]), answers["labels"])
        np.testing.assert_allclose(found, answers["log_prob"], rtol=1e-5)
    if "law_without_sweeps" in answers:
        plain = neurise.exact.law(model, sweeps=0).numpy()
        np.testing.assert_allclose(plain, answers["law_without_sweeps"], rtol=1e-5, atol=1e-9)
        assert np.abs(plain - answers["law"]).max() > 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_a_model_of_version_0_1_is_saved_anew_as_it_is(name: str, tmp_path: Path) -> None:
    model, _ = loaded(name)
    model.save(tmp_path / "again")
    again = neurise.load(tmp_path / "again", "cpu")
    assert repr(again) == repr(model)
    np.testing.assert_array_equal(neurise.exact.law(again), neurise.exact.law(model))


def test_there_is_one_of_every_kind() -> None:
    kinds = {json.loads((SAVED / name / "config.json").read_text())["model"] for name in NAMES}
    assert kinds == {"neurise", "ggm", "d3pm", "sedd", "dfm", "pairwise", "independent", "memorize"}
