"""What missing categorical cells of a table may be, by scikit-learn: forests that go round, and boosting column by column.

Every function takes a table with gaps, whose columns are categories or floats, and a seed, and returns the laws of the missing
cells of each categorical column, (cells, categories).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

TREES, ROUNDS = 100, 5
FEW = 50
"""Different values of a column up to which a forest takes them as classes."""


def categorical(table: pd.DataFrame) -> list[str]:
    """Return the names of the columns of categories."""
    return [column for column in table if isinstance(table[column].dtype, pd.CategoricalDtype)]


def by_frequencies(table: pd.DataFrame, seed: int) -> dict[str, np.ndarray]:
    """Answer with how often each category occurs in the column; each counts once more than it does."""
    found = {}
    for column in categorical(table):
        counts = table[column].value_counts(sort=False).to_numpy() + 1.0
        found[column] = np.tile(counts / counts.sum(), (int(table[column].isna().sum()), 1))
    return found


def by_boosting(table: pd.DataFrame, seed: int) -> dict[str, np.ndarray]:
    """Predict each column from all others by gradient boosting, which takes categories and gaps as they are."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    found = {}
    for column in categorical(table):
        others, target = table.drop(columns=column), table[column].cat.codes
        often = target.map(target.value_counts()) > 1  # a class of one row cannot be split for early stopping
        learns = (target >= 0) & often
        boosting = HistGradientBoostingClassifier(
            categorical_features="from_dtype", early_stopping=True, random_state=seed
        )
        boosting.fit(others[learns], target[learns])
        law = boosting.predict_proba(others[target < 0])
        found[column] = spread(law, boosting.classes_, len(table[column].cat.categories))
    return found


def by_forests(table: pd.DataFrame, seed: int) -> dict[str, np.ndarray]:
    """Fill all columns in turn with IterativeImputer: forests of classifiers for codes, of regressors for numbers.

    The laws are those of the forests of the last round.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    codes = pd.DataFrame(
        {c: table[c].cat.codes.where(table[c].notna()) if c in categorical(table) else table[c] for c in table}
    )
    imputer = IterativeImputer(
        forest_class()(seed), initial_strategy="most_frequent", max_iter=ROUNDS, skip_complete=True, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # codes of categories do not converge as numbers do
        filled = imputer.fit_transform(codes.to_numpy(float))
    last = {step.feat_idx: step for step in imputer.imputation_sequence_}
    found = {}
    for column in categorical(table):
        step = last[table.columns.get_loc(column)]
        forest = step.estimator.forest_
        law = forest.predict_proba(filled[table[column].isna().to_numpy()][:, step.neighbor_feat_idx])
        found[column] = spread(law, forest.classes_, len(table[column].cat.categories))
    return found


def spread(law: np.ndarray, classes: np.ndarray, count: int) -> np.ndarray:
    """Give categories that a classifier never saw probability zero."""
    found = np.zeros((len(law), count))
    found[:, np.asarray(classes).astype(int)] = law
    return found


def forest_class() -> Any:
    """Return an estimator that classifies columns of few whole numbers, and predicts the mean of others."""
    from sklearn.base import BaseEstimator
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    class Forest(BaseEstimator):
        def __init__(self, seed: int = 0) -> None:
            self.seed = seed

        def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
            whole = len(np.unique(y)) <= FEW and bool((y == np.round(y)).all())
            make = RandomForestClassifier if whole else RandomForestRegressor
            self.forest_ = make(TREES, random_state=self.seed, n_jobs=1).fit(X, y)
            return self

        def predict(self, X: np.ndarray) -> np.ndarray:
            return self.forest_.predict(X)

    return Forest
