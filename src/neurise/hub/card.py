"""Write a model card: what a model was learnt from, how, how good it is, and under which licence.

A card is a Markdown page that begins with YAML metadata between two lines of dashes, as model hubs read it. Texts in the metadata
are written as JSON strings, which are YAML too, so that no text can change their structure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

README = "README.md"
TAGS = ("neurise", "discrete-diffusion")
HEADER = ("measure", "value", "floor")
LICENCE = re.compile(r"[a-z0-9][a-z0-9.+-]*")
NOTHING = "–"
"""What stands where nothing was measured."""


@dataclass(frozen=True)
class Card:
    """The facts of a card; ``str(card)`` is the page."""

    model: str  # its repr
    kind: str  # the name of its class
    version: str
    facts: Mapping[str, str]  # its summary, as text
    settings: Mapping[str, Any]  # parameters that are not the defaults, in JSON's types
    title: str = ""
    data: str = ""
    licence: str = ""
    source: str = "path/to/this/folder"
    evaluation: Mapping[str, Any] = field(default_factory=dict)  # Evaluation.to_dict()

    def __post_init__(self) -> None:
        if self.licence and not LICENCE.fullmatch(self.licence):
            raise ValueError(
                f"licence must be an identifier such as 'mit', 'cc-by-4.0' or 'other', got {self.licence!r}"
            )

    def __str__(self) -> str:
        parts = (self._metadata(), f"# {self._name()}", self._use(), self._learnt(), self._quality(), self._terms())
        return "\n\n".join(parts) + "\n"

    def _name(self) -> str:
        return _line(self.title) or f"{self.kind} of discrete data"

    def _metadata(self) -> str:
        """Return the YAML header, with the measurements as the ``model-index`` that hubs show."""
        lines = ["---", "library_name: neurise"]
        if self.licence:
            lines.append(f"license: {self.licence}")
        lines += ["tags:", *(f"- {tag}" for tag in dict.fromkeys((*TAGS, self.kind.lower())))]
        measured = [row for row in self._rows() if row["value"] is not None]
        if measured:
            lines += [
                "model-index:",
                f"- name: {_quoted(self._name())}",
                "  results:",
                "  - task:",
                "      type: other",
                "      name: generation of discrete rows",
                "    dataset:",
                "      type: other",
                f"      name: {_quoted(self.evaluation['data'])}",
                "    metrics:",
            ]
            for row in measured:
                floor = "" if row["floor"] is None else f", floor {_number(row['floor'])}"
                lines += [
                    f"    - type: {row['name']}",
                    f"      name: {_quoted(row['name'] + floor)}",
                    f"      value: {float(row['value'])!r}",
                ]
        return "\n".join([*lines, "---"])

    def _use(self) -> str:
        return f"""## Use it

```python
import neurise  # pip install 'neurise[hub]'

model = neurise.load({self.source!r})
model.sample(10, seed=0)
```"""

    def _learnt(self) -> str:
        told = f"The data: {_line(self.data)}.\n\n" if self.data else ""
        facts = _table(["", ""], [[name, fact] for name, fact in self.facts.items()])
        settings = "\n".join(f"- `{name}={json.dumps(value)}`" for name, value in self.settings.items())
        changed = (
            f"Parameters other than the defaults:\n\n{settings}" if settings else "All parameters are the defaults."
        )
        return f"## What it learnt, and how\n\n{told}{facts}\n\n{changed}\n\nWritten by neurise {self.version}."

    def _quality(self) -> str:
        if not self._rows():
            return (
                "## How good it is\n\nNothing was measured. "
                "`model.card(neurise.evaluate(model, data))` writes a card with measurements."
            )
        others = list(self._rows()[0].get("baselines") or {})
        cells = [
            [
                f"`{row['name']}`",
                _measured(row),
                _number(row["floor"]),
                *(_number((row.get("baselines") or {}).get(name)) for name in others),
            ]
            for row in self._rows()
        ]
        text = (
            f"{self.evaluation['samples']:,} rows of the model, measured on {_line(str(self.evaluation['against']))} of "
            f"{_line(str(self.evaluation['data']))}. The floor is what a perfect model scores under the same conditions."
        )
        learnt = (
            f" The baselines learnt from {self.evaluation['baselines']}." if self.evaluation.get("baselines") else ""
        )
        return f"## How good it is\n\n{text}{learnt}\n\n{_table([*HEADER, *others], cells)}"

    def _terms(self) -> str:
        return "## Licence\n\n" + (
            f"`{self.licence}`" if self.licence else "None was stated; ask whoever published the model."
        )

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        rows: Sequence[Mapping[str, Any]] = self.evaluation.get("rows", ())
        return rows


def _table(header: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *([_line(cell).replace("|", "\\|") for cell in row] for row in cells)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _measured(row: Mapping[str, Any]) -> str:
    error = f" ± {row['error']:.1g}" if row.get("error") else ""
    return f"{_number(row['value'])}{error} {row.get('units', '')}".strip()


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.4g}"


def _line(text: str) -> str:
    """Put a text into one line: headings and tables have no others."""
    return " ".join(text.split())


def _quoted(text: str) -> str:
    return json.dumps(_line(text), ensure_ascii=False)
