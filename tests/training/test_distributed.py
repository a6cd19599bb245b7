"""Two processes that train one model do what one process does with the same batch."""

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import racing
import tiny
import torch

from neurise.modeling.model import Model
from neurise.training import distributed
from neurise.training.distributed import Team

TESTS = str(Path(__file__).parents[1])

CHILD = """
import itertools, json, os, shutil, signal, sys
from functools import partial
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import tiny
import torch
from neurise.cli.sample import _draw
from neurise import deadline
from neurise.training import distributed, loop
from neurise.training.state import TrainingState
from neurise.training.step import Step
from training.test_distributed import RUNS, digest, run

torch.set_num_threads(1)
folder, found = Path(sys.argv[2]), {"saves": 0}
genuine_save, genuine_step = TrainingState.save, Step.__call__

def save(*args):
    found["saves"] += 1
    genuine_save(*args)

def ask_to_stop(step, progress):
    if step.state.step == 17 and os.environ["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGINT)
    return genuine_step(step, progress)

TrainingState.save = save
with distributed.joined("cpu") as team:
    for name in RUNS:
        model = run(name, checkpoint=folder / name)
        found[name] = {"history": model.history_, "digest": digest(model), "stopped": model.stopped_}
        found[name] |= {"shares": getattr(model, "shares_", None), "solved": getattr(model, "solved_words_", None)}
        if team.is_leader:
            model.save(folder / name)
    draw = partial(_draw, model, y=None, clamp=None, sweeps=None)
    rows = [draw(number=number, seed=5) for number in (9, 9, 1)]
    found["rows"] = [None if part is None else part.tolist() for part in rows]
    found["fresh"] = None if (part := draw(number=40, seed=None)) is None else part.tolist()
    Step.__call__ = ask_to_stop
    model = run("plain", checkpoint=folder / "stopped")
    found["interrupted"] = {"stopped": model.stopped_, "history": model.history_}
    if team.is_leader:
        shutil.copytree(folder / "stopped", folder / "copy")
    Step.__call__ = genuine_step
    model = run("plain", checkpoint=folder / "stopped", resume=True)
    found["resumed"] = {"history": model.history_, "digest": digest(model)}
    genuine_clock = deadline.CLOCK
    deadline.CLOCK = itertools.count(step=team.rank + 1).__next__  # the second clock is fast
    model = tiny.model().fit(tiny.spins(), max_seconds=5, device="cpu")
    deadline.CLOCK = genuine_clock
    found["clock"] = {"stopped": model.stopped_, "history": model.history_, "digest": digest(model)}
    try:
        tiny.model(training__batch_size=1).fit(tiny.spins(), max_steps=5, device="cpu")
    except ValueError as error:
        found["too small"] = str(error)
(folder / f"{team.rank}.json").write_text(json.dumps(found))
"""

RUNS: dict[str, dict[str, Any]] = {
    "plain": {"params": {"keep_prob": 0.5, "cycles": 2}},
    "odd batch": {"params": {"training__batch_size": 33, "loss": "cross_entropy"}},
    "labels and counts": {"y": np.where(tiny.spins()[:, 0] > 0, "up", "down"), "weights": np.arange(60) % 4},
    "another method": {"name": "d3pm"},
    "a race": {"races": True},
    "beside an energy": {"params": {"architecture__energy": True, "architecture__counts": True}},
}


def run(name: str, **fit: Any) -> Model:
    given = {key: value for key, value in RUNS[name].items() if key not in ("params", "name", "races")}
    model = tiny.model(RUNS[name].get("name", "neurise"), **RUNS[name].get("params", {}))
    with racing.on_small_data(behind=racing.ALL) if "races" in RUNS[name] else nullcontext():
        return model.fit(tiny.spins(), max_steps=40, device="cpu", verbose=False, **given, **fit)


def digest(model: Model) -> str:
    return str([weight.tolist() for weight in tiny.weights(model).values()])


def torchrun(*command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Start two processes, as a user would."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("COV_CORE")}
    done = subprocess.run(
        [*launch, *command], env=variables | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=300
    )
    assert not check or done.returncode == 0, done.stderr[-4000:]
    return done


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], Path]:
    """What two processes, started by torchrun, have found, and the folder that they wrote to."""
    folder = tmp_path_factory.mktemp("team")
    (folder / "child.py").write_text(CHILD)
    torchrun(str(folder / "child.py"), TESTS, str(folder))
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)], folder


Found = tuple[list[dict[str, Any]], Path]


@pytest.mark.parametrize("name", RUNS)
def test_two_processes_have_the_loss_curve_of_one(found: Found, name: str) -> None:
    leader, _ = found[0]
    alone = run(name)
    assert leader[name]["stopped"] == alone.stopped_
    assert len(leader[name]["history"]) == len(alone.history_) == 4
    for ours, theirs in zip(leader[name]["history"], alone.history_, strict=True):
        assert ours["step"] == theirs["step"]
        assert ours["loss"] == pytest.approx(theirs["loss"], abs=1e-5)
        assert ours["validation"] == pytest.approx(theirs["validation"], abs=1e-5)


@pytest.mark.parametrize("name", [*RUNS, "resumed", "clock"])
def test_both_processes_end_with_the_same_bits(found: Found, name: str) -> None:
    leader, other = found[0]
    assert leader[name]["digest"] == other[name]["digest"]
    assert leader[name]["history"] == other[name]["history"]


def test_both_processes_solve_for_the_same_and_weigh_it_alike(found: Found) -> None:
    leader, other = (process["beside an energy"] for process in found[0])
    assert leader["shares"] == other["shares"] == run("beside an energy").shares_
    assert set(leader["solved"]) == {"energy", "counts"}
    assert leader["solved"] == other["solved"]


def test_only_the_leader_writes(found: Found) -> None:
    leader, other = found[0]
    assert leader["saves"] > 0
    assert other["saves"] == 0


def test_ctrl_c_in_one_process_stops_both_at_the_same_step(found: Found) -> None:
    for process in found[0]:
        assert process["interrupted"]["stopped"] == "interrupted"
        assert [record["step"] for record in process["interrupted"]["history"]] == [10, 20]  # asked after step 18


def test_a_stopped_run_goes_on_as_if_nothing_had_happened(found: Found) -> None:
    for process in found[0]:
        assert process["resumed"]["digest"] == process["plain"]["digest"]


def test_one_process_goes_on_where_two_stopped(found: Found) -> None:
    (leader, _), folder = found
    model = run("plain", checkpoint=folder / "copy", resume=True)
    assert len(model.history_) == 4
    for ours, theirs in zip(model.history_, leader["plain"]["history"], strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], abs=1e-5)


def test_clocks_that_differ_end_training_at_the_same_step(found: Found) -> None:
    leader, other = (process["clock"] for process in found[0])
    assert leader["stopped"] == other["stopped"] == "time"
    # Every process has a clock of its own speed, and all of them look at the leader's every ten steps.
    (step,) = [record["step"] for record in leader["history"]]
    assert [record["step"] for record in other["history"]] == [step]
    assert step % 10 == 0


def test_sampling_is_split_and_no_random_numbers_are_shared(found: Found) -> None:
    leader, other = found[0]
    rows, again, single = leader["rows"]
    assert other["rows"] == [None, None, None]
    assert rows == again
    assert (len(rows), len(single)) == (9, 1)
    assert rows[:4] != rows[4:8]  # the shares of the two processes; equal by chance once in 2^12
    assert leader["fresh"][:20] != leader["fresh"][20:]


def test_a_batch_smaller_than_the_team_is_refused(found: Found) -> None:
    for process in found[0]:
        assert "a batch of 1 cannot be shared by 2 processes; use a larger batch_size" in process["too small"]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("n", [7, 20])
def test_shares_are_disjoint_and_complete(n: int, size: int) -> None:
    device, numbers = torch.device("cpu"), torch.arange(n)
    teams = [Team(rank, size, device) for rank in range(size)]
    shares = [team.share((numbers, None))[0] for team in teams]
    assert torch.equal(torch.cat(shares), numbers)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert sum(team._part for team in teams) == pytest.approx(1)


def test_every_process_has_a_seed_of_its_own() -> None:
    teams = [Team(rank, 8, torch.device("cpu")) for rank in range(8)]
    assert len({team.seed(seed) for team in teams for seed in range(50)}) == 400
    assert teams[3].seed(7) == teams[3].seed(7)
    assert teams[3].seed(None) is None


def test_a_process_that_is_alone_has_no_team() -> None:
    with distributed.joined("cpu") as team:
        assert team is None
    assert distributed.current() is None
    assert distributed.is_leader()


@pytest.mark.slow
def test_the_command_line_trains_and_samples_with_torchrun(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "rows.csv", tiny.spins(200, 4), fmt="%d", delimiter=",")
    data, folder, drawn = (str(tmp_path / name) for name in ("rows.csv", "model", "drawn.csv"))
    options = ("--width", "8", "--batch-size", "64", "--max-steps", "20", "--device", "cpu", "--json")
    shown = torchrun("-m", "neurise", "train", data, "-o", folder, *options).stdout
    assert json.loads(shown)["steps"] == 40  # 20 of each half, and it is said once
    torchrun("-m", "neurise", "sample", folder, "-n", "11", "-o", drawn, "--seed", "1", "--device", "cpu")
    rows = np.loadtxt(drawn, delimiter=",")
    assert rows.shape == (11, 4)
    assert set(np.unique(rows)) <= {-1, 1}


@pytest.mark.slow
def test_a_process_that_fails_ends_all(tmp_path: Path) -> None:
    code = "import os, sys; sys.path.insert(0, sys.argv[1]); import tiny; from neurise.training import distributed\n"
    code += "with distributed.joined('cpu') as team:\n    data = tiny.spins() if team.rank == 0 else [[1, 2], [3]]\n"
    code += "    tiny.model().fit(data, max_steps=10**9, device='cpu')\n"
    (tmp_path / "child.py").write_text(code)
    done = torchrun(str(tmp_path / "child.py"), TESTS, check=False)
    assert done.returncode != 0
    assert "ValueError" in done.stderr
