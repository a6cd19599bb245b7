import json
from typing import Any

import numpy as np
import pytest
import torch

from neurise.modeling.estimator import plain


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("ACGT-", "ACGT-"),
        (0.1, 0.1),
        (np.float64(0.1), 0.1),
        (np.int8(3), 3),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (torch.tensor([1.5, 2.5]), [1.5, 2.5]),
        (range(3), [0, 1, 2]),
        ((1, (2, np.int64(3))), [1, [2, 3]]),
        ({1: np.array([True])}, {"1": [True]}),
        (b"AC", "AC"),
        ([b"A", b"\xe9"], ["A", "é"]),
        (np.array([b"A", b"C"]), ["A", "C"]),
    ],
)
def test_arguments_of_any_type_fit_into_json(value: Any, expected: Any) -> None:
    assert plain(value) == expected
    assert json.loads(json.dumps(plain(value))) == expected
