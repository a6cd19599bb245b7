import pytest
import tiny
import torch
from torch import nn

from neurise import NeurISE, devices


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1500, "2 kB"), (45e6, "45 MB"), (3.21e9, "3.2 GB"), (5e12, "5000.0 GB")],
)
def test_sizes_are_written_as_a_person_would(size: float, text: str) -> None:
    assert devices.readable(size) == text


def test_training_takes_copies_of_the_weights_the_rows_and_a_batch() -> None:
    network = nn.Linear(10, 5)  # 55 parameters of 4 bytes
    assert devices.training_bytes(network, 1000, 64, 300) == memory.COPIES * 220 + 1000 + 64 * 300


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
    with pytest.raises(MemoryError, match="smaller batch_size"):
        model.fit(tiny.spins())
    assert not hasattr(model, "objective_")


def test_a_network_that_is_far_too_large_is_refused_before_it_is_made() -> None:
    with pytest.raises(MemoryError, match="smaller batch_size or width"):
        NeurISE(width=10**7).fit([[0, 1], [1, 0]])
