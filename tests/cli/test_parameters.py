"""What is typed as yes or no is so, or not; anything else is refused."""

from __future__ import annotations

from typing import Any

import pytest

from neurise import D3PM, NeurISE
from neurise.cli._options import typed
from neurise.cli._parameters import collect

YES = ("true", "True", "TRUE", "yes", "on", "On")
NO = ("false", "False", "no", "No", "off", "OFF")


@pytest.mark.parametrize(
    ("kind", "name"), [(D3PM, "offset"), (NeurISE, "calibrate"), (NeurISE, "architecture__pairwise")]
)
@pytest.mark.parametrize(("text", "meant"), [*((text, True) for text in YES), *((text, False) for text in NO)])
def test_words_of_models(kind: Any, name: str, text: str, meant: bool) -> None:
    assert collect(kind, {}, [f"{name}={text}"]) == {name: meant}


@pytest.mark.parametrize("text", ["maybe", "5", "NaN", "yess", '""', "[]"])
@pytest.mark.parametrize("name", ["calibrate", "chain__hide_noised"])
def test_other_words_of_models_are_refused(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be"):
        collect(NeurISE, {}, [f"{name}={text}"])


@pytest.mark.parametrize(("text", "meant"), [*((text, True) for text in YES), *((text, False) for text in NO)])
def test_words_of_data_sets(text: str, meant: bool) -> None:
    def made(wraps: bool = True) -> None: ...

    made.__annotations__["wraps"] = bool
    assert typed("made", made, {"wraps": text}) == {"wraps": meant}
    with pytest.raises(ValueError, match="wraps must be true or false; got 'perhaps'"):
        typed("made", made, {"wraps": "perhaps"})
