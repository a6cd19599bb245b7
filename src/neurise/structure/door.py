"""Validate the model and the data passed to ``recover``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neurise import holdings
from neurise.alphabet import Alphabet, as_matrix
from neurise.dataset import Dataset
from neurise.space import Space
from neurise.structure.one_alphabet import check_one_alphabet
from neurise.structure.sources import LawSource, Likelihood, SiteConditionals

DRAWN = 10_000
"""Rows that are drawn of a law that comes without rows."""
EVALUATIONS = 2**18
"""Evaluations of the model that are spent where nothing else is asked for."""


@dataclass(frozen=True, eq=False)
class Question:
    """A validated model, and the contexts to evaluate it in."""

    source: LawSource
    symbols: np.ndarray  # (states,)
    x: np.ndarray  # (R, sites) distinct rows of tokens
    masses: np.ndarray  # (R,) how much of the data each stands for
    constant: tuple[int, ...]  # sites that the model was shown one symbol of
    shape: tuple[int, ...] | None
    labels: Sequence[Any] | None  # what the data set calls its sites, where it has names for them


def ask(model: Any, data: Any, *, y: Any, cycle: int | None, rows: int | None, seed: int) -> Question:
    """Check the model, the rows and the options, and return what to evaluate."""
    if rows is not None and (isinstance(rows, bool) or rows != int(rows) or rows < 1):
        raise ValueError(f"rows must be a positive whole number, got {rows!r}")
    check_one_alphabet(getattr(getattr(model, "schema_", None), "alphabet", None))
    if y is not None and not isinstance(y, str | bytes) and np.ndim(y):
        raise ValueError(
            f"y has {np.size(y)} labels; recover takes one, that of the class whose couplings are asked for"
        )
    X, weights, name = _rows(data, seed)
    known = getattr(model, "space_", None)
    if known is not None and known.sites != X.shape[1]:
        raise ValueError(f"the model has {known.sites} sites; in {name} there are {X.shape[1]}")
    alphabet = _alphabet(model, data, X, name)
    tokens = alphabet.encode(X, name).numpy()
    space = Space(X.shape[1], len(alphabet))
    if space.sites < 2 or space.states < 2:
        raise ValueError(
            f"{name} has {space.sites} sites of {space.states} states; couplings need two of each at least"
        )
    x, place = np.unique(tokens, axis=0, return_inverse=True)
    masses = np.bincount(place.ravel(), weights=weights, minlength=len(x)).astype(float)
    x, masses = x[masses > 0], masses[masses > 0]
    source = _source(model, alphabet, space, x[:1], y, cycle)
    chosen = _choose(len(x), _affordable(source, len(x)) if rows is None else int(rows), seed)
    constant = tuple(sorted(_constant(model)))
    shape = data.shape if isinstance(data, Dataset) else None
    # Each of the chosen rows stands for as many of the distinct ones, whatever its mass.
    masses = masses[chosen] * (len(x) / len(chosen))
    return Question(source, alphabet.symbols, x[chosen], masses, constant, shape, labels_of(data))


def labels_of(data: Any) -> Sequence[Any] | None:
    """Return the names of the sites of a data set, the numbers of qubits say; None where there are none."""
    if not isinstance(data, Dataset):
        return None
    found: Sequence[Any] | None = data.info.get("qubit_ids", data.info.get("nodes"))
    return found


def _rows(data: Any, seed: int) -> tuple[np.ndarray, np.ndarray | None, str]:
    if not isinstance(data, Dataset):
        held = holdings.opened(data, "data")
        return as_matrix(held.X, "data"), held.weights, "data"
    if data.train is not None:
        X, weights = data.train, data.weights
    elif data.test is not None:
        X, weights = data.test, data.test_weights
    else:
        X, weights = data.sample(DRAWN, seed=seed), None
    if len(X) < 1:
        raise ValueError(f"{data.name} has no rows; at least one is needed as a context")
    return X, weights, data.name


def _alphabet(model: Any, data: Any, X: np.ndarray, name: str) -> Alphabet:
    """Take the symbols of the data set, whose order is that of its couplings; of mere rows, those of the model."""
    schema = getattr(model, "schema_", None)
    if not isinstance(data, Dataset):
        return (
            Alphabet.of(X)
            if schema is None
            else Alphabet.of(schema.alphabet.symbols[:, None], schema.alphabet.symbols.tolist())
        )
    own = Alphabet.of(data.symbols[:, None], data.symbols.tolist())
    if schema is not None and (
        set(schema.alphabet.codes) != set(own.codes) or _is_text(schema.alphabet) != _is_text(own)
    ):
        if (
            data.edges is None
            and set(own.codes) <= set(schema.alphabet.codes)
            and _is_text(schema.alphabet) == _is_text(own)
        ):
            return Alphabet.of(schema.alphabet.symbols[:, None], schema.alphabet.symbols.tolist())
        raise ValueError(
            f"the model's symbols are {schema.alphabet}, and those of {name} are {own}: they must be the same"
        )
    return own


def _is_text(alphabet: Alphabet) -> bool:
    return np.dtype(alphabet.dtype).kind in "US"


def _source(model: Any, alphabet: Alphabet, space: Space, probe: np.ndarray, y: Any, cycle: int | None) -> LawSource:
    """Find out what the model offers: a likelihood first, else clean conditionals, else those of the cycle asked for."""
    symbols, label = alphabet.symbols, {} if y is None else {"y": y}

    def log_prob(tokens: np.ndarray) -> np.ndarray:
        return np.asarray(model.log_prob(symbols[tokens], **label), dtype=float)

    def clean(tokens: np.ndarray, site: int) -> np.ndarray:
        return _in_order(np.asarray(model.conditional(symbols[tokens], site, **label), dtype=float), model, alphabet)

    def noised(tokens: np.ndarray, site: int) -> np.ndarray:
        step = int(cycle or 0) * space.sites + list(model.order_).index(site)
        return _in_order(np.asarray(model.conditional(symbols[tokens], site, step=step, **label)), model, alphabet)

    offers: list[tuple[str, Callable[[], Any], Callable[[], LawSource]]] = [
        ("log_prob", lambda: log_prob(probe), lambda: Likelihood(log_prob, space)),
        ("conditional", lambda: clean(probe, 0), lambda: SiteConditionals(clean, space)),
    ]
    reasons = []
    for name, answer, make in offers:
        reason = _refusal(answer) if hasattr(model, name) else f"it has no {name}"
        if reason is None:
            if cycle is not None:
                raise ValueError(f"cycle={cycle} is for soft noise; this model has a clean {name}: leave cycle out")
            return make()
        reasons.append(reason)
    noisy = hasattr(model, "conditional") and "step" in inspect.signature(model.conditional).parameters
    if noisy and cycle is not None:
        noised(probe, 0)
        return SiteConditionals(noised, space)
    raise NotImplementedError(
        f"{type(model).__name__} has neither a likelihood, log_prob(X), nor clean conditionals, conditional(X, site) "
        f"({'; '.join(reasons)}). Fit a model that has one, NeurISE with keep_prob=0 say"
        + (
            ", or take the conditionals of slightly noised laws with cycle=0 (--cycle 0); their couplings are weaker"
            if noisy
            else ""
        )
    )


def _refusal(probe: Callable[[], Any]) -> str | None:
    """Say why a model does not answer, or None where it does."""
    try:
        probe()
    except NotImplementedError as error:
        return str(error)
    return None


def _in_order(answer: np.ndarray, model: Any, alphabet: Alphabet) -> np.ndarray:
    """Put the columns of a conditional, which come in the model's order of symbols, in ours."""
    schema = getattr(model, "schema_", None)
    if schema is None or schema.alphabet.codes == alphabet.codes:
        return answer
    return answer[:, [schema.alphabet.codes.index(code) for code in alphabet.codes]]


def _affordable(source: LawSource, rows: int) -> int:
    if source.evaluations(rows) <= EVALUATIONS:
        return rows
    return max(1, EVALUATIONS // source.evaluations(1))


def _choose(distinct: int, wanted: int, seed: int) -> np.ndarray:
    """Choose among the distinct rows, rare or not: rare ones tell most, and each weighs by its mass afterwards."""
    if wanted >= distinct:
        return np.arange(distinct)
    return np.sort(np.random.default_rng(seed).permutation(distinct)[:wanted])


def _constant(model: Any) -> set[int]:
    schema = getattr(model, "schema_", None)
    if schema is None:
        return set()
    return {site for site, only in zip(schema.order, schema.constant.tolist(), strict=True) if only >= 0}
