"""Prepare the folder that a tutorial runs in: commands are found, and ``docs/tutorials/data`` is where the page says."""

import os
import sys
from pathlib import Path

DATA = Path(__file__).resolve().parent
if not Path("docs").exists():
    Path("docs").symlink_to(DATA.parents[1], target_is_directory=True)
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
os.environ["COLUMNS"] = "92"  # what commands print fits the page
sys.path.insert(0, str(DATA))
