"""``neurise experiment tune``: one search for each method of an experiment, equal in trials and time."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from neurise.cli._output import Device, Json, Seed, print_json, print_table, say
from neurise.cli._verb import INTERRUPTED


def tune(
    name: Annotated[str, typer.Argument(help="Which experiment: ising_curves, mnist, dwave, potts or ghz.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the configurations and the journal.")],
    scale: Annotated[str, typer.Option(help="Whose data: smoke, laptop or paper.")] = "paper",
    trials: Annotated[int, typer.Option(min=1, help="Settings that each method tries.")] = 8,
    trial_seconds: Annotated[float | None, typer.Option(help="Training time of each trial.")] = None,
    trial_steps: Annotated[int | None, typer.Option(help="Steps of each trial, instead of a time.")] = None,
    rows: Annotated[int, typer.Option(min=20, help="Rows to learn from, a tenth of them for validation.")] = 10_000,
    methods: Annotated[
        list[str] | None, typer.Option("--methods", help="Only these, separated by commas.", show_default="all")
    ] = None,
    seed: Seed = 0,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Search for settings of each method by chance, on validation rows of an experiment's own data.

    Every method gets as many trials and as much time. The best settings of each are written to OUTPUT/NAME_METHOD.json, which
    neurise train --config takes, and which is shipped as a preset from src/neurise/presets. Ctrl-C keeps what was tried,
    and the same command goes on.
    """
    from neurise import experiments
    from neurise.experiments.parts.method_names import split
    from neurise.experiments.parts.tuning import searched
    from neurise.tuning.random_search import random_search
    from neurise.tuning.task import make_task

    if trial_seconds is None and trial_steps is None:
        raise ValueError("say how long each trial may take: --trial-seconds 20, or --trial-steps 1000")
    one = experiments.find(name)
    chosen = [part for text in methods or [] for part in split(text)]
    found = searched(one, scale, chosen, rows=rows, seed=seed)
    output.mkdir(parents=True, exist_ok=True)
    about = {"experiment": name, "scale": scale, "command": shlex.join(["neurise", *sys.argv[1:]])}
    lines: list[dict[str, Any]] = []
    try:
        for method, model, fixed in found.methods:
            limits = {"max_steps": trial_steps, "max_seconds": trial_seconds}
            task = make_task(found.data, model, fixed, **limits, seed=seed, device=device)  # type: ignore[arg-type]
            say(f"{method}: {trials} trials of {model}")
            best = random_search(task, trials, output / f"{name}.trials.jsonl", {**about, "method": method})
            place = output / f"{name}_{method}.json"
            best.write(place)
            lines.append({"method": method, "score": best.score, "output": str(place), "params": dict(best.params)})
    except KeyboardInterrupt:
        say("interrupted; what was tried is kept, and the same command goes on")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json({"experiment": name, "scale": scale, "trials": trials, "methods": lines})
        return
    shown = [[line["method"], f"{line['score']:.4f}", line["output"]] for line in lines]
    print_table(
        f"{name}: the best of {trials} settings each", ["method", "nats per row", "written to"], shown, numbers=(1,)
    )
