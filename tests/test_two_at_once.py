"""Several processes save to one folder and load from it: every load finds one whole model."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from neurise.persistence import CONFIG, WEIGHTS, load_folder

WORK = """
import json, os, sys, torch
from pathlib import Path
from neurise.persistence import load_folder, save_folder

torch.set_num_threads(1)  # threads do not survive a fork
root, saves = Path(sys.argv[1]), int(sys.argv[2])
folder = root / "model"

def save(which):
    save_folder(folder, {"which": which}, {"w": torch.full((300, 300), float(which))})

def saver(who):
    for number in range(saves):
        save(who * 1000 + number)
    return {"saves": saves}

def reader(who):
    loads = mixed = 0
    while not (root / "done").exists():
        config, tensors = load_folder(folder)
        loads += 1
        mixed += not bool((tensors["w"] == config["which"]).all())
    return {"loads": loads, "mixed": mixed}

def started(work, who):
    child = os.fork()
    if child:
        return child
    try:
        told = work(who)
    except BaseException as error:
        told = {"error": repr(error)}
    (root / f"{work.__name__}-{who}.json").write_text(json.dumps(told))
    os._exit(0)

save(0)
readers, savers = [started(reader, who) for who in (1, 2)], [started(saver, who) for who in (1, 2)]
for child in savers:
    os.waitpid(child, 0)
(root / "done").touch()
for child in readers:
    os.waitpid(child, 0)
"""


@pytest.mark.parametrize("saves", [20, pytest.param(300, marks=pytest.mark.slow)])
def test_two_savers_and_two_readers(tmp_path: Path, saves: int) -> None:
    folder = tmp_path / "model"
    subprocess.run([sys.executable, "-c", WORK, str(tmp_path), str(saves)], check=True)
    told = {path.stem: json.loads(path.read_text()) for path in tmp_path.glob("*.json")}
    assert [told[f"saver-{who}"] for who in (1, 2)] == [{"saves": saves}] * 2
    assert [told[f"reader-{who}"].get("mixed") for who in (1, 2)] == [0, 0], told
    assert load_folder(folder).config["which"] in {1000 + saves - 1, 2000 + saves - 1}
    assert sorted(path.name for path in folder.iterdir()) == [CONFIG, WEIGHTS]
