from typing import Any

import numpy as np
import pytest
import tiny
import torch

from neurise import NeurISE, checks, devices

ABSENT = "cuda:99" if torch.cuda.is_available() else "cuda"


def test_a_device_is_found_by_name_or_taken_as_it_is() -> None:
    assert devices.resolve("cpu") == devices.resolve(torch.device("cpu")) == torch.device("cpu")
    assert devices.resolve(None).type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("device", ["abacus", ABSENT, "", 2.5])
def test_a_device_that_is_not_there_is_refused(device: Any) -> None:
    with pytest.raises(
        ValueError, match=f"device {device!r} cannot be used here: .+|device must be a name .* got {device!r}"
    ):
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


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1500, "2 kB"), (45e6, "45 MB"), (3.21e9, "3.2 GB"), (5e12, "5000.0 GB")],
)
def test_sizes_are_written_as_a_person_would(size: float, text: str) -> None:
    assert devices.readable(size) == text


def test_training_takes_copies_of_the_weights_the_rows_and_a_batch() -> None:
    assert devices.training_bytes(220, 1000, 64, 300) == devices.COPIES * 220 + 1000 + 64 * 300


def test_free_memory_is_known_here() -> None:
    free = devices.available_bytes(torch.device("cpu"))
    assert free is not None
    assert free > 2**20


def test_what_cannot_fit_is_refused_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "available_bytes", lambda device: 2 * 10**9)
    devices.require_memory(2 * 10**9, torch.device("cpu"), "use less")
    with pytest.raises(MemoryError, match=r"needs about 3\.0 GB of memory on cpu, and 2\.0 GB are free; use less"):
        devices.require_memory(3 * 10**9, torch.device("cpu"), "use less")


def test_where_nothing_is_known_of_memory_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "available_bytes", lambda device: None)
    devices.require_memory(10**30, torch.device("cpu"), "use less")


def test_training_that_cannot_fit_does_not_start() -> None:
    model = tiny.model(training__batch_size=10**13)
    with pytest.raises(MemoryError, match="smaller width, depth or training__batch_size"):
        model.fit(tiny.spins())
    assert not hasattr(model, "objective_")


def test_a_network_that_is_far_too_large_is_refused_before_it_is_made() -> None:
    with pytest.raises(MemoryError, match="smaller width, depth or training__batch_size"):
        NeurISE(width=10**7).fit([[0, 1], [1, 0]])
