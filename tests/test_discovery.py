import subprocess
import sys
from pathlib import Path

import pytest

from neurise import discovery
from neurise.networks.site_mlp import SiteMLP


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package of three files, of which one is for sharing and one is private."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "base.py").touch()
    (folder / "_helpers.py").write_text("raise RuntimeError('imported')")
    (folder / "two_words.py").write_text("def _two_words(): ...\ndef helper(): ...\ndef two_words(): ...\n")
    (folder / "some_thing.py").write_text("class SomeThing: ...\n")
    (folder / "blank.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "shelf"
    for name in [name for name in sys.modules if name.partition(".")[0] == "shelf"]:
        del sys.modules[name]


def test_names_are_the_files_that_offer_something(shelf: str) -> None:
    assert discovery.names(shelf) == ("blank", "some_thing", "two_words")


def test_a_file_offers_what_bears_its_name(shelf: str) -> None:
    assert discovery.find(shelf, "some_thing").__name__ == "SomeThing"
    assert discovery.find(shelf, "two_words").__name__ == "two_words"  # and not the private helper before it
    assert discovery.find("neurise.networks", "site_mlp") is SiteMLP


def test_a_file_without_what_it_promises_says_so(shelf: str) -> None:
    with pytest.raises(AttributeError, match=r"shelf\.blank offers nothing called 'blank'"):
        discovery.find(shelf, "blank")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("some_thin", "unknown shelf 'some_thin'; did you mean some_thing?"),
        ("zzz", "unknown shelf 'zzz'; there are: blank, some_thing, two_words"),
        ("_helpers", "unknown shelf '_helpers'"),
        ("base", "unknown shelf 'base'"),
        ("../evil", "unknown shelf"),
        ("os.path", "unknown shelf"),
        (5, "a shelf is called by its name, got 5"),
    ],
)
def test_an_unknown_name_suggests_a_near_one(shelf: str, name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        discovery.find(shelf, name)


@pytest.mark.parametrize("package", ["neurise.nothing_there", "neurise.space"])
def test_what_is_no_package_is_an_error_and_not_an_empty_or_a_foreign_list(package: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=package):
        discovery.names(package)


def test_everything_on_offer_can_be_found() -> None:
    for package in ("neurise.models", "neurise.networks", "neurise.datasets", "neurise.metrics"):
        offered = discovery.names(package)
        assert offered
        assert discovery.bind(package).keys() == set(offered)


def test_listing_names_imports_nothing_heavy() -> None:
    code = "import sys; from neurise import discovery as d; print(d.names('neurise.models'), 'torch' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "'neurise'" in shown
    assert shown.strip().endswith("False")
