"""Rows that are packed, or too many for the device, are the same rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import torch
from steps import replace_steps

from neurise.modeling import trained
from neurise.modeling.model import Model
from neurise.rows import Batch, Rows, Source
from neurise.training import loop, placing, streamed
from neurise.training.packed import PackedRows, pack, packed_bytes, unpack
from neurise.training.streamed import DrawnChunks, StreamedRows

CPU = torch.device("cpu")


def source(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("states", [1, 2, 3, 4, 5, 16, 17, 256])
@pytest.mark.parametrize("sites", [1, 2, 3, 7, 8, 9, 17])
def test_packing_loses_nothing(states: int, sites: int) -> None:
    x = torch.randint(states, (50, sites), generator=source()).to(torch.uint8)
    x[0] = states - 1
    packed = pack(x, states)
    bits = 1 if states <= 2 else 2 if states <= 4 else 4 if states <= 16 else 8
    assert packed.shape == (50, -(-sites * bits // 8))
    assert packed.dtype == torch.uint8
    assert packed.shape[1] == packed_bytes(sites, states)
    assert torch.equal(unpack(packed, sites, states), x)
    assert torch.equal(unpack(packed.reshape(5, 10, -1), sites, states), x.reshape(5, 10, sites))  # of many models


def numbered(n: int, *, weighted: bool = False) -> Rows:
    """Rows that know their number: row i is i in bits, and its label is i."""
    x = (torch.arange(n)[:, None] >> torch.arange(10) & 1).to(torch.uint8)
    return Rows(x, torch.arange(n), torch.arange(n).double() % 5 if weighted else None)


@pytest.mark.parametrize("weighted", [False, True])
def test_packed_rows_give_the_same_draws(weighted: bool) -> None:
    rows = numbered(100, weighted=weighted)
    packed = PackedRows.of(rows, states=2)
    assert packed.num_bytes == 200
    assert len(packed) == 100
    for method in ("draw", "spread"):
        ours, theirs = (getattr(kind, method)(300, generator=source(1)) for kind in (packed, rows))
        assert same(ours, theirs)


def same(ours: Batch, theirs: Batch) -> bool:
    """Whether two batches are equal, in what they lack too."""
    return all(a is b is None or torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))  # type: ignore[arg-type]


def stream(rows: Rows, batch_size: int = 20, seed: int = 0) -> StreamedRows:
    return StreamedRows(DrawnChunks(rows, seed), batch_size, CPU)


def taken(rows: Source, steps: Any, n: int = 20) -> list[list[int]]:
    """Labels of the rows of some steps, after a check that they belong to their rows."""
    seen = []
    for step in steps:
        rows.advance(step)
        x, y, _, _ = rows.draw(n, generator=source())
        assert y is not None
        assert torch.equal((x.long() << torch.arange(10)).sum(1), y)
        seen.append(y.tolist())
    return seen


def test_the_rows_of_a_step_follow_from_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "CHUNK_STEPS", 3)
    whole = taken(stream(numbered(1000)), range(10))
    assert len({tuple(labels) for labels in whole}) == 10
    assert taken(stream(numbered(1000)), range(4, 10)) == whole[4:]  # a run that goes on
    assert taken(stream(numbered(1000)), [7, 2, 2, 9]) == [whole[step] for step in (7, 2, 2, 9)]
    assert taken(stream(numbered(1000), seed=1), range(10)) != whole


@pytest.mark.parametrize("weighted", [False, True])
def test_streamed_rows_come_in_proportion_to_their_weight(monkeypatch: pytest.MonkeyPatch, weighted: bool) -> None:
    monkeypatch.setattr(streamed, "CHUNK_STEPS", 7)
    rows = numbered(10, weighted=weighted)
    labels = torch.tensor(taken(stream(rows, 100), range(200), 100)).flatten()
    share = torch.full((10,), 0.1) if rows.weights is None else rows.weights / rows.weights.sum()
    counts, n = torch.bincount(labels, minlength=10), len(labels)
    # Binomial(n, share): five standard deviations are exceeded once in 10^6.
    assert ((counts - n * share).abs() <= 5 * (n * share * (1 - share)).sqrt()).all()


def test_validation_rows_are_spread_as_if_they_were_here() -> None:
    rows = numbered(50, weighted=True)
    ours, theirs = (kind.spread(70, generator=source(2)) for kind in (stream(rows), rows))
    assert same(ours, theirs)


def test_what_is_drawn_stays_at_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    # A captured step reads the same memory every time, whatever chunk is there.
    monkeypatch.setattr(streamed, "CHUNK_STEPS", 2)
    rows = stream(numbered(1000))
    places = set()
    for step in range(8):
        rows.advance(step)
        places.add((rows._here.x.data_ptr(), rows._first.data_ptr()))
    assert len(places) == 1


def test_a_batch_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="in batches of 20, not 21"):
        stream(numbered(100)).draw(21, generator=source())


@pytest.mark.parametrize(("room", "kind"), [(None, Rows), (1000, Rows), (999, PackedRows)])
def test_rows_are_kept_as_they_are_where_there_is_room(room: int | None, kind: type) -> None:
    rows = Rows(numbered(100).x)  # 1000 bytes, 200 packed
    assert type(placing.place(rows, 2, CPU, batch_size=8, seed=0, room=room)) is kind


@pytest.mark.parametrize(("labels", "room", "streams"), [(False, 200, False), (False, 199, True), (True, 999, True)])
def test_rows_that_do_not_fit_even_packed_are_streamed(labels: bool, room: int, streams: bool) -> None:
    rows = Rows(numbered(100).x, torch.arange(100) if labels else None)  # labels take 800 bytes more
    assert placing.is_streamed(placing.place(rows, 2, CPU, batch_size=8, seed=0, room=room)) == streams


def test_how_much_room_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neurise.devices.available_bytes", lambda device: 1000)
    assert placing.room_for_rows(CPU, 10) is None  # they are there already
    assert placing.room_for_rows(torch.device("cuda"), 300) == 500
    assert placing.room_for_rows(torch.device("cuda"), 900) == 0
    monkeypatch.setattr("neurise.devices.available_bytes", lambda device: None)
    assert placing.room_for_rows(torch.device("cuda"), 900) is None


def fitted(room: int | None, monkeypatch: pytest.MonkeyPatch, **fit: Any) -> Model:
    with monkeypatch.context() as patch:
        patch.setattr(trained, "LEFT_ALONE", ())  # on a CPU too
        patch.setattr(placing, "room_for_rows", lambda device, others: room)
        X = fit.pop("X", tiny.spins(100, sites=9))
        return tiny.model().fit(X, np.arange(100) % 2, weights=np.arange(100) % 3, max_steps=40, **fit)


def test_a_model_learns_the_same_from_packed_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: list[type] = []
    genuine = loop.train

    def noting(objective: Any, rows: Any, *args: Any, **kwargs: Any) -> str:
        kinds.append(type(rows))
        return genuine(objective, rows, *args, **kwargs)

    monkeypatch.setattr("neurise.modeling.trained.train", noting)
    plain = fitted(None, monkeypatch)
    monkeypatch.setattr(placing, "place", lambda rows, room, states, **_: PackedRows.of(rows, states))
    packed = fitted(None, monkeypatch)
    assert kinds == [Rows, PackedRows]
    assert tiny.same_weights(packed, plain)


def test_a_model_learns_from_streamed_rows_and_goes_on_bit_for_bit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(streamed, "CHUNK_STEPS", 3)
    monkeypatch.setattr(loop, "CHECKPOINT_SHARE", 1e9)
    whole = fitted(0, monkeypatch)
    assert whole.history_[-1]["loss"] < whole.history_[0]["loss"]

    def stop(state: Any, genuine: Any) -> torch.Tensor:
        if state.step == 25:
            raise InterruptedError
        step: torch.Tensor = genuine()
        return step

    with monkeypatch.context() as patch:
        replace_steps(patch, stop)
        with pytest.raises(InterruptedError):
            fitted(0, monkeypatch, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="rows was 'streamed', is None"):
        fitted(None, monkeypatch, checkpoint=tmp_path, resume=True)
    assert tiny.same_weights(fitted(0, monkeypatch, checkpoint=tmp_path, resume=True), whole)


def test_a_memory_map_is_data_too(tmp_path: Path) -> None:
    X = tiny.spins(100, sites=9).astype(np.int8)
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert isinstance(mapped, np.memmap)
    assert tiny.same_weights(tiny.model().fit(mapped), tiny.model().fit(X))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gets_the_rows_that_the_host_would_get(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "CHUNK_STEPS", 3)
    rows, device = numbered(1000), torch.device("cuda")
    there, here = (PackedRows(StreamedRows(DrawnChunks(rows, 0), 20, place), 10, 256) for place in (device, CPU))
    for step in range(10):
        for kind in (there, here):
            kind.advance(step)
        ours, theirs = (kind.draw(20, generator=torch.Generator(kind.device)) for kind in (there, here))
        assert all(
            torch.equal(a.cpu(), b) for a, b in zip(ours, theirs, strict=True) if a is not None and b is not None
        )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_captured_step_learns_from_streamed_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "CHUNK_STEPS", 3)
    there, here = (fitted(0, monkeypatch, device=device) for device in ("cuda", "cpu"))
    # The rows are the same, the noise is not; both come from the uniform start to about the same loss.
    assert there.history_[-1]["loss"] == pytest.approx(here.history_[-1]["loss"], abs=0.05)
