from typing import Any

import numpy as np
import pytest
import torch

from neurise import checks, devices

ABSENT = "cuda:99" if torch.cuda.is_available() else "cuda"


def test_a_device_is_found_by_name_or_taken_as_it_is() -> None:
    assert devices.resolve("cpu") == devices.resolve(torch.device("cpu")) == torch.device("cpu")
    assert devices.resolve(None).type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("device", ["abacus", ABSENT, "", 2.5])
def test_a_device_that_is_not_there_is_refused(device: Any) -> None:
    with pytest.raises(ValueError, match=f"device {device!r} cannot be used here: .+"):
        devices.resolve(device)


def numbers(seed: Any) -> list[float]:
    values: list[float] = torch.rand(8, generator=devices.generator(seed, torch.device("cpu"))).tolist()
    return values


def test_a_seed_gives_the_same_numbers_and_none_gives_fresh_ones() -> None:
    assert numbers(3) == numbers(np.int32(3)) != numbers(4)
    assert numbers(None) != numbers(None)


@pytest.mark.parametrize("seed", [-(2**63), -1, 0, 2**63 - 1, np.uint64(7)])
def test_whole_numbers_of_64_bits_are_seeds(seed: Any) -> None:
    assert checks.seed(seed) == seed
    numbers(seed)


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1, 1.0, "1", True, [1]])
def test_anything_else_is_not(seed: Any) -> None:
    with pytest.raises(ValueError, match=r"seed must be a whole number of at most 64 bits, got"):
        checks.seed(seed)
