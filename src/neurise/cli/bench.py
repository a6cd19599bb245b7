"""``neurise bench``: how fast sampling and training are on this machine."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Annotated

import typer

from neurise.cli._output import Device, Json, print_json, print_table

if TYPE_CHECKING:
    from neurise.bench.speed import Timed


def bench(
    section: Annotated[
        list[str] | None,
        typer.Option(
            help="sampling, forms, sites, states, width, batch or training. May be repeated.", show_default="all"
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: seconds, not minutes.")] = False,
    precision: Annotated[
        str, typer.Option(help="Of the hidden layers as rows are drawn: float32 or bfloat16.")
    ] = "float32",
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Measure the speed of sampling and training.

    Ratios are to a naive loop that is timed in the same run; shares are of what a large matrix product reaches.
    """
    import torch

    from neurise.bench.speed import SECTIONS, Bench
    from neurise.devices import resolve

    place = resolve(device)
    wanted = section or list(SECTIONS)
    for name in wanted:
        if name not in SECTIONS:
            raise ValueError(f"section must be one of {', '.join(map(repr, SECTIONS))}, got {name!r}")
    threads = torch.get_num_threads()
    own = f"{threads} thread{'s' if threads > 1 else ''}"
    machine = torch.cuda.get_device_name(place) if place.type == "cuda" else own
    measured = Bench(place, quick=quick, precision=precision)
    title = f"{machine}, torch {torch.__version__}, roofline {measured.roof / 1e12:.3g} TFLOP/s"
    found: list[Timed] = []
    for name in wanted:
        figures = list(measured.run(name))
        found += figures
        if not as_json:
            print_table(f"{name}: {title}", COLUMNS, [_row(figure) for figure in figures], numbers=(1, 3, 4, 5))
    if as_json:
        facts = {"machine": machine, "system": platform.machine(), "torch": str(torch.__version__)}
        roof = {"precision": precision, "quick": quick, "roofline_flops": measured.roof}
        print_json({**facts, **roof, "figures": [figure.to_dict() for figure in found]})


COLUMNS = ["", "", "", "× naive", "of roofline", "peak memory"]


def _row(figure: Timed) -> list[str]:
    return [
        figure.name,
        f"{figure.value:,.0f}" if figure.value >= 100 else f"{figure.value:.3g}",
        figure.unit,
        "–" if figure.ratio is None else f"{figure.ratio:.3g}",
        "–" if figure.share is None else f"{figure.share:.1%}",
        "–" if figure.peak_bytes is None else f"{figure.peak_bytes / 2**20:,.0f} MiB",
    ]
