"""Values that no file should hold, and that nothing may be brought down by."""

from typing import Any

HOSTILE: dict[str, Any] = {
    "nothing": None,
    "negative": -5,
    "huge": 10**18,
    "beyond 64 bits": 10**30,
    "a fraction": 0.3,
    "not a number": float("nan"),
    "infinite": float("inf"),
    "text": "x",
    "empty text": "",
    "an empty list": [],
    "a list": [0, 0, 0],
    "a deep list": [[[[0]]]],
    "an object": {"x": 1},
}
