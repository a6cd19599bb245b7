"""Find phrases that readers stumble over: what ``make lint`` asks of our English beyond spelling.

    python tests/plain_english.py               # every page and Python file of the repository
    python tests/plain_english.py FILE …

Rates are written with "per" ("one output layer per site"), and nothing is described by an image of it. Each rule has a pattern
and says what to write instead.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
OWN = ("tests/plain_english.py", "tests/test_plain_english.py")
"""Files that name the phrases."""

COUNTED = (
    "additions? answers? bits? budgets? bytes? classifiers? columns? committees? copies copy couplings? cores? counts? dicts? "
    "digits? draws? entries entry errors? examples? experiments? factors? fields? figures? files? floats? formats? folders? "
    "groups? heads? instances? ints? kernels? labels? layers? letters? lines? lists? logits? maps? matrix means? members? "
    "methods? metrics? minutes? models? multiplications? nats? networks? neighbours? numbers? outcomes? outputs? "
    "panels? parameters? parents? parts? pass passes pictures? pixels? points? probabilities probability processes process "
    "products? questions? rates? requests? rows? samples? scores? seconds? seeds? sequences? settings? shares? sites? spins? "
    "states? steps? stretch stretches sums? sweeps? symbols? tables? tensors? terms? tests? texts? things? threads? times? "
    "tokens? trainings? trials? units? values? variables? vectors? verbs? visits? weights? words? writers?"
)
UNITS = (
    "architecture batch block call cell chain class column committee configuration core coupling cycle day device digit draw entry "
    "epoch example experiment file folder fold graph group head image instance iteration job kernel kind label layer line "
    "member method metric minute model move network node noise page pair parameter part particle pass phase pixel point "
    "process qubit question read record row run sample second seed sentence sequence site size spin state step sweep symbol "
    "tensor term test thread token trial value variable visit word worker"
)


class Rule(NamedTuple):
    """A pattern, and what to write instead."""

    pattern: re.Pattern[str]
    instead: str


class Finding(NamedTuple):
    """A phrase and where it stands."""

    line: int
    phrase: str
    instead: str


def _any(words: str) -> str:
    return "(?:" + "|".join(words.split()) + ")"


def _rule(pattern: str, instead: str) -> Rule:
    space = r"(?:[ \t]+|[ \t]*\n[ \t#>]*(?=\S))"  # a phrase may go on in the next line, but not in the next paragraph
    return Rule(re.compile(pattern.replace(" ", space), re.IGNORECASE), instead)


_AMOUNT = r"(?:an?|one|two|three|four|five|six|eight|ten|few|fewer|several|\d[\d.,]*|\{[^{}]+\})"
_BETWEEN = r"(?:(?!(?:of|in|is|to|as|at|on|by|and|that) )[\w-]+ )"
_SUBJECT = r"(?! (?:of|is|has|had|may|can|would|needs|takes|holds|learns|solves|touches)\b)"  # "the time a row takes" is no rate
RULES = (
    _rule(
        rf"(?<!\w){_AMOUNT} {_BETWEEN}{{0,2}}{_any(COUNTED)} an? {_any(UNITS)}\b{_SUBJECT}",
        'a rate: write "per" ("one output layer per site")',
    ),
    _rule(rf"\b(?:bits|nats) an? {_any(UNITS)}\b{_SUBJECT}", 'a rate: write "per" ("bits per site")'),
    _rule(r"\b(?:at|through|behind) the door\b", 'say what happens: "where data enter", "before anything else"'),
    _rule(r"\bclosing the loop\b", "say what is computed"),
    _rule(r"\bone [\w-]+ there and one back\b", '"forward and backward"'),
    _rule(r"\bwho knows (?:which|what|how)\b", '"if you know which …"'),
    _rule(r"\brefuse to start what cannot\b", "say which error is raised, and when"),
    _rule(r"\bblindness to\b", '"ignore …"'),
    _rule(r"\bhang(?:s|ing)? on (?:a|an|the|its|their|rounding|float|last|chance)\b", '"depends on"'),
    _rule(r"\bthe way of a row\b(?= (?:is|goes|through))", '"the path of a row"'),
)


def findings(text: str) -> Iterator[Finding]:
    """Return the phrases of a text that break a rule, rule by rule."""
    for rule in RULES:
        for found in rule.pattern.finditer(text):
            yield Finding(text.count("\n", 0, found.start()) + 1, " ".join(found[0].split()), rule.instead)


def pages() -> list[Path]:
    """List the pages and Python files that are tracked, or about to be."""
    asked = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "*.md"]
    listed = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [ROOT / name for name in listed if name not in OWN and (ROOT / name).is_file()]


def main(names: list[str]) -> int:
    """Print every finding as FILE:LINE, and return how many there are."""
    count = 0
    for page in [Path(name) for name in names] or pages():
        for finding in findings(page.read_text(encoding="utf-8")):
            shown = page.relative_to(ROOT) if page.is_relative_to(ROOT) else page
            print(f'{shown}:{finding.line}: "{finding.phrase}": {finding.instead}')
            count += 1
    return count


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
