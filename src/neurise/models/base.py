"""The contract that every model keeps."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Generator, Tensor

from neurise import devices
from neurise._version import __version__
from neurise.alphabet import Symbols
from neurise.models._elbo import Elbo, bound
from neurise.models._estimator import Estimator, plain
from neurise.models._schema import Schema, learn_schema
from neurise.persistence import save_folder
from neurise.space import Space
from neurise.training import memory
from neurise.training.batches import Rows, digest, split
from neurise.training.loop import TrainingDiverged, train
from neurise.training.memory import training_bytes
from neurise.training.objective import Objective
from neurise.training.settings import Settings, is_number, positive_whole


class Model(Estimator, ABC):
    """A generative model of discrete data: ``fit``, ``sample``, ``save``.

    **Writing one.** A model is one file in ``models/`` whose class bears the file's name. It writes down three things
    and inherits the rest (input checks, symbols and labels, validation split, training, checkpoints, files,
    scikit-learn's rules):

    - ``__init__``: keyword-only, stores each argument under its own name and does nothing else. Every model takes
      ``alphabet``, ``order`` and the arguments that :meth:`settings` and the validation split read.
    - ``_build()``: check the arguments and make the :class:`Objective` whose network is to be learnt, for
      ``self.schema_``. The network has a ``reset(generator)`` that gives every one of its weights a value.
    - ``_draw(n, y, clamp, generator)``: tokens (n, sites), from the learnt network.

    A model with a likelihood adds ``_log_prob`` or ``_elbo``. What is learnt ends in an underscore. Inside a model,
    data are tokens and sites stand in the order in which they are noised; :class:`Schema` translates at the door.
    """

    alphabet: Any
    order: Any
    validation_fraction: float
    steps: int

    schema_: Schema
    history_: list[dict[str, float]]
    stopped_: str  # why training ended: steps, time, patience, interrupted, diverged; or "constant": nothing to learn
    device_: torch.device
    objective_: Objective

    # --- what a model writes ---------------------------------------------------------------------------------------

    @abstractmethod
    def _build(self) -> Objective:
        """Make the untrained objective for the fitted schema."""

    @abstractmethod
    def _draw(self, n: int, y: Tensor | None, clamp: tuple[Tensor, Tensor] | None, generator: Generator) -> Tensor:
        """Draw n rows of tokens; ``clamp`` is (values, given), each (1 or n, sites).

        y is None for a model without labels, and for one with labels only together with ``clamp``: which labels are
        likely then depends on what is given.
        """

    def _log_prob(self, x: Tensor, y: Tensor | None) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no exact likelihood; compare samples instead")

    def _elbo(self, x: Tensor, y: Tensor | None, generator: Generator) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no bound on its likelihood; compare samples instead")

    # --- fitting ---------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Symbols,
        y: Any = None,
        *,
        weights: Any = None,
        validation: Any = None,
        seed: int = 0,
        device: str | torch.device | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        max_steps: int | None = None,
        max_seconds: float | None = None,
        verbose: bool | None = None,
    ) -> Self:
        """Learn from X, (N, sites) of at most 256 symbols, and labels y (N,).

        ``weights`` are counts or importances of the rows; ``validation`` is X, (X, y) or (X, y, weights) to stop by
        instead of a held-back part; ``checkpoint`` is a folder to keep the state of a long run in, and ``resume`` goes
        on from there. Ends after ``max_steps`` or ``max_seconds``, when the validation score stops falling, or at Ctrl-C,
        which leaves a usable model.
        """
        schema, rows, held = learn_schema(X, y, weights, validation, alphabet=self.alphabet, order=self.order)
        settings = self.settings(max_steps, max_seconds)
        if not is_number(self.validation_fraction) or not 0 <= self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must be in [0, 1), got {self.validation_fraction!r}")
        if resume and checkpoint is None:
            raise ValueError("resume=True goes on from a checkpoint: name its folder with checkpoint=")
        place, start = devices.resolve(device), devices.checked_seed(seed)
        before = dict(vars(self))
        self.schema_, self.device_, self.history_, self.stopped_ = schema, place, [], "constant"
        try:
            self.objective_ = self._built()
            network = self.objective_.network
            needed = training_bytes(network, rows.x.numel(), settings.batch_size, self.objective_.bytes_per_example)
            memory.require(needed, place, "use a smaller batch_size or width")
            # Weights are drawn on the CPU, so that a seed means the same start on every device.
            network.to_empty(device="cpu").reset(torch.Generator().manual_seed(start))  # type: ignore[operator]
            network.to(place)
            if bool((schema.constant < 0).any()):
                self._train(rows, held, settings, start, checkpoint, resume, verbose)
        except Exception as error:
            # Training that diverges or cannot write a checkpoint leaves a usable model. Whatever else fails, a setting or
            # a file that is refused say, leaves the model as it was.
            if not isinstance(error, TrainingDiverged | OSError) or isinstance(error, FileExistsError):
                vars(self).clear()
                vars(self).update(before)
            raise
        return self

    def _train(
        self,
        rows: Rows,
        held: Rows | None,
        settings: Settings,
        seed: int,
        checkpoint: str | Path | None,
        resume: bool,
        verbose: bool | None,
    ) -> None:
        fingerprint = {
            "data": digest(rows, held),
            "model": json.dumps([type(self).__name__, plain(self.get_params())]),
            "seed": seed,
            "max_steps": settings.max_steps,
            "max_seconds": plain(settings.max_seconds),
            "device": self.device_.type,
        }
        if held is None:
            rows, held = split(rows, self.validation_fraction, generator=torch.Generator().manual_seed(seed))
        self.stopped_ = "interrupted"  # unless training comes to an end of its own
        try:
            self.stopped_ = train(
                self.objective_,
                rows.to(self.device_),
                None if held is None else held.to(self.device_),
                settings,
                generator=self._generator(seed),
                fingerprint=fingerprint,
                checkpoint=None if checkpoint is None else Path(checkpoint),
                resume=resume,
                verbose=verbose,
                history=self.history_,
            )
        except TrainingDiverged:
            self.stopped_ = "diverged"
            raise

    def settings(self, max_steps: int | None, max_seconds: float | None) -> Settings:
        """Return the settings of the loop: the constructor's, and what ``fit`` was told."""
        if max_steps is None and max_seconds is None:
            max_steps = self.steps
        names = ("batch_size", "learning_rate", "weight_decay", "warmup", "clip_norm", "average_decay", "patience")
        chosen = {name: getattr(self, name) for name in names}
        return Settings(max_steps=max_steps, max_seconds=max_seconds, **chosen)

    # --- using -----------------------------------------------------------------------------------------------------

    @property
    def space_(self) -> Space:
        """How many sites and states the data has."""
        return self._fitted().space

    @property
    def order_(self) -> tuple[int, ...]:
        """Return the user's site at each place of the order of noising."""
        return self._fitted().order

    def sample(self, n: int, y: Any = None, *, clamp: Any = None, seed: int | None = None) -> Any:
        """Draw n configurations, (n, sites) of the symbols and the kind of array that were fitted.

        y is one label for all or one for each; without it, labels are drawn by their frequency in the data. ``clamp``
        is a numpy masked array, (sites,) or (n, sites): masked entries are the model's to choose, the others are given.
        """
        schema = self._fitted()
        n, generator = positive_whole("n", n), self._generator(seed)
        given = None if clamp is None else schema.encode_clamp(clamp, n)
        labels = schema.encode_labels(y, n)
        if schema.labels is not None and labels is None and given is None:
            labels = schema.labels.draw(n, generator=generator)
        with torch.no_grad():
            tokens = self._draw(n, None if labels is None else labels.to(self.device_), given, generator)
        return schema.decode(tokens)

    def log_prob(self, X: Symbols, y: Any = None) -> np.ndarray:
        """Exact log-likelihood of each row in nats, (N,). Without y, a model with labels sums over them."""
        x = self._fitted().encode(X)
        terms = [np.log(weight) + self._log_prob(x, label).numpy() for label, weight in self._label_rows(y, len(x))]
        total: np.ndarray = np.logaddexp.reduce(terms, axis=0)
        return total

    def elbo(self, X: Symbols, y: Any = None, *, seed: int | None = None, draws: int = 4) -> Elbo:
        """Lower bound on the log-likelihood of each row in nats, with the standard error of its estimate over ``draws``.

        Without y, a model with labels bounds the sum over them.
        """
        x, generator = self._fitted().encode(X), self._generator(seed)
        return bound(lambda label: self._elbo(x, label, generator).numpy(), self._label_rows(y, len(x)), draws)

    def score(self, X: Symbols, y: Any = None) -> float:
        """Mean log-likelihood in nats, or its bound where no exact likelihood exists: scikit-learn's score."""
        try:
            return float(self.log_prob(X, y).mean())
        except NotImplementedError:
            return float(self.elbo(X, y, seed=0).value.mean())

    def label_terms(self, y: Any) -> list[tuple[Tensor | None, float]]:
        """Return the labels to condition on, (1,) tensors, and the probability of each: one for a given y, or all."""
        schema = self._fitted()
        if schema.labels is None or y is not None:
            label = schema.encode_labels(y, 1)
            return [(None if label is None else label.to(self.device_), 1.0)]
        frequencies = schema.labels.frequencies.tolist()
        return [(torch.tensor([k], device=self.device_), weight) for k, weight in enumerate(frequencies)]

    # --- files -----------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the model to a folder: ``config.json`` and ``model.safetensors``. A model saved there is replaced."""
        config = {
            "neurise": __version__,
            "model": type(self).__module__.rpartition(".")[2],
            "params": plain(self.get_params()),
            "schema": self._fitted().to_dict(),
            "history": self.history_,
            "stopped": self.stopped_,
        }
        save_folder(Path(path), config, self.objective_.network.state_dict())

    @classmethod
    def restored(cls, config: Mapping[str, Any], tensors: Mapping[str, Tensor], device: torch.device) -> Self:
        """Make a fitted model from what :func:`neurise.persistence.load_folder` read."""
        model = cls(**config["params"])
        model.schema_ = Schema.from_dict(config["schema"])
        model.history_, model.stopped_, model.device_ = config["history"], config["stopped"], device
        model.objective_ = model._built()
        model.objective_.network.to_empty(device=device).requires_grad_(False).load_state_dict(dict(tensors))
        return model

    # --- helpers ---------------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "objective_")

    def _fitted(self) -> Schema:
        if not self.__sklearn_is_fitted__():
            raise RuntimeError(f"this {type(self).__name__} is not fitted yet; call fit(X) first")
        return self.schema_

    def _label_rows(self, y: Any, n: int) -> list[tuple[Tensor | None, float]]:
        """Return the labels of n rows, as given; or every class for all of them, with its probability."""
        schema = self._fitted()
        if schema.labels is None or y is not None:
            labels = schema.encode_labels(y, n)
            return [(None if labels is None else labels.to(self.device_), 1.0)]
        return [(label.expand(n), weight) for label, weight in self.label_terms(None) if label is not None]

    def _built(self) -> Objective:
        with torch.device(
            "meta"
        ):  # shapes alone: how large the network is should be known before memory is taken for it
            return self._build()

    def _generator(self, seed: int | None) -> Generator:
        return devices.generator(seed, self.device_)
