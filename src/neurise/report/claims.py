"""Every claim of the paper that rows can decide, with the difference that decides it: one page, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from neurise import experiments
from neurise.experiments import store
from neurise.experiments.base import digest
from neurise.experiments.parts.age import CURRENT, by_code
from neurise.experiments.parts.spread import Difference, Situation, Values, paired
from neurise.experiments.parts.summary import matches, number
from neurise.report._numbers import readable

CONFIRMED, REFUTED, OPEN = "confirmed", "refuted", "open"
PAPER = {"method": "neurise_paper"}
PEERS = tuple({"method": name} for name in ("ggm", "sedd", "d3pm", "dfm"))
HARSH = {"noise": "ε = 0, 1 cycle (harsh)"}


@dataclass(frozen=True)
class Claim:
    """A claim: rows chosen by ``one`` score better in ``metric`` than those of each of ``others``, on the same cells otherwise.

    ``at_least_as_good``: it is enough that none of the others is told to be better. Without an experiment it stays open, and
    ``why`` says why.
    """

    text: str
    place: str
    experiment: str = ""
    metric: str = ""
    one: Mapping[str, Any] = field(default_factory=dict)
    others: tuple[Mapping[str, Any], ...] = ()
    where: Mapping[str, Any] = field(default_factory=dict)
    lower: bool = True
    at_least_as_good: bool = False
    why: str = ""


def _wins(place: str, experiment: str, what: str, metric: str, *, lower: bool = True) -> Claim:
    text = f"NeurISE diffusion is better than GGM, SEDD, D3PM and DFM in {what}"
    return Claim(text, place, experiment, metric, PAPER, PEERS, lower=lower)


CLAIMS = (
    _wins("Abstract, Figure 1", "ising_curves", "total variation on Ising models", "tv"),
    _wins("Abstract, Figure 1", "ising_curves", "cross-correlations on Ising models", "correlation"),
    _wins("Table 1 (a)", "mnist", "MMD on MNIST", "mmd"),
    _wins("Table 1 (a)", "mnist", "cross-correlations on MNIST", "correlation_frobenius"),
    _wins("Abstract", "mnist", "kernel density on MNIST", "kde", lower=False),
    _wins("Table 1 (b)", "dwave", "MMD on reads of an annealer", "mmd"),
    _wins("Table 1 (b)", "dwave", "cross-correlations on reads of an annealer", "correlation_frobenius"),
    _wins("Abstract", "dwave", "kernel density on reads of an annealer", "kde", lower=False),
    Claim(
        "Soft noise does not significantly outperform harsh noise",
        "Appendix, “Soft Noise vs Harsh Noise”",
        "noise_levels",
        "tv",
        HARSH,
        tuple({"noise": f"ε = {level}"} for level in ("0.2, 2 cycles", "0.5, 2 cycles", "0.5, 4 cycles")),
        PAPER,
        at_least_as_good=True,
    ),
    Claim(
        "Harsh noise is better where training rows are few (N = 100)",
        "Appendix, “Soft Noise vs Harsh Noise”",
        "noise_levels",
        "tv",
        HARSH,
        tuple({"noise": f"ε = {level}"} for level in ("0.2, 2 cycles", "0.5, 2 cycles", "0.5, 4 cycles")),
        {**PAPER, "rows": 100},
    ),
    Claim(
        "Separate networks for the steps reach a lower total variation than one for all",
        "Appendix, “Local vs Global Neural Network”",
        "local_global",
        "tv",
        {"network": "local_mlp"},
        ({"network": "site_mlp"},),
        PAPER,
    ),
    Claim(
        "D3PM saturates on the 5×5 models: 10⁵ rows are no better than 10⁴ (its published posterior)",
        "“Comment on performance of various methods”",
        "ising_curves",
        "tv",
        {"rows": 10_000},
        ({"rows": 100_000},),
        {"method": "d3pm_published"},
        at_least_as_good=True,
    ),
    Claim(
        "SEDD needs a last layer that makes its scores positive", "Appendix on SEDD", why="no experiment tests it yet"
    ),
    Claim("The network takes the site as a one-hot vector", "Section on NeurISE", why="no experiment varies it yet"),
)


class Verdict(NamedTuple):
    """What rows say of a claim, and the difference that decides it, in words."""

    claim: Claim
    word: str
    reason: str


def verdicts(rows: Sequence[store.Row], scale: str = "paper") -> list[Verdict]:
    """Decide every claim by rows of a scale that the code of this version made; where they do not suffice, it is open."""
    current = [row for (_, size, code), own in by_code(rows).items() for row in own if (size, code) == (scale, CURRENT)]
    done = [row for row in current if row["status"] == "done"]
    return [_verdict(claim, [row for row in done if row["experiment"] == claim.experiment], scale) for claim in CLAIMS]


def markdown(found: Sequence[Verdict], page: str, scale: str = "paper") -> str:
    """Write the table, each claim with a link to the section of a page of results that has its rows."""
    counts = {word: sum(verdict.word == word for verdict in found) for word in (CONFIRMED, REFUTED, OPEN)}
    lines = [
        "# Claims of the paper",
        "",
        f"{counts[CONFIRMED]} confirmed, {counts[REFUTED]} refuted, {counts[OPEN]} open. "
        "A claim is decided by the 95 % interval of the mean difference on",
        f"the same cells, at `{scale}` scale, of rows that the code of this version made",
        "(`neurise experiment claims` writes this page from them). The method meant is the paper's own form,",
        "`NeurISE.paper()`.",
        "",
        "| claim | in the paper | verdict | what decides it | rows |",
        "|---|---|---|---|---|",
    ]
    for claim, word, reason in found:
        link = f"[{claim.experiment}]({page}#{claim.experiment}-{scale})" if claim.experiment else "–"
        shown = " | ".join(text.replace("|", "\\|") for text in (claim.text, claim.place, f"**{word}**", reason))
        lines.append(f"| {shown} | {link} |")
    return "\n".join(lines) + "\n"


def _verdict(claim: Claim, rows: Sequence[store.Row], scale: str) -> Verdict:
    if not claim.experiment:
        return Verdict(claim, OPEN, claim.why)
    if not rows:
        return Verdict(claim, OPEN, f"no rows of {scale} scale by the code of this version")
    told, undecided, missing = list[str](), list[str](), list[str]()
    for other, difference in _differences(claim, rows):
        if difference is None:
            missing.append(other)
            continue
        better = difference.mean < 0 if claim.lower else difference.mean > 0
        words = f"against {other} {readable(difference.mean)} ± {readable(difference.half, 2)} over {difference.over}"
        if difference.is_told_apart and not better:
            return Verdict(claim, REFUTED, f"{claim.metric}: {words}")
        (told if difference.is_told_apart else undecided).append(words)
    if missing:
        return Verdict(claim, OPEN, f"too few cells to compare with {', '.join(missing)}")
    if undecided and not claim.at_least_as_good:
        return Verdict(claim, OPEN, f"{claim.metric}, not told apart: {'; '.join(undecided)}")
    return Verdict(claim, CONFIRMED, f"{claim.metric}: {'; '.join([*told, *undecided])}")


def _differences(claim: Claim, rows: Sequence[store.Row]) -> Iterator[tuple[str, Difference | None]]:
    experiment = experiments.find(claim.experiment)
    own = [row for row in rows if matches(row, claim.where)]
    apart = {name for chosen in (claim.one, *claim.others) for name in chosen}
    first = _values(claim, [row for row in own if matches(row, claim.one)], apart)
    for other in claim.others:
        named = ", ".join(experiment.label(value) for value in other.values())
        second = _values(claim, [row for row in own if matches(row, other)], apart)
        yield named, paired(first, second)


def _values(claim: Claim, rows: Sequence[store.Row], apart: set[str]) -> Values:
    """Return the numbers of rows by what both sides share: instances are those of the data, sizes are averaged over."""
    found: dict[Situation, float] = {}
    for row in rows:
        value = number(store.value(row, claim.metric))
        given = row["parameters"]
        shared = digest({"rows": None if "rows" in apart else given.get("rows"), "seed": row["seed"]})
        if value is not None:
            found[Situation(given.get("instance"), int(shared, 16))] = value
    return found
