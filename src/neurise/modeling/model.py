"""The contract that every model keeps."""

from __future__ import annotations

import copy
import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from torch import Generator, Tensor

from neurise import checks, deadline, devices, holdings
from neurise._version import __version__
from neurise.alphabet import Symbols
from neurise.fields import Field
from neurise.holdout import Split
from neurise.modeling import loaded, partial_rows, sklearn_names
from neurise.modeling.elbo import Elbo, bound
from neurise.modeling.estimator import flat, plain
from neurise.modeling.published import Published
from neurise.modeling.site_terms import SiteTerms
from neurise.modeling.summary import Summary, best_scores
from neurise.persistence import save_folder
from neurise.rows import Rows
from neurise.schema import Schema, learn_schema
from neurise.space import Space
from neurise.stored import Stored
from neurise.training.loop import BrokenOff, TrainingDiverged

if TYPE_CHECKING:
    from neurise.modeling.trajectory import Chains, Trajectory

Callback = Callable[[int, float, Mapping[str, float], "Model"], Any]
"""``f(step, seconds, losses, model)``, called at every evaluation of the training; returning True stops it."""


MOST_DRAWS = 2**20
"""Draws of a bound up to which they are made one after another."""


class Run(NamedTuple):
    """What ``fit`` was told about the run, checked."""

    seed: int
    checkpoint: Path | None
    resume: bool
    max_steps: int | None
    max_seconds: float | None
    verbose: bool | None
    began: float  # what the clock said in the beginning
    callback: Callback | None = None


class Request(NamedTuple):
    """What ``sample`` was asked for, checked."""

    n: int
    y: Tensor | None  # (n,); None without labels, and with ``clamp`` where labels were not given: they are drawn then
    clamp: tuple[Tensor, Tensor] | None  # (values, given), each (1 or n, sites)
    generator: Generator
    sweeps: Any = None  # None: what fit chose
    start: Tensor | None = None  # (n, sites): states at time T to start a reverse chain from
    quiet: bool = False  # whether whoever asks looks at ``effective_samples_``, and needs no warning


class Model(Published, ABC):
    """A generative model of discrete data: ``fit``, ``sample``, ``save``.

    **Writing one.** A model is one file in ``models/`` (or a module of another package, named by an entry point of the group
    ``neurise.models``) whose class bears the file's name. It inherits input checks, symbols and labels, files and
    scikit-learn's rules, and writes down:

    - its parameters: keyword-only constructor arguments with defaults, stored under their own names and nothing else
      (a ``dataclass(kw_only=True, eq=False, repr=False)`` does just that). Every model takes ``alphabet`` and ``order``.
    - ``_learn(rows, held, run)``: learn from tokens, for ``self.schema_``. What trains a network inherits this from
      :class:`neurise.modeling.trained.TrainedModel` and writes ``_build`` instead.
    - ``_tensors()`` and ``_restore(tensors, learnt)``: everything that was learnt, and how it is taken back.
    - ``_draw(request)``: tokens (n, sites).

    A model with a likelihood adds ``_log_prob`` or ``_elbo``, and ``site_terms`` where it is a sum over sites; one whose law
    can be written out adds ``chain_law``. What is learnt ends in an underscore. Inside a model, data are tokens and sites
    stand in the order in which they are noised; :class:`neurise.schema.Schema` translates user data into these and back.

    >>> import neurise
    >>> X = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] * 25
    >>> model = neurise.Independent().fit(X)         # any model: fit, sample, log_prob, save
    >>> isinstance(model, neurise.Model), model.sample(2, seed=0).shape, model.log_prob(X).shape
    (True, (2, 3), (100,))
    """

    groups: ClassVar[Mapping[str, type]] = {}
    """Parameters that are groups of further ones, and the dataclass of each."""
    changeable: ClassVar[tuple[str, ...]] = ()
    """Parameters that say how to sample, and so may be changed after ``fit``. All others are saved as they were fitted."""

    takes_gaps: ClassVar[bool] = False
    """Whether ``fit`` takes rows with missing values."""
    libraries: ClassVar[tuple[str, ...]] = ()
    """What ``fit`` would import on its way, and imports first: to start up is no part of the time that it is given."""

    alphabet: Any
    order: Any

    schema_: Schema
    history_: list[dict[str, float]]
    stopped_: str  # why training ended: steps, time, patience, callback, interrupted, diverged; "constant": nothing to
    # learn; or "solved": the answer has a closed form
    device_: torch.device
    fitted_params_: dict[str, Any]  # the parameters as they were when fit was called
    split_: Split | None  # how test rows were held back from the data before fit, where that is known

    def check(self) -> None:
        """Raise ValueError for the first parameter that cannot be used; the schema is known. ``fit`` calls it first."""

    # --- what a model writes ---------------------------------------------------------------------------------------

    @abstractmethod
    def _learn(self, rows: Rows, held: Rows | None, run: Run) -> None:
        """Learn from rows of tokens; ``held`` are validation rows that the user gave. Sets ``history_`` and ``stopped_``."""

    @abstractmethod
    def _tensors(self) -> Mapping[str, Tensor]:
        """Return everything that was learnt, by name."""

    @abstractmethod
    def _restore(self, tensors: Mapping[str, Tensor], learnt: Any) -> None:
        """Take back what :meth:`_tensors` and :meth:`_described` gave, for ``self.schema_`` and onto ``self.device_``."""

    def _described(self) -> Any:
        """Return what a file must say of what was learnt besides its tensors, in JSON's types."""
        return None

    @abstractmethod
    def _draw(self, request: Request) -> Tensor:
        """Draw rows of tokens, (n, sites)."""

    def check_clamp(self, request: Request) -> None:
        """Raise NotImplementedError where sites cannot be held as they are asked to be."""

    def _chains(self, request: Request) -> Chains:
        """Return the chains that draw what is asked for, to be told of step by step."""
        raise NotImplementedError(f"{type(self).__name__} draws without a chain: it has no steps to show")

    def _noising(self, x: Tensor, generator: Generator) -> Chains:
        """Return the forward chains of rows of tokens."""
        raise NotImplementedError(f"{type(self).__name__} has no forward noise of single steps to show")

    def _log_prob(self, x: Tensor, y: Tensor | None) -> Tensor:
        instead = "compare samples instead" if type(self)._elbo is Model._elbo else "elbo() gives a lower bound"
        raise NotImplementedError(f"{type(self).__name__} has no exact likelihood; {instead}")

    @property
    def has_likelihood(self) -> bool:
        """Whether the likelihood is known exactly."""
        return type(self)._log_prob is not Model._log_prob

    def _log_marginal(
        self, x: Tensor, missing: Tensor, y: Tensor | None, generator: Generator
    ) -> tuple[Tensor, Tensor]:
        """Return how likely the values are that are there, and standard errors, (n,) float64; by default a sum over all others."""
        return partial_rows.by_completion(self, x, missing, y)

    def _summable(self, missing: Tensor) -> Tensor:
        """Return which rows have so few completions that they are summed over, (n,) booleans."""
        return partial_rows.counts(missing, partial_rows.digits_of(self)) <= partial_rows.MOST

    def _learnt_law(self, x: Tensor, missing: Tensor, place: int) -> Tensor | None:
        """Return the law of a place of the order given what is there, (n, states), if it was learnt as such; else None."""
        return None

    def _complete(self, x: Tensor, missing: Tensor, y: Tensor | None, generator: Generator) -> Tensor:
        """Draw what is missing of rows (n, sites) given what is there."""
        return self._draw(Request(len(x), y, (x, ~missing), generator)).cpu()

    def _elbo(self, x: Tensor, y: Tensor | None, generator: Generator) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no bound on its likelihood; compare samples instead")

    def site_terms(self, x: Tensor, y: Tensor | None, generator: Generator) -> SiteTerms:
        """Return the terms of the log-likelihood, or of a draw of its bound, site by site: for :mod:`neurise.scoring`."""
        raise NotImplementedError(f"the likelihood of a {type(self).__name__} does not fall into terms of single sites")

    def chain_law(self, label: Tensor | None, start: Tensor | None = None, sweeps: Any = None) -> Tensor:
        """Law of ``_draw`` given a label (1,), (p^q,) float64 over the model's own order of sites: for :mod:`neurise.exact`.

        ``start`` takes the place of the law that a reverse chain starts from; ``sweeps`` are those of ``sample``.
        """
        raise NotImplementedError(f"the law of a {type(self).__name__} cannot be written out; compare samples instead")

    # --- fitting ---------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Symbols,
        y: Any = None,
        *,
        weights: Any = None,
        sample_weight: Any = None,
        validation: Any = None,
        seed: int = 0,
        random_state: Any = None,
        device: str | torch.device | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        max_steps: int | None = None,
        max_seconds: float | None = None,
        verbose: bool | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """Learn from X, (N, sites) of at most 256 symbols, and labels y (N,).

        ``weights`` (or ``sample_weight``) are counts or importances of the rows; ``random_state`` is another name of ``seed``,
        which may also be a generator of numpy's; ``validation`` is X, (X, y) or (X, y, weights) to stop by
        instead of a held-back part; ``checkpoint`` is a folder to keep the state of a long run in, and ``resume`` goes
        on from there. ``callback(step, seconds, losses, model)`` is called at every evaluation; returning True stops the
        run. Ends after ``max_steps`` or ``max_seconds``, when the validation score stops falling, or at Ctrl-C or SIGTERM,
        which leave a usable model. All that ``fit`` does counts against ``max_seconds``, but for what the first ``fit`` of a
        process loads of torch. Beyond it are at most one iteration of whatever loop is running, one validation, and the making
        of the model from what was learnt.
        """
        for library in self.libraries:
            importlib.import_module(library)
        began = deadline.CLOCK()
        if sample_weight is not None:
            weights = sklearn_names.weights_of(weights, sample_weight)
        if random_state is not None:
            seed = sklearn_names.seed_of(seed, random_state, 0)
        if callback is not None and not callable(callback):
            raise ValueError(f"callback must be a function of (step, seconds, losses, model), got {callback!r}")
        before = dict(vars(self))
        try:
            self.begin_fit(device)
            if isinstance(X, Stored):
                self.schema_, rows, held = self._learn_files(X, y, weights, validation, seed=seed, verbose=verbose)
            else:
                known = {"alphabet": self.alphabet, "order": self.order}
                self.schema_, rows, held = learn_schema(X, y, weights, validation, **known)
            if rows.missing is not None or (held is not None and held.missing is not None):
                self.check_gaps()
            self.check()
            steps, seconds = checks.limits(max_steps, max_seconds)
            start, again = checks.seed(seed), checks.flag("resume", resume)
            shown = None if verbose is None else checks.flag("verbose", verbose)
            if again and checkpoint is None:
                raise ValueError("resume=True goes on from a checkpoint: name its folder with checkpoint=")
            folder = None if checkpoint is None else Path(checkpoint)
            self._learn(rows, held, Run(start, folder, again, steps, seconds, shown, began, callback))
        except BaseException as error:
            # Training that diverges, cannot write a checkpoint or is broken off leaves a usable model. Whatever else fails, a
            # setting or a file that is refused say, leaves the model as it was.
            learnt = isinstance(error, TrainingDiverged | OSError | BrokenOff) and not isinstance(
                error, FileExistsError
            )
            if not learnt or vars(self).get("schema_") is before.get(
                "schema_"
            ):  # of which the data cannot be read, say
                vars(self).clear()
                vars(self).update(before)
            raise
        return self

    def _learn_files(self, X: Stored, y: Any, weights: Any, validation: Any, **options: Any) -> Any:
        """Go over files once, for the schema and for rows that are set apart."""
        fraction = getattr(getattr(self, "training", None), "validation_fraction", 0.0)
        checks.seed(options["seed"])
        own = {
            "alphabet": self.alphabet,
            "order": self.order,
            "fraction": checks.share("validation_fraction", fraction),
        }
        return X.learn(y, weights, validation, **own, **options)

    def begin_fit(self, device: str | torch.device | None) -> None:
        """Record the parameters before fitting; nothing is learnt yet, and the schema is still to be set."""
        known = getattr(type(self), "__dataclass_fields__", vars(self))
        self.fitted_params_ = {
            name: copy.deepcopy(vars(self)[name])  # a list may be changed after fit
            for name in known
            if name in vars(self) and not name.endswith("_")
        }
        for name, kind in self.groups.items():
            if type(self.fitted_params_[name]) is not kind:
                raise ValueError(
                    f"{name} must be a {kind.__name__}(…), got {self.fitted_params_[name]!r}; write "
                    f"{type(self).__name__}({name}={kind.__name__}(…)) or set_params({name}__…=…)"
                )
        self.device_, self.history_, self.stopped_, self.split_ = devices.resolve(device), [], "constant", None

    def check_gaps(self) -> None:
        """Raise ValueError where this kind of model cannot learn from rows with missing values."""
        if not self.takes_gaps:
            raise ValueError(
                f"{type(self).__name__} cannot learn from missing values; NeurISE, GGM and Independent can, and impute(X) of "
                "such a model fills them"
            )

    # --- using -----------------------------------------------------------------------------------------------------

    @property
    def space_(self) -> Space:
        """How many sites and states the data has."""
        return self._fitted().space

    @property
    def order_(self) -> tuple[int, ...]:
        """Return the user's site at each place of the order of noising."""
        return self._fitted().order

    @property
    def n_features_in_(self) -> int:
        """How many columns the data has, scikit-learn's name of the number of sites. There is none before ``fit``."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"this {type(self).__name__} is not fitted yet; call fit(X) first")
        return self.schema_.space.sites

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The names of the columns, (columns,), in the order in which they were fitted. Only a table with names has them."""
        names = getattr(self.schema_.alphabet, "named", None) if self.__sklearn_is_fitted__() else None
        if names is None:
            raise AttributeError(f"this {type(self).__name__} was not fitted to a table whose columns have names")
        return np.array(names, dtype=object)

    @property
    def num_parameters_(self) -> int:
        """Number of learnt parameters."""
        self._fitted()
        return sum(tensor.numel() for tensor in self._tensors().values())

    def sample(
        self,
        n: int,
        y: Any = None,
        *,
        clamp: Any = None,
        seed: int | None = None,
        random_state: Any = None,
        sweeps: Any = None,
        start: Symbols | None = None,
    ) -> Any:
        """Draw n configurations, (n, sites) of the symbols and the kind of array that were fitted.

        y is one label for all or one for each; without it, labels are drawn by their frequency in the data. ``clamp``
        is a numpy masked array, (sites,) or (n, sites): masked entries are the model's to choose, the others are given.
        ``sweeps`` is how often all sites are redrawn from the clean conditionals in the end, by default what ``fit`` chose,
        or a dict from a time of the chain to the number of sweeps there. ``start`` (n, sites) takes the place of the noise
        that a reverse chain starts from. ``random_state`` is another name of ``seed``, as in ``fit``.
        """
        if random_state is not None:
            seed = sklearn_names.seed_of(seed, random_state, None)
        request = self._request(n, y, clamp, seed, sweeps, start)
        with torch.no_grad():
            tokens = self._draw(request)
        return self.schema_.decode(tokens, request.generator)

    def _request(self, n: int, y: Any, clamp: Any, seed: int | None, sweeps: Any, start: Any) -> Request:
        """Check what ``sample`` was asked for, and draw the labels that are not given."""
        schema = self._fitted()
        n, generator = checks.positive_whole("n", n), devices.generator(seed, self.device_)
        needed = devices.sampling_bytes(n, schema.space.sites, np.dtype(schema.alphabet.dtype).itemsize)
        devices.require_memory(needed, torch.device("cpu"), f"draw fewer than n={n:,} rows at a time")
        given = None if clamp is None else schema.encode_clamp(clamp, n)
        labels = None if y is None else schema.encode_labels(y, n)
        if schema.labels is not None and labels is None and given is None:
            labels = schema.labels.draw(n, generator=generator)
        begin = None if start is None else schema.encode(start, "start")
        if begin is not None and len(begin) != n:
            raise ValueError(f"start has {len(begin)} rows for n={n}")
        labels = None if labels is None else labels.to(self.device_)
        return Request(n, labels, given, generator, sweeps, begin)

    def trajectory(
        self,
        n: int,
        y: Any = None,
        *,
        clamp: Any = None,
        seed: int | None = None,
        sweeps: Any = None,
        start: Symbols | None = None,
    ) -> Trajectory:
        """Draw n configurations as :meth:`sample` does, and return every state that the reverse chain went through.

        The arguments are those of ``sample``. The last state follows the law of ``sample``, and with the same seed it is the
        same rows, up to rounding. With ``clamp`` the states are those of the particles that were kept in the end.

        >>> import neurise
        >>> model = neurise.NeurISE(width=8, members=1, steps=5).fit([[0, 1, 1], [1, 0, 0]] * 20, verbose=False)
        >>> chain = model.trajectory(4, seed=0)
        >>> chain[0].shape, chain[-1].shape          # noise and configurations, (4, sites) of the symbols that were fitted
        ((4, 3), (4, 3))
        >>> chain.sites[2].shape                     # the site that the third step redraws, of each chain
        (4,)
        >>> chain.laws[2].shape                      # the probabilities it was drawn from, (4, states)
        (4, 2)
        """
        from neurise.modeling.trajectory import recorded

        return recorded(self._fitted(), self._chains(self._request(n, y, clamp, seed, sweeps, start)))

    def noising(self, X: Symbols, *, seed: int | None = None) -> Trajectory:
        """Noise the rows of X step by step: the forward chain, from the data at time 0 to noise."""
        from neurise.modeling.trajectory import recorded

        schema = self._fitted()
        return recorded(schema, self._noising(schema.encode(X), devices.generator(seed, self.device_)))

    def log_prob(self, X: Symbols, y: Any = None) -> np.ndarray:
        """Exact log-likelihood of each row in nats, (N,). Without y, a model with labels sums over them.

        It is that of the chain itself: sweeps that ``sample`` makes after or between its steps are left out, and so is a
        ``start`` other than the chain's own. Of a row with missing values (NaN, None, masked) it is the likelihood of the
        others: exact where the missing sites are generated last or have few values together, otherwise an estimate
        (see :meth:`marginal`), and a warning says so.
        """
        if isinstance(X, Stored):
            return np.concatenate([self.log_prob(block) for block in X.blocks()])
        if not isinstance(X, np.ndarray | Tensor):
            X, y, _ = self._in_hand(X, y)
        x, missing = self._fitted().encode_gaps(X)
        if missing is not None:
            return partial_rows.log_prob(self, x, missing, y)
        terms = [np.log(weight) + self._log_prob(x, label).numpy() for label, weight in self._label_rows(y, len(x))]
        total: np.ndarray = np.logaddexp.reduce(terms, axis=0)
        return total

    def score_samples(self, X: Symbols, y: Any = None) -> np.ndarray:
        """Return :meth:`log_prob` under scikit-learn's name."""
        return self.log_prob(X, y)

    def marginal(self, X: Symbols, y: Any = None, *, seed: int | None = 0) -> partial_rows.Marginal:
        """Log-likelihood of the values that each row has, and its standard error: ``(log_prob, error)``, (N,) each, in nats.

        The error is 0 where the missing values could be summed over exactly. ``seed`` is that of the particles elsewhere.
        """
        return partial_rows.marginal(self, X, y, seed)

    def impute(
        self, X: Symbols, n: int = 1, y: Any = None, *, seed: int | None = None, most_probable: bool = False
    ) -> Any:
        """Return X with its missing values (NaN, None, masked) drawn from their joint law given the others of the row.

        The result is of the type of X; with n above 1 it is a list of n independent ones. Draws are exact where the missing
        sites are generated last or have few values together; elsewhere they are those of weighted particles, as with
        ``clamp``, and ``effective_samples_`` says how many they are worth.

        With ``most_probable`` nothing is drawn: each gap gets its most probable symbol, which makes the fewest errors cell by
        cell, and a table that is too smooth.
        """
        if most_probable:
            return partial_rows.most_probable(self, X, n, y, seed=seed or 0)
        return partial_rows.impute(self, X, n, y, seed)

    def predict_proba(self, X: Symbols, column: Any = None, y: Any = None, *, seed: int | None = 0) -> np.ndarray:
        """Probabilities of each symbol of a column given the other values of the row, (N, symbols), in the alphabet's order.

        What X holds in that column is not looked at, and others may be missing. Without ``column`` it is the last one.
        Missing ones are summed over, which takes long. A network that was fitted to rows with gaps and to clean conditionals
        (``corrector__clean`` above 0) has learnt the answer itself, for gaps like those it was fitted to: one evaluation.
        """
        return partial_rows.predict_proba(self, X, column, y, seed)

    def elbo(self, X: Symbols, y: Any = None, *, seed: int | None = None, draws: int = 4) -> Elbo:
        """Lower bound on the log-likelihood of each row in nats, with the standard error of its estimate over ``draws``.

        Without y, a model with labels bounds the sum over them. Like ``log_prob`` it is about the chain without sweeps.
        """
        checks.count("draws", draws, MOST_DRAWS)
        if not isinstance(X, np.ndarray | Tensor):
            X, y, _ = self._in_hand(X, y)
        x, generator = self._fitted().encode(X), devices.generator(seed, self.device_)
        return bound(lambda label: self._elbo(x, label, generator).numpy(), self._label_rows(y, len(x)), draws)

    def score(self, X: Symbols, y: Any = None) -> float:
        """Mean log-likelihood in nats, or its bound where no exact likelihood exists: scikit-learn's score. Without sweeps.

        Rows that come with counts or weights, ``{"0101": 37}`` say, count as often as these say.
        """
        weights = None
        if isinstance(X, Stored):
            total = mass = 0.0
            for block in X.blocks():
                own = len(block) if block.weights is None else float(block.weights.sum())
                total, mass = total + (own * self.score(block) if own else 0.0), mass + own
            return total / mass
        if not isinstance(X, np.ndarray | Tensor):
            X, y, weights = self._in_hand(X, y)
        try:
            values = self.log_prob(X, y)
        except NotImplementedError:
            values = self.elbo(X, y, seed=0).value
        if weights is None:
            return float(values.mean())
        present = weights > 0  # a row that was never seen may be impossible
        return float(np.average(values[present], weights=weights[present]))

    def label_terms(self, y: Any) -> list[tuple[Tensor | None, float]]:
        """Return the labels to condition on, (1,) tensors, and the probability of each: one for a given y, or all."""
        schema = self._fitted()
        if schema.labels is None or y is not None:
            label = schema.encode_labels(y, 1)
            return [(None if label is None else label.to(self.device_), 1.0)]
        frequencies = schema.labels.frequencies.tolist()
        return [(torch.tensor([k], device=self.device_), weight) for k, weight in enumerate(frequencies)]

    def summary(self) -> Summary:
        """Summarise the data, the choices and the fit; print it, or read it as a dict."""
        schema, last = self._fitted(), self.history_[-1] if self.history_ else {}
        fitted = type(self)().set_params(**self._saved_params())  # parameters may have been changed since
        vars(fitted).update({name: value for name, value in vars(self).items() if name.endswith("_")})
        scores = best_scores(self.history_)
        facts = {
            "model": repr(fitted),
            "data": f"{schema.count:,} rows of {schema.space.sites:,} sites, {schema.space.states} states",
            "missing": f"{schema.gaps:,} of {schema.count * schema.space.sites:,} entries" if schema.gaps else None,
            "labels": schema.classes or None,
            "constant sites": int((schema.constant >= 0).sum()) or None,
            **fitted._facts(),
            "parameters": self.num_parameters_,
            "steps": int(last.get("steps", last.get("step", 0))) or None,
            "seconds": round(last["seconds"], 2) if last else None,
            "loss": last.get("loss"),
            "validation": sum(scores) / len(scores) if scores else None,
            "stopped": self.stopped_,
        }
        return Summary({name: fact for name, fact in facts.items() if fact is not None})

    def _repr_html_(self) -> str:
        from neurise.modeling.model_page import html  # notebooks alone ask for this

        return html(self)

    def _facts(self) -> dict[str, Any]:
        """Return what a kind of model adds to its summary."""
        return {}

    # --- files -----------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the model to a folder: ``config.json`` and ``model.safetensors``. A model saved there is replaced."""
        schema = self._fitted()
        self._check_changes()
        config = {
            "neurise": __version__,
            "model": type(self).__module__.rpartition(".")[2],
            "params": plain(self._saved_params()),
            "schema": schema.to_dict(),
            "split": None if self.split_ is None else self.split_._asdict(),
            "learnt": plain(self._described()),
            "history": self.history_,
            "stopped": self.stopped_,
        }
        save_folder(Path(path), config, self._tensors())

    def _saved_params(self) -> dict[str, Any]:
        """Return the parameters as they were fitted; those that say how to sample as they are."""
        now, then = self.flat_params(), flat(self.fitted_params_)
        return {**then, **{name: now.get(name, then[name]) for name in self.changeable}}

    def _check_changes(self) -> None:
        """Raise ValueError for a parameter that was changed after ``fit`` to what no model can have: it could not be loaded."""
        saved = type(self)().set_params(**self._saved_params())
        saved.begin_fit(self.device_)
        saved.schema_ = self._fitted()
        saved.check()

    @classmethod
    def restored(cls, config: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device) -> Self:
        """Make a fitted model from what :func:`neurise.persistence.load_folder` read."""
        described = Field(dict(config))
        schema = Schema.from_field(described["schema"])
        loaded.check_tensors(tensors)
        loaded.check_sizes(described, tensors)
        history, stopped = loaded.checked_history(described["history"]), described["stopped"].text()
        model = cls().set_params(**config["params"])
        schema.check_params(described["params"])
        model.begin_fit(device)
        model.schema_ = schema
        model.check()
        model.history_, model.stopped_ = history, stopped
        model.split_ = None if config.get("split") is None else Split(**config["split"])
        model._restore(tensors, config["learnt"])
        return model

    def _refuse(self, **options: Any) -> None:
        """Raise NotImplementedError for options of ``sample`` that this kind of model does not have."""
        for name, value in options.items():
            if value is not None and not (checks.is_number(value) and value == 0):
                raise NotImplementedError(f"{type(self).__name__} has no {name}; NeurISE and GGM have ({name}=)")

    # --- helpers ---------------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "schema_")

    def _fitted(self) -> Schema:
        if not self.__sklearn_is_fitted__():
            raise sklearn_names.not_fitted(type(self).__name__)
        return self.schema_

    def _in_hand(self, X: Any, y: Any) -> tuple[Any, Any, Any]:
        """Open what holds rows, such as counts or a data set: rows, their labels where the model has labels, and weights."""
        schema = self._fitted()
        held = holdings.opened(X, sites=schema.space.sites)
        return held.X, held.y if y is None and schema.labels is not None else y, held.weights

    def _label_rows(self, y: Any, n: int) -> list[tuple[Tensor | None, float]]:
        """Return the labels of n rows, as given; or every class for all of them, with its probability."""
        schema = self._fitted()
        if schema.labels is None or y is not None:
            labels = schema.encode_labels(y, n)
            return [(None if labels is None else labels.to(self.device_), 1.0)]
        return [(label.expand(n), weight) for label, weight in self.label_terms(None) if label is not None]
