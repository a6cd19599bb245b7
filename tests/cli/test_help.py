"""The command line answers at once, because it imports nothing that it does not need."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from neurise import __version__, discovery
from neurise.cli import app

HEAVY = ("torch", "numpy", "matplotlib", "scipy", "safetensors", "neurise.modeling.model")

PROBE = """
import json, sys
sys.argv = ["neurise", *sys.argv[1:]]
from neurise.cli import main
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["train"],
        ["sample"],
        ["evaluate"],
        ["demo"],
        ["theory"],
        ["structure"],
        ["bench"],
        ["experiment", "run"],
        ["tune"],
        ["report"],
    ],
)
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", PROBE, *words, "--help"], capture_output=True, text=True, check=True)
    assert "Usage" in done.stdout
    loaded = json.loads(done.stderr.strip().splitlines()[-1])
    assert "neurise.cli.train" in loaded  # the probe looks at what it should
    assert not [name for name in HEAVY if name in loaded]


def test_module_runs_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "neurise", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"neurise {__version__}"


def test_every_verb_has_help_json_and_debug() -> None:
    verbs = discovery.names("neurise.cli")
    assert {"demo", "train", "sample", "evaluate", "theory", "structure"} <= set(verbs)
    for name in verbs:
        shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200"})
        assert shown.exit_code == 0
        assert "--json" in shown.output
        assert "--debug" in shown.output


@pytest.mark.parametrize("words", [["frobnicate"], ["train", "x.csv"], ["train", "x.csv", "-o", "m", "--widht", "3"]])
def test_usage_errors_have_code_2(words: list[str]) -> None:
    assert CliRunner().invoke(app, words).exit_code == 2
