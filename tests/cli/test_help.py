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

COMMANDS = [["train"], ["sample"], ["evaluate"], ["demo"], ["theory"], ["structure"], ["bench"], ["experiment", "run"]]
COMMANDS += [["tune"], ["report"], ["data"], ["data", "make"], ["data", "info"], ["data", "list"], []]
COMMANDS += [["completion"], ["score"], ["mutate"], ["impute"], ["play"], ["card"]]

PROBE = """
import json, sys
from neurise.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["neurise", *words, "--help"]
    try:
        main()
    except SystemExit as end:
        print(json.dumps([words, end.code, sorted(sys.modules)]), file=sys.stderr)
"""


def test_help_imports_nothing_heavy() -> None:
    """One process shows the help of every verb, and tells after each what is loaded by then."""
    words = [sys.executable, "-c", PROBE, json.dumps(COMMANDS)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.count("Usage") == len(COMMANDS)
    told = [json.loads(line) for line in done.stderr.splitlines()]
    assert [command for command, _, _ in told] == COMMANDS
    for command, code, loaded in told:
        assert code == 0
        assert "neurise.cli.train" in loaded  # the probe looks at what it should
        assert not [name for name in HEAVY if name in loaded], command


def test_module_runs_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "neurise", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"neurise {__version__}"


def test_every_verb_has_help_json_and_debug() -> None:
    verbs = discovery.names("neurise.cli")
    assert {"demo", "train", "sample", "evaluate", "theory", "structure"} <= set(verbs)
    assert {command[0] for command in COMMANDS if command} == set(verbs)  # none is left out above
    for name in verbs:
        shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200"})
        assert shown.exit_code == 0
        assert "--json" in shown.output or name == "completion"  # a script is written for a program already
        assert "--debug" in shown.output


def test_help_says_which_networks_are_for_which_models() -> None:
    shown = CliRunner().invoke(app, ["train", "--help"], env={"COLUMNS": "400"}).output
    assert "local_mlp, pairwise_terms, site_mlp (one site at a time), causal, masked, sparse (a whole" in shown
    assert "joint_mlp (all sites at once, for the other models)" in shown


@pytest.mark.parametrize("words", [["frobnicate"], ["train", "x.csv"], ["train", "x.csv", "-o", "m", "--widht", "3"]])
def test_usage_errors_have_code_2(words: list[str]) -> None:
    assert CliRunner().invoke(app, words).exit_code == 2
