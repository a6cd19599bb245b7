"""``neurise card``: describe a saved model for others, and put it on a hub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neurise.cli._data import SOURCE, CountColumn, DropColumn, LabelColumn, resolve
from neurise.cli._output import Device, Force, Json, Seed, ask_before_overwriting, print_json, say


def card(
    model: Annotated[str, typer.Argument(help="Folder of a model, or hf://owner/name.")],
    data: Annotated[str | None, typer.Option("--data", help=f"Measure the model on these rows. {SOURCE}")] = None,
    title: Annotated[str, typer.Option(help="A heading for the card.")] = "",
    about: Annotated[str, typer.Option(help="Where the rows come from, in words.")] = "",
    licence: Annotated[str, typer.Option("--licence", "--license", help="Such as mit or cc-by-4.0.")] = "",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the card to this file, README.md beside the model for one."),
    ] = None,
    push: Annotated[
        str | None,
        typer.Option(
            metavar="OWNER/NAME",
            help="Put the model and its card on the Hugging Face Hub (extra hub; sign in first with: hf auth login).",
        ),
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="With --push: let only yourself read it.")] = False,
    samples: Annotated[int, typer.Option(help="How many rows to draw from the model to measure it.")] = 10_000,
    seed: Seed = 0,
    device: Device = None,
    label_column: LabelColumn = None,
    count_column: CountColumn = None,
    drop_column: DropColumn = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a model card: what the model learnt from, its settings, how good it is beside a perfect model, its licence.

    Examples: neurise card model/ --data test.csv --licence mit -o model/README.md
    · neurise card model/ --data test.csv --push me/annealer
    """
    from neurise.loading import load

    if private and push is None:
        raise ValueError("--private says who may read what --push puts on the hub: give --push OWNER/NAME too")
    if output is not None:
        ask_before_overwriting(output, force=force)
    fitted = load(model, device)
    measured = None
    if data is not None:
        from neurise.evaluation import evaluate

        rows = resolve(data, label_column, count_column, drop_column=drop_column, rows=None)
        measured = evaluate(fitted, rows, samples=samples, seed=seed)
    told = {"title": title, "data": about, "licence": licence}
    if push is not None:
        address = fitted.push_to_hub(push, measured, private=private or None, **told)
        say(f"the model is at {address}; load it with neurise.load('hf://{push}')")
    text = str(fitted.card(measured, **told, source=model if push is None else f"hf://{push}"))
    if output is not None:
        from neurise.files import write_text

        write_text(output, text)
        say(f"the card is in {output}")
    if as_json:
        print_json({"card": text, "measured": None if measured is None else measured.to_dict()})
    elif output is None and push is None:
        typer.echo(text)
