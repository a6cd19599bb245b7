"""Experiments about data whose law is not known: compare samples with rows that were held back."""

from __future__ import annotations

from neurise.experiments._methods import labelled
from neurise.experiments.parts.figures import Column, Field, Table

REAL = "real"
"""The method that draws training rows instead of learning: what a perfect model would score."""


def with_real(*names: str) -> dict[str, str]:
    """Give methods with their labels, real rows last."""
    return {**labelled(*names), REAL: "real rows"}


def sample_table(title: str, published: str) -> Table:
    """MMD, the kernel density and the three averages of the correlation error, beside the paper's."""
    columns = (
        Column(Field("mmd", "MMD²"), "mmd_floor"),
        Column(Field("kde", "KDE, nats"), "kde_floor", lower_is_better=False),
        Column(Field("correlation", "mean |ΔC|"), "correlation_floor"),
        Column(Field("correlation_rms", "RMS ΔC")),
        Column(Field("correlation_frobenius", "‖ΔC‖/q²")),
        Column(Field("train_seconds", "training, s"), times=True),
    )
    caption = (
        "MMD² is unbiased and may be slightly negative. KDE is the mean log-density of real rows under a kernel estimate from the "
        "samples; higher is better. Floors are the scores of real rows."
    )
    return Table("comparison", title, "method", columns, published=published, caption=caption)
