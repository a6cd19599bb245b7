"""``neurise train``: from a file of rows to a folder with a model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neurise import discovery
from neurise.cli._columns import Bins, alphabets_of
from neurise.cli._configuration import Config, configured
from neurise.cli._data import ROWS, SOURCE, CountColumn, DropColumn, LabelColumn, Missing, Rows, resolve, with_columns
from neurise.cli._data import split as split_options
from neurise.cli._output import (
    Device,
    Force,
    Json,
    Seed,
    ask_before_replacing,
    print_json,
    say,
)
from neurise.cli._parameters import collect
from neurise.cli._set_apart import TestFraction, Validation, hold_back_tests, with_validation
from neurise.cli._stored import first_rows, stored_rows
from neurise.cli._team import by_a_team
from neurise.cli._train_report import report
from neurise.cli._verb import INTERRUPTED, complain, describe
from neurise.cli._watched import watched

if TYPE_CHECKING:
    from neurise.dataset import Dataset
    from neurise.holdout import Split
    from neurise.modeling.model import Model
    from neurise.stored import Stored

MODEL_OPTIONS = "The model (defaults are the model's own)"
RUN_OPTIONS = "The run"


NETWORKS = discovery.names("neurise.networks")
OF_ALL_SITES = [name for name in NETWORKS if name.startswith("joint_")]
"""Networks that answer for all sites from all, by their names alone: help is shown without importing torch."""
OF_ROWS = [name for name in ("causal", "masked", "sparse") if name in NETWORKS]
OF_SITES = [name for name in NETWORKS if name not in (*OF_ALL_SITES, *OF_ROWS)]
NETWORK_HELP = (
    f"Kind of network: {', '.join(OF_SITES)} (one site at a time), {', '.join(OF_ROWS)} (a whole row at once; for neurise and "
    f"ggm), {', '.join(OF_ALL_SITES)} (all sites at once, for the other models). "
    "By default neurise chooses by the data."
)


@by_a_team
def train(
    data: Annotated[str, typer.Argument(help=SOURCE)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to save the model in.")],
    model: Annotated[
        str | None,
        typer.Option(help=f"Kind of model: {', '.join(discovery.names('neurise.models'))}.", show_default="neurise"),
    ] = None,
    config: Config = None,
    keep_prob: Annotated[
        float | None,
        typer.Option(help="ε, the probability that a noise step keeps its site.", rich_help_panel=MODEL_OPTIONS),
    ] = None,
    cycles: Annotated[
        int | None, typer.Option(help="How often the noise goes round all sites.", rich_help_panel=MODEL_OPTIONS)
    ] = None,
    width: Annotated[int | None, typer.Option(help="Width of the network.", rich_help_panel=MODEL_OPTIONS)] = None,
    depth: Annotated[int | None, typer.Option(help="Depth of the network.", rich_help_panel=MODEL_OPTIONS)] = None,
    network: Annotated[str | None, typer.Option(help=NETWORK_HELP, rich_help_panel=MODEL_OPTIONS)] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            help="screening, weighted_screening(alpha), tempered_screening(gamma) or cross_entropy.",
            rich_help_panel=MODEL_OPTIONS,
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="How long to train by default.", rich_help_panel=MODEL_OPTIONS)
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Rows per step.", rich_help_panel=MODEL_OPTIONS)] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Largest step length.", rich_help_panel=MODEL_OPTIONS)
    ] = None,
    others: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any other parameter of the model, in a group as group__name; the value is JSON or plain text. May be repeated.",
            rich_help_panel=MODEL_OPTIONS,
        ),
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option(help="Stop after so many steps.", rich_help_panel=RUN_OPTIONS)
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option(help="Stop after so much time.", rich_help_panel=RUN_OPTIONS)
    ] = None,
    seed: Seed = 0,
    device: Device = None,
    label_column: LabelColumn = None,
    count_column: CountColumn = None,
    drop_column: DropColumn = None,
    missing: Missing = None,
    bins: Bins = None,
    rows_drawn: Rows = ROWS,
    test_fraction: TestFraction = None,
    validation: Validation = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder for the state of the run.", show_default="the model's folder")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was interrupted.")] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Show learning curves and fresh samples on a page of this machine while it trains (extra play).",
        ),
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Learn a model from a file of rows, and save it.

    A run that was stopped, by Ctrl-C or by anything worse, goes on with the same command and --resume. Several GPUs train one
    model with torchrun --nproc-per-node 4 -m neurise train …
    """
    from neurise import devices
    from neurise.training import distributed
    from neurise.training.state import CHECKPOINT, checkpoints_in, remove_checkpoints

    state = (checkpoint or output) / CHECKPOINT
    if resume and not state.exists() and _is_finished(output):
        with _alone_in(output, state.parent):  # a run that was killed at its very end left the rest to this one
            if distributed.is_leader():
                remove_checkpoints(state.parent)
        print_json({"model": str(output), "finished": True}) if as_json else None
        say(f"{output} holds a finished model: there is nothing to go on with")
        return
    if resume and not checkpoints_in(state.parent):
        say(f"there is no {state} to go on from: the run starts at the beginning")
    model, preset = configured(model, config)
    kind = discovery.find("neurise.models", model)
    common = {
        "keep_prob": keep_prob,
        "cycles": cycles,
        "width": width,
        "depth": depth,
        "network": network,
        "loss": loss,
        "steps": steps,
        "training__batch_size": batch_size,
        "training__learning_rate": learning_rate,
    }
    params = preset | collect(kind, common, others or [])
    devices.resolve(device)
    name, texts = split_options(data)
    stored = stored_rows(name, with_columns(name, texts, label_column, count_column, drop_column))
    with distributed.leader_first():  # of several processes, one downloads
        if stored is None:
            rows = resolve(data, label_column, count_column, drop_column=drop_column, missing=missing, rows=rows_drawn)
        else:
            rows = first_rows(stored, name)
            if bins:
                raise ValueError(f"--bins {bins[0]}: {data} stays on disk; write the bins to its files")
            if missing is not None:
                raise ValueError(f"--missing {missing}: {data} stays on disk, and rows that do must be complete")
    if rows.train is None:
        raise ValueError(f"{data} has no rows to learn from")
    if stored is not None and test_fraction:
        raise ValueError(f"--test-fraction: {data} stays on disk; keep some of its files apart to evaluate with")
    rows, split = hold_back_tests(rows, test_fraction, seed)
    rows, more = with_validation(rows, validation, kind, label_column, count_column, drop_column)
    if twice := [name for name in more if name in params]:
        raise ValueError(f"--validation {validation} and {twice[0]}={params[twice[0]]} say the same; leave one out")
    params |= more
    if stored is None:
        params |= alphabets_of(rows, bins or [], params)
    has_more = any(part is not None for part in (rows.validation, rows.test, rows.law))
    if has_more and stored is None and "alphabet" in kind.parameters():
        params.setdefault("alphabet", rows.symbols.tolist())  # the rows to learn from may lack a symbol that those have
    with _alone_in(output, state.parent):
        if distributed.is_leader() and not resume:
            _make_room(output, state, force=force)
        fitted: Model = kind().set_params(**params)
        fit: dict[str, Any] = {"seed": seed, "device": device, "max_steps": max_steps, "max_seconds": max_seconds}
        with watched(rows, fitted) if watch and distributed.is_leader() else nullcontext() as callback:
            _fit(fitted, rows, stored, split, output, state, resume=resume, callback=callback, **fit)
    report(fitted, rows, output, config, as_json=as_json)
    if fitted.stopped_ == "interrupted":
        where = f"{state} holds the state of the run: the same command with --resume goes on"
        early = "the run was stopped before its first checkpoint: --resume will start it again"
        say(f"interrupted; the model in {output} is usable as it is; {where if state.exists() else early}")
        raise typer.Exit(INTERRUPTED)


def _fit(
    model: Model,
    data: Dataset,
    stored: Stored | None,
    split: Split | None,
    output: Path,
    state: Path,
    *,
    resume: bool,
    **options: Any,
) -> None:
    """Train and save; the state of the run is removed as soon as the model that it leads to is safe."""
    from neurise.training.loop import TrainingDiverged

    validation = None
    own: tuple[Any, Any, Any] = (data.train, data.labels, data.weights) if stored is None else (stored, None, None)
    if data.validation is not None:
        validation = (data.validation, data.validation_labels, data.validation_weights)
    try:
        model.fit(
            *own[:2],
            weights=own[2],
            validation=validation,
            checkpoint=state.parent,
            resume=resume,
            **options,
        )
    except TrainingDiverged as error:
        _save(model, output, split, over=state)  # going on from there would lead to the same place
        complain(f"{describe(error)}; they are saved in {output}")
        raise typer.Exit(1) from None
    except OSError:
        if getattr(model, "stopped_", None) == "interrupted":  # by a full disk under the checkpoint, say
            _save(model, output, split)
            say(f"the run could not go on; the model as it was then is saved in {output}")
        raise
    _save(model, output, split, over=None if model.stopped_ == "interrupted" else state)


def _save(model: Model, output: Path, split: Split | None, over: Path | None = None) -> None:
    """Save the model and how test rows were held back, of several processes once; then remove the state of a run that is over."""
    from neurise.training import distributed
    from neurise.training.state import remove_checkpoints

    model.split_ = split
    if distributed.is_leader():
        model.save(output)
        if over is not None:
            remove_checkpoints(over.parent)


def _is_finished(output: Path) -> bool:
    """Whether a folder holds a model whose training has come to its end."""
    from neurise.persistence import load_folder

    if not _holds_model(output):
        return False
    ended = load_folder(output)[0].get("stopped")
    if ended == "diverged":
        raise ValueError(f"the run of {output} diverged; train again with other settings and --force")
    return ended != "interrupted"


def _holds_model(folder: Path) -> bool:
    from neurise.persistence import CONFIG, WEIGHTS

    return any((folder / name).exists() for name in (CONFIG, WEIGHTS))


@contextmanager
def _alone_in(*folders: Path) -> Iterator[None]:
    """Hold the folders of a run, that no other writes to them; of several processes, the leader holds them for all.

    Whether they can be written is seen first: nothing is worse than to find out after a night of training.
    """
    from neurise.locks import running_in
    from neurise.training import distributed

    with ExitStack() as held:
        for folder in folders if distributed.is_leader() else ():
            if folder.exists() and not folder.is_dir():
                raise ValueError(f"{folder} is a file; a model is saved as a folder")
            ancestor = next(place for place in (folder, *folder.absolute().parents) if place.exists())
            if not ancestor.is_dir() or not os.access(ancestor, os.W_OK | os.X_OK):
                raise PermissionError(f"{folder} cannot be written: {ancestor} does not allow it")
            held.enter_context(running_in(folder))
        yield


def _make_room(output: Path, state: Path, *, force: bool) -> None:
    """Ask before a model or the state of a run is replaced."""
    from neurise.training.state import checkpoints_in, remove_checkpoints

    if found := checkpoints_in(state.parent):
        ways_out = "--resume goes on with it, --force starts again"
        ask_before_replacing(f"{found[0]} belongs to an unfinished run", force=force, ways_out=ways_out)
        remove_checkpoints(state.parent)
    elif _holds_model(output):
        ask_before_replacing(f"{output} holds a model already", force=force)
