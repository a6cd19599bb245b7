import copy
import json
import pickle

import pytest

from neurise.estimate import Estimate

WHOLE = Estimate(0.25, error=0.01, floor=0.2, units="nats")


def test_it_is_a_number() -> None:
    assert WHOLE == 0.25
    assert type(WHOLE + 1) is float
    assert f"{WHOLE:.3f}" == "0.250"
    assert json.loads(json.dumps({"value": WHOLE})) == {"value": 0.25}
    assert pytest.approx(0.25) == WHOLE


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["copy", "deep", "pickle"]
)
def test_a_copy_keeps_what_belongs_to_it(again: object) -> None:
    twin = again(WHOLE)  # type: ignore[operator]
    assert (twin, twin.error, twin.floor, twin.units) == (0.25, 0.01, 0.2, "nats")


def test_it_shows_what_it_knows() -> None:
    assert repr(WHOLE) == "0.25 ± 0.01 nats (floor 0.2)"
    assert f"{Estimate(0.5)}" == "0.5"
    assert Estimate(0.5).error is Estimate(0.5).floor is None
