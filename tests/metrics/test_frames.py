"""Columns of data frames are compared by their names."""

import numpy as np
import pytest

from neurise.metrics import privacy, total_variation

pandas = pytest.importorskip("pandas")
pytest.importorskip("narwhals")


def test_columns_in_another_order_are_the_same_rows() -> None:
    rows = np.random.default_rng(0).integers([0, 3], [3, 6], (60, 2))  # no symbol is in both columns
    frame = pandas.DataFrame(rows, columns=["a", "b"])
    assert total_variation(frame, frame[["b", "a"]]) < 1e-9  # 1 where columns are compared by place
    assert privacy(frame, frame, frame[["b", "a"]]).nearer == 0
    with pytest.raises(ValueError, match=r"samples has the columns a, b, and .* has a, c"):
        total_variation(frame, frame.rename(columns={"b": "c"}))
