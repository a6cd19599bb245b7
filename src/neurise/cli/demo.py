"""``neurise demo``: learn a spin glass that is small enough to be checked exactly."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from neurise.cli._output import Json, Seed, print_json, print_table, say

if TYPE_CHECKING:
    import numpy as np

    from neurise.dataset import Dataset

ROWS = 10_000
COUPLING = 0.5
"""At the paper's 1.2 the spins are so cold that about a hundred of the 65,536 configurations hold most of the probability,
and memorising 10,000 samples is nearly as good as knowing the law. At 0.5 only what generalises does well."""

SETTINGS: dict[str, Any] = {"width": 128, "depth": 2, "steps": 1000, "members": 1, "architecture__pairwise": False}
SETTINGS |= {
    "training__batch_size": 1024,
    "training__learning_rate": 4e-3,
}  # one small network: the demo should take seconds
MODELS: dict[str, dict[str, Any]] = {
    "hard": {"keep_prob": 0.0, "cycles": 1},
    "soft": {"keep_prob": 0.3, "cycles": 2},
}


class Learnt(NamedTuple):
    """A law, exact, beside some samples; and what it cost."""

    name: str
    law: np.ndarray  # (2^16,)
    samples: np.ndarray  # (n, 16)
    correlations: np.ndarray  # (16, 16)
    training: float | None = None  # seconds
    sampling: float | None = None


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the figure, the data and the models.")
    ] = Path("demo"),
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Learn a 4 × 4 spin glass from samples, and compare with the exact answer.

    Takes less than a minute. Both kinds of noise are tried: hard (each site is erased at once) and soft (little by little).
    """
    from neurise.datasets.edwards_anderson import edwards_anderson

    began = time.monotonic()
    data = edwards_anderson(side=4, seed=0, J=COUPLING)
    train = data.sample(ROWS, seed=seed)
    with _one_thread():
        found = [_true_law(data), _memorised(data, train), *_learnt(data, train, output, seed)]
    written = [output / name for name in ("data.npz", *MODELS)]
    figure = _draw(data, found, output / "demo.png")
    written = [*written, figure] if figure else written
    _report(found, [str(path) for path in written], time.monotonic() - began, as_json=as_json)


def _learnt(data: Dataset, train: np.ndarray, output: Path, seed: int) -> Iterator[Learnt]:
    import numpy as np

    from neurise import exact
    from neurise.files import write_atomically
    from neurise.models.neurise import NeurISE

    for name, noise in MODELS.items():
        say(f"learning with {name} noise …")
        began = time.monotonic()
        model = NeurISE().set_params(**noise, **SETTINGS).fit(train, seed=seed, device="cpu")
        trained = time.monotonic()
        samples = model.sample(ROWS, seed=seed)
        sampled = time.monotonic()
        model.save(output / name)
        law = exact.law(model).numpy()
        title = f"{name} noise, ε = {noise['keep_prob']:g}"
        yield Learnt(title, law, samples, _correlations(data, law), trained - began, sampled - trained)
    write_atomically(output / "data.npz", lambda path: np.savez_compressed(path, X=train, pmf=_pmf(data)))


def _true_law(data: Dataset) -> Learnt:
    return Learnt("exact", _pmf(data), data.sample(ROWS, seed=2**32), _correlations(data, _pmf(data)))


def _memorised(data: Dataset, train: np.ndarray) -> Learnt:
    """Return the law of the training set itself: what a model that learns by heart would sample from."""
    import numpy as np
    import torch

    place = data.space.index(torch.from_numpy((train + 1) // 2))
    law = np.bincount(place.numpy(), minlength=data.space.size) / len(train)
    return Learnt("memorising the data", law, train, _correlations(data, law))


def _pmf(data: Dataset) -> np.ndarray:
    if data.pmf is None:
        raise ValueError(f"{data.name} has no known law")
    return data.pmf


def _correlations(data: Dataset, law: np.ndarray) -> np.ndarray:
    r"""Two-site correlations :math:`\sum_x \mu(x)\,\sigma_i\sigma_j` of a law, (sites, sites): exact."""
    spins = 2.0 * data.space.configurations().numpy() - 1
    result: np.ndarray = (spins * law[:, None]).T @ spins
    return result


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute in one thread: networks of this size gain little from a second core, and lose much where it is busy."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _draw(data: Dataset, found: list[Learnt], path: Path) -> Path | None:
    try:
        from neurise.cli._demo_figure import draw
        from neurise.metrics.total_variation import total_variation
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "matplotlib":
            raise
        say("matplotlib is missing, so there is no figure; for one: pip install 'neurise[plots]'")
        return None
    exact, _, *models = found
    shown = [exact, *models]
    titles = ["the true law", *(f"NeurISE, {name} noise" for name in MODELS)]
    distances = [total_variation(learnt.law, exact.law) for learnt in shown]
    draw(path, titles, distances, [learnt.samples for learnt in shown], [learnt.correlations for learnt in shown])
    return path


def _report(found: list[Learnt], written: list[str], seconds: float, *, as_json: bool) -> None:
    import numpy as np

    from neurise.metrics.total_variation import total_variation

    truth, *rivals = found
    pairs = np.triu_indices(len(truth.correlations), 1)
    results = [
        {
            "name": rival.name,
            "total_variation": total_variation(rival.law, truth.law),
            "correlation_mean_abs": float(np.abs(rival.correlations - truth.correlations)[pairs].mean()),
            "training_seconds": rival.training,
            "sampling_seconds": rival.sampling,
        }
        for rival in rivals
    ]
    if as_json:
        print_json({"results": results, "files": written, "seconds": round(seconds, 3)})
        return
    title = f"A 4 × 4 Edwards–Anderson spin glass, learnt from {ROWS:,} exact samples"
    columns = ["", "total variation", "corr. error", "training", "sampling"]
    rows = [
        [
            rival.name,
            f"{result['total_variation']:.4f}",
            f"{result['correlation_mean_abs']:.4f}",
            "–" if rival.training is None else f"{rival.training:.1f} s",
            "–" if rival.sampling is None else f"{rival.sampling:.1f} s",
        ]
        for rival, result in zip(rivals, results, strict=True)
    ]
    print_table(title, columns, rows, numbers=(1, 2, 3, 4))
    memorised, *learnt = (total_variation(rival.law, truth.law) for rival in rivals)
    typer.echo(
        "Total variation is the distance between the whole law of the sampler and the true one, over all\n"
        "65,536 configurations, computed exactly: 0 is perfect, 1 as wrong as can be. Corr. error is the\n"
        f"mean error of ⟨σ_i σ_j⟩ over all pairs, sampling is of {ROWS:,} rows. The better model is\n"
        f"{memorised / min(learnt):.1f} times closer to the truth than the data that it was shown: it has learnt the law, not\n"
        "the samples. (Averages over pairs alone are better taken from the data. ε is the probability that\n"
        "a step of the noise keeps its site.)\n"
    )
    typer.echo(f"written in {seconds:.0f} s: {', '.join(written)}")
    folder = Path(written[0]).parent
    typer.echo(
        f"next: neurise sample {folder / 'soft'} -n 5, or neurise evaluate {folder / 'soft'} --data {written[0]}"
    )
