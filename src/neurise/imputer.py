"""A transformer for scikit-learn that fills missing values by a model; scikit-learn is not imported."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from neurise import checks, discovery, shown
from neurise.frames import as_table, frame_kind
from neurise.modeling import partial_rows, sklearn_names
from neurise.modeling.estimator import Estimator
from neurise.modeling.model import Model

STRATEGIES = ("most_probable", "draw")
OUTPUTS = ("default", "pandas", "polars")


class Imputer(Estimator):
    r"""Fill missing values (NaN, None, masked) from what the rest of their row says about them.

    ``fit`` learns a model of the rows, gaps and all; ``transform`` fills the gaps of other rows by it. With o the values that
    are there, a missing value at column u is

    - the most probable one, :math:`\arg\max_a P(x_u = a \mid x_o)`, each by itself: the fewest errors, and the same at every
      call; or
    - with ``strategy="draw"`` drawn, all of a row together from :math:`P(x_m \mid x_o)`: filled rows then vary as real ones do,
      where the most probable values make columns look more certain than they are.

    >>> import numpy as np
    >>> from neurise import Imputer
    >>> X = np.array([[0, 0], [0, 0], [0, np.nan], [1, 1], [1, 1], [np.nan, 1]])
    >>> Imputer("independent").fit_transform(X).shape
    (6, 2)

    Args:
        model: a model, which is copied and left as it is; or the name of one.
        params: parameters for a model that is named, as ``set_params`` takes them.
        strategy: "most_probable" or "draw".
        random_state: a seed, or a generator of numpy's, for ``fit`` and for what ``transform`` draws.
    """

    model_: Model

    def __init__(
        self,
        model: Model | str = "neurise",
        params: Mapping[str, Any] | None = None,
        *,
        strategy: str = "most_probable",
        random_state: Any = 0,
    ) -> None:
        self.model, self.params, self.strategy, self.random_state = model, params, strategy, random_state

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments; ``deep`` adds those of the model as ``model__name``."""
        own = super().get_params(deep=False)
        if deep and isinstance(self.model, Model):
            own |= {f"model__{name}": value for name, value in self.model.get_params().items()}
        return own

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments, also those of a model as ``model__name``."""
        inner = {name.removeprefix("model__"): params.pop(name) for name in list(params) if name.startswith("model__")}
        super().set_params(**params)
        if inner:
            if not isinstance(self.model, Model):
                raise ValueError(f"model is the name {self.model!r}; give its parameters with params={inner!r}")
            self.model.set_params(**inner)
        return self

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Learn from rows with gaps. ``y`` is ignored, because rows to be filled come without it."""
        checks.one_of("strategy", self.strategy, STRATEGIES)
        model = self._made()
        self.model_ = model.fit(X, sample_weight=sample_weight, random_state=self.random_state)
        return self

    def transform(self, X: Any) -> Any:
        """Return X with its gaps filled, in the type of X, or in that which ``set_output`` asked for."""
        model = self._fitted()
        checks.one_of("strategy", self.strategy, STRATEGIES)
        seed = sklearn_names.seed_of(None, self.random_state, None) if self.random_state is not None else None
        draws = self.strategy == "draw"
        return self._in_container(
            model.impute(X, seed=seed) if draws else partial_rows.most_probable(model, X, seed=seed), X
        )

    def fit_transform(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Any:
        """Learn from rows, and fill their gaps."""
        return self.fit(X, y, sample_weight=sample_weight).transform(X)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what ``transform`` returns: "pandas" or "polars" frames, or, by "default", the type that it is given."""
        if transform is not None:
            self._output = checks.one_of("transform", transform, OUTPUTS)
        return self

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns, which are those that were given, or x0, x1, …"""
        model = self._fitted()
        known = getattr(model, "feature_names_in_", None)
        if input_features is None:
            return np.array([f"x{k}" for k in range(model.n_features_in_)], dtype=object) if known is None else known
        names = np.asarray(input_features, dtype=object)
        if names.shape != (model.n_features_in_,):
            raise ValueError(f"input_features should have length equal to number of features ({model.n_features_in_})")
        if known is not None and names.tolist() != known.tolist():
            raise ValueError("input_features is not equal to feature_names_in_")
        return names

    @property
    def n_features_in_(self) -> int:
        """Number of columns. Not set before ``fit``."""
        return self._learnt("n_features_in_")  # type: ignore[no-any-return]

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The names of the columns, where they were fitted with names."""
        return self._learnt("feature_names_in_")  # type: ignore[no-any-return]

    def _learnt(self, name: str) -> Any:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"this {type(self).__name__} is not fitted yet; call fit(X) first")
        return getattr(self.model_, name)

    def __repr__(self) -> str:
        given = {name: value for name, value in self.get_params(deep=False).items() if value != self.parameters()[name]}
        return f"{type(self).__name__}({', '.join(f'{name}={shown.value(value)}' for name, value in given.items())})"

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import TransformerTags  # only scikit-learn itself asks for this

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.transformer_tags = "transformer", TransformerTags(preserves_dtype=[])
        tags.input_tags.allow_nan = True
        return tags

    def _fitted(self) -> Model:
        if not self.__sklearn_is_fitted__():
            raise sklearn_names.not_fitted(type(self).__name__)
        return self.model_

    def _made(self) -> Model:
        """Make the model that is to be fitted: what was given stays as it is."""
        if isinstance(self.model, str):
            made: Model = discovery.find("neurise.models", self.model)()
            return made.set_params(**(self.params or {}))
        if not isinstance(self.model, Model):
            raise ValueError(f"model must be a model of neurise's or the name of one, got {self.model!r}")
        if self.params is not None:
            raise ValueError("params are for a model that is named; a model has its own: set_params(model__width=…)")
        return type(self.model)().set_params(**self.model.flat_params())

    def _in_container(self, filled: Any, X: Any) -> Any:
        """Put rows into the frame that was asked for, of this transformer or of scikit-learn for all of them."""
        sklearn: Any = sys.modules.get("sklearn")
        usual = "default" if sklearn is None else sklearn.get_config()["transform_output"]
        wanted = vars(self).get("_output", usual)
        if wanted == "default" or type(filled).__module__.partition(".")[0] == wanted:
            return filled
        from neurise.extras import need

        names, rows = self.get_feature_names_out().tolist(), filled
        if frame_kind(filled) is not None:  # its columns may stand in another order than those that were fitted
            rows = as_table(filled)
            names = list(rows.names)
        rows, frames = np.asarray(rows), need(wanted)
        if wanted == "polars":
            return frames.DataFrame({name: list(column) for name, column in zip(names, rows.T, strict=True)})
        return frames.DataFrame(rows, columns=names, index=getattr(X, "index", None))
