"""Draw the pictures of the README and of the contributors' page: ``python docs/pictures.py`` writes them to docs/figures.

``overview.png`` shows a model of handwritten digits at work: noise becomes a digit, site by site, and the missing half
of a digit is drawn again and again. ``house.svg`` shows how the parts of the library depend on each other.
"""

from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

import neurise
from neurise import drawing
from neurise.files import write_text

FIGURES = Path(__file__).parent / "figures"
DIGITS = Path(neurise.__file__).parent / "player" / "reference" / "digits" / "neurise"
SIDE, DIGIT, FRAMES, DRAWS = 28, 5, 7, 6
UNKNOWN = "#f0c9a8"


def overview() -> None:
    """Draw a reverse chain in frames, and several completions of the upper half of a digit."""
    model = neurise.load(DIGITS)
    labels = model.labels_.tolist() if hasattr(model, "labels_") else list(range(10))
    digit = labels[DIGIT]
    chain = model.trajectory(1, y=digit, seed=4)
    moments = np.linspace(0, len(chain.states) - 1, FRAMES).round().astype(int)
    full = np.asarray(chain.states[-1][0])
    half = np.arange(SIDE * SIDE) >= SIDE * SIDE // 2
    given = np.ma.array(full, mask=half)
    completed = model.sample(DRAWS, y=digit, clamp=np.ma.stack([given] * DRAWS), seed=1)

    figure = drawing.new_figure(9.2, 2.95)
    panels = figure.subplots(2, FRAMES)
    for panel, step in zip(panels[0], moments, strict=True):
        _picture(panel, np.asarray(chain.states[step][0], dtype=float))
        panel.set_title(f"step {step}", fontsize=drawing.SMALL)
    _picture(panels[1][0], np.where(half, np.nan, full))
    panels[1][0].set_title("upper half given", fontsize=drawing.SMALL)
    for number, (panel, row) in enumerate(zip(panels[1][1:], completed, strict=True), 1):
        _picture(panel, row.astype(float))
        panel.set_title(f"draw {number}", fontsize=drawing.SMALL)
    drawing.save(figure, FIGURES / "overview.png")


def _picture(panel: object, pixels: np.ndarray) -> None:
    from matplotlib import colormaps

    shades = colormaps["gray_r"].copy()
    shades.set_bad(UNKNOWN)
    panel.imshow(pixels.reshape(SIDE, SIDE), cmap=shades, vmin=0, vmax=1, interpolation="nearest")  # type: ignore[attr-defined]
    panel.set_xticks([])  # type: ignore[attr-defined]
    panel.set_yticks([])  # type: ignore[attr-defined]


FLOORS = [
    ("what you call", ["neurise command", "neurise.play", "evaluate", "structure", "theory", "experiments"]),
    ("models/", ["NeurISE", "GGM", "D3PM · SEDD · DFM", "Pairwise", "Independent · Memorize"]),
    ("sampling/ · likelihood · exact", ["reverse chain", "clamp", "corrector", "log_prob · elbo", "exact law"]),
    ("conditionals/: P_t(x_u | all other sites)", ["network", "committee", "energy", "counts", "known sites"]),
    ("how they are learnt", ["noise/", "networks/", "losses.py", "training/", "energies/"]),
    ("what the data are", ["datasets/", "schema.py", "alphabet.py", "rows.py", "space.py"]),
]
WIDTH, FLOOR, MARGIN, GAP = 920, 84, 14, 10
SHADES = ("#e8f1f8", "#fdeee4", "#e6f5f0", "#f9ecf3", "#fbf3e0", "#eef0f2")


def house() -> None:
    """Draw the layers: each asks only those below it."""
    height = len(FLOORS) * (FLOOR + GAP) + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="15">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    for number, ((title, rooms), shade) in enumerate(zip(FLOORS, SHADES, strict=True)):
        top = MARGIN + number * (FLOOR + GAP)
        parts.append(
            f'<rect x="{MARGIN}" y="{top}" width="{WIDTH - 2 * MARGIN}" height="{FLOOR}" rx="8" fill="{shade}"/>'
        )
        parts.append(f'<text x="{2 * MARGIN}" y="{top + 24}" font-weight="bold" fill="#222">{escape(title)}</text>')
        wide = (WIDTH - 4 * MARGIN - GAP * (len(rooms) - 1)) / len(rooms)
        for place, room in enumerate(rooms):
            left = 2 * MARGIN + place * (wide + GAP)
            parts.append(
                f'<rect x="{left:.0f}" y="{top + 36}" width="{wide:.0f}" height="36" rx="5" fill="white" stroke="#999"/>'
                f'<text x="{left + wide / 2:.0f}" y="{top + 59}" text-anchor="middle" font-size="13" fill="#222">'
                f"{escape(room)}</text>"
            )
    write_text(FIGURES / "house.svg", "\n".join([*parts, "</svg>", ""]))


if __name__ == "__main__":
    overview()
    house()
