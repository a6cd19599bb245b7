"""Every claim of the paper that rows can decide, with the numbers that decide it: one page, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from neurise.experiments import SCALES, store
from neurise.experiments.parts.age import CURRENT, by_code
from neurise.report.deciding import CONFIRMED, OPEN, REFUTED, Better, Claim, Needed

PAPER = {"method": "neurise_paper"}
PEERS = tuple({"method": name} for name in ("ggm", "sedd", "d3pm", "dfm"))
HARSH = {"noise": "ε = 0, 1 cycle (harsh)"}


def _wins(place: str, experiment: str, what: str, metric: str, *, lower: bool = True) -> Claim:
    text = f"NeurISE diffusion is better than GGM, SEDD, D3PM and DFM in {what}"
    return Better(text, place, experiment, metric, PAPER, PEERS, lower=lower)


def _one_hot(noise: str, numbers: str, *methods: str) -> Claim:
    return Better(
        f"SEDD needs one-hot inputs under {noise} noise: {numbers} leave a higher total variation",
        "Appendix, “SEDD Implementation details”",
        "sedd_scores",
        "tv",
        {"method": "sedd"},
        tuple({"method": method} for method in methods),
        {"noise": noise},
    )


CLAIMS: tuple[Claim, ...] = (
    _wins("Abstract, Figure 1", "ising_curves", "total variation on Ising models", "tv"),
    _wins("Abstract, Figure 1", "ising_curves", "cross-correlations on Ising models", "correlation"),
    _wins("Abstract", "ising_curves", "kernel density on Ising models", "kde", lower=False),
    _wins("Table 1 (a)", "mnist", "MMD on MNIST", "mmd"),
    _wins("Table 1 (a)", "mnist", "cross-correlations on MNIST", "correlation_frobenius"),
    _wins("Abstract", "mnist", "kernel density on MNIST", "kde", lower=False),
    _wins("Table 1 (b)", "dwave", "MMD on reads of an annealer", "mmd"),
    _wins("Table 1 (b)", "dwave", "cross-correlations on reads of an annealer", "correlation_frobenius"),
    _wins("Abstract", "dwave", "kernel density on reads of an annealer", "kde", lower=False),
    Better(
        "Soft noise does not significantly outperform harsh noise",
        "Appendix, “Soft Noise vs Harsh Noise”",
        "noise_levels",
        "tv",
        HARSH,
        tuple({"noise": f"ε = {level}"} for level in ("0.2, 2 cycles", "0.5, 2 cycles", "0.5, 4 cycles")),
        PAPER,
        at_least_as_good=True,
    ),
    Better(
        "Harsh noise is better where training rows are few (N = 100)",
        "Appendix, “Soft Noise vs Harsh Noise”",
        "noise_levels",
        "tv",
        HARSH,
        tuple({"noise": f"ε = {level}"} for level in ("0.2, 2 cycles", "0.5, 2 cycles", "0.5, 4 cycles")),
        {**PAPER, "rows": 100},
    ),
    Better(
        "Separate networks for the steps reach a lower total variation than one for all",
        "Appendix, “Local vs Global Neural Network”",
        "local_global",
        "tv",
        {"network": "local_mlp"},
        ({"network": "site_mlp"},),
        PAPER,
    ),
    Better(
        "D3PM saturates on the 5×5 models: 10⁵ rows are no better than 10⁴ (its published posterior)",
        "“Comment on performance of various methods”",
        "ising_curves",
        "tv",
        {"rows": 10_000},
        ({"rows": 100_000},),
        {"method": "d3pm_published"},
        at_least_as_good=True,
    ),
    Needed(
        "SEDD needs a last layer that makes its scores positive: without one, its training returned NaNs",
        "Appendix, “SEDD Implementation details”",
        "sedd_scores",
        "diverged",
        ({"method": "sedd_raw"}, {"method": "sedd_raw_slow"}),
        ({"method": "sedd"}, {"method": "sedd_softplus"}),
    ),
    _one_hot("absorbing", "integers with the mask as the last", "sedd_integers"),
    _one_hot("absorbing", "−1 and 1 with the mask as 0", "sedd_spins"),
    _one_hot("uniform", "numbers in their place", "sedd_integers", "sedd_spins"),
    Better(
        "Without one-hot inputs SEDD shows no significant learning (integers, absorbing noise)",
        "Appendix, “SEDD Implementation details”",
        "sedd_scores",
        "unlearnt_tv",
        {"method": "sedd_integers"},
        ({"method": "sedd_integers"},),
        {"noise": "absorbing"},
        at_least_as_good=True,
        other_metric="tv",
    ),
    Better(
        "The network takes the site as a one-hot vector: better than as one number (the paper compares nothing)",
        "Section on NeurISE",
        "site_input",
        "tv",
        {"site": "one-hot"},
        ({"site": "one number"},),
        PAPER,
    ),
)


class Verdict(NamedTuple):
    """A claim, what rows say of it, and the numbers that decide it, in words."""

    claim: Claim
    word: str
    reason: str


def verdicts(rows: Sequence[store.Row], scale: str = "paper") -> list[Verdict]:
    """Decide every claim by rows of a scale that the code of this version made; where they do not suffice, it is open."""
    if scale not in SCALES:  # there are no rows of it, and every claim would be open
        raise ValueError(f"there is no scale {scale!r}; scales are {', '.join(SCALES)}")
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
        f"the same cells, or by those of the shares of runs that failed, at `{scale}` scale, of rows that the",
        "code of this version made (`neurise experiment claims` writes this page from them). The method",
        "meant is the paper's own form, `NeurISE.paper()`.",
        "",
        "| claim | in the paper | verdict | what decides it | rows |",
        "|---|---|---|---|---|",
    ]
    for claim, word, reason in found:
        link = f"[{claim.experiment}]({page}#{claim.experiment}-{scale})"
        shown = " | ".join(text.replace("|", "\\|") for text in (claim.text, claim.place, f"**{word}**", reason))
        lines.append(f"| {shown} | {link} |")
    return "\n".join(lines) + "\n"


def _verdict(claim: Claim, rows: Sequence[store.Row], scale: str) -> Verdict:
    if not rows:
        return Verdict(claim, OPEN, f"no rows of {scale} scale by the code of this version")
    return Verdict(claim, *claim.decide(rows))
