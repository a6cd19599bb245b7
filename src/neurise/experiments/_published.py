"""The two tables of numbers that the paper prints. Its figures hold no numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PAPER = "Elamvazhuthi, Jayakumar, Lokhov: Discrete Diffusion with Sample-Efficient Estimators for Conditionals"


@dataclass(frozen=True)
class Published:
    """A printed table; rows go by our names of the methods."""

    title: str
    source: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[float, ...]]
    note: str


PUBLISHED: Mapping[str, Published] = {
    "mnist": Published(
        "MNIST dataset comparison",
        f"{PAPER}, table “Comparison of generative models on MNIST and D-Wave datasets”, part (a)",
        ("Avg. MMD", "Avg. Correlation (convention unknown)"),
        {
            "neurise": (1.0e-2, 1.5e-6),
            "d3pm": (1.5e-2, 2.8e-6),
            "sedd": (4.1e-1, 7.1e-6),
            "ggm": (9.1e-1, 8.2e-5),
            "dfm": (3.0e-2, 3.4e-6),
        },
        "The paper says neither which kernel its MMD has nor how its correlation error is averaged. Its correlation errors lie "
        "below those of real digits against real digits in every convention tried here, and so compare with none of ours.",
    ),
    "dwave": Published(
        "D-Wave dataset comparison",
        f"{PAPER}, table “Comparison of generative models on MNIST and D-Wave datasets”, part (b)",
        ("MMD", "Avg. Correlation (fits ‖ΔC‖/q²)"),
        {
            "neurise": (0.16, 1.18e-5),
            "d3pm": (0.28, 1.81e-5),
            "sedd": (65.03, 5.81e-5),
            "ggm": (96.4, 6.56e-5),
            "dfm": (0.22, 2.3e-5),
        },
        "The paper's reads are not public: ours are of another Advantage machine and problem, so that only the order of the "
        "methods can be compared. Its MMD (up to 96) cannot come from the kernel that ours has, which is at most 16. Its "
        "correlation errors have the size of ‖ΔC‖/q², the Frobenius norm over the square of the number of qubits.",
    ),
}
