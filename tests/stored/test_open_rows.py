"""Rows in files larger than memory: the same law is learnt, from a bounded number of rows at a time."""

from __future__ import annotations

import signal
import time
import weakref
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tiny
import torch
from pyarrow import parquet as pq
from steps import replace_steps

import neurise
from neurise.stored import shuffled, source
from neurise.stored.levels import level_of_share, levels
from neurise.training import loop

STATES, SITES, ROWS = 3, 4, 100_000
LAW = np.random.default_rng(5).dirichlet(np.full(STATES**SITES, 0.3))


def sorted_rows(n: int = ROWS) -> np.ndarray:
    """Rows in order: what stands together in a file is alike, so that only mixing across files gives fair batches."""
    index = np.sort(np.random.default_rng(0).choice(len(LAW), n, p=LAW))
    return np.stack([index // STATES ** (SITES - 1 - k) % STATES for k in range(SITES)], axis=1).astype(np.uint8)


def write(folder: Path, rows: np.ndarray, files: int = 4, group: int = 2500, **beside: np.ndarray) -> Path:
    folder.mkdir(exist_ok=True)
    for number, part in enumerate(np.array_split(np.arange(len(rows)), files)):
        columns = {f"s{k}": rows[part, k] for k in range(rows.shape[1])}
        table = pa.table(columns | {name: values[part] for name, values in beside.items()})
        pq.write_table(table, folder / f"part-{number}.parquet", row_group_size=group)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("rows"), sorted_rows())


@pytest.fixture
def small_mixes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffled, "MIXED_TOKENS", 10_000 * SITES)
    monkeypatch.setattr(source, "SAMPLED", 3000)
    monkeypatch.setattr(source, "HELD", 2000)


def fit(data: Any, **options: Any) -> Any:
    model = neurise.NeurISE(width=48, members=1).set_params(training__batch_size=512, training__learning_rate=5e-3)
    return model.fit(data, **{"max_steps": 200, "verbose": False, **options})


def distance(model: Any) -> float:
    return float(0.5 * np.abs(neurise.exact.law(model).numpy() - LAW).sum())


@pytest.mark.slow
@pytest.mark.usefixtures("small_mixes")
def test_the_law_is_learnt_from_sorted_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffled, "MIXED_TOKENS", 15_000 * SITES)  # seven mixes, each a uniform sample
    rows = sorted_rows()
    model = fit(neurise.open_rows(folder))
    in_memory = fit(rows)
    assert distance(model) < distance(in_memory) + 0.02 < distance(neurise.Independent().fit(rows)) / 3
    assert model.schema_.count == ROWS
    assert model.score(neurise.open_rows(folder)) == pytest.approx(model.score(rows))
    np.testing.assert_allclose(model.log_prob(neurise.open_rows(folder)), model.log_prob(rows))


class Live:
    """Counts rows that are in memory."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def __call__(self, genuine: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Watch the rows that a function returns."""

        def call(*arguments: Any, **options: Any) -> Any:
            found = genuine(*arguments, **options)
            rows = getattr(found, name)
            self.now += len(rows)
            self.most = max(self.most, self.now)
            weakref.finalize(rows, self._gone, len(rows))
            return found

        return call

    def _gone(self, count: int) -> None:
        self.now -= count


@pytest.mark.usefixtures("small_mixes")
def test_few_rows_are_in_memory_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live, stored = Live(), neurise.open_rows(folder)
    monkeypatch.setattr(stored.reader, "read", live(stored.reader.read, "X"))
    schema, rows, held = stored.learn(None, None, None, alphabet=None, order=None, fraction=0.1, seed=0, verbose=False)
    assert held is not None
    assert (len(rows), len(held), schema.count) == (3000, 2000, ROWS)
    assert live.most <= 2 * 2500  # one block, while the one before it is let go
    monkeypatch.setattr(shuffled, "_joined", live(shuffled._joined, "x"))
    assert rows.stream is not None
    live.most = live.now = 0
    for number in range(30):
        rows.stream.chunk(number, 4096)
    # The rows of a mix as they are read; chunks, of two mixes at most; two blocks of a file.
    assert 9000 <= live.most <= 10_000 + 40 + 2 * 4096 + 2 * 2500


@pytest.mark.usefixtures("small_mixes")
def test_every_row_comes_once_per_epoch_in_another_order(folder: Path) -> None:
    stored = neurise.open_rows(folder)
    _, rows, held = stored.learn(None, None, None, alphabet=None, order=None, fraction=0.1, seed=3, verbose=False)
    stream = rows.stream
    assert stream is not None
    assert held is not None
    size = len(stream)
    assert size == ROWS - 2000
    first, second = (stream.chunk(epoch, size).x for epoch in range(2))
    place = torch.tensor([27, 9, 3, 1])
    everything = torch.from_numpy(np.bincount(sorted_rows() @ np.array([27, 9, 3, 1]), minlength=81))
    learnt = everything - torch.bincount((held.x * place).sum(1), minlength=81)
    for epoch in (first, second):
        assert torch.equal(torch.bincount((epoch * place).sum(1), minlength=81), learnt)
    assert not torch.equal(first, second)
    # The files are sorted, and every mix has rows of 32 of the 40 pieces, from all files. The first site has three symbols, each
    # in pieces of its own: a batch of 1000 without mixing would hold one of them alone.
    shares = (first[:98_000, 0] == 0).double().view(98, 1000).mean(1)
    assert float(((shares == 0) | (shares == 1)).double().mean()) < 0.3
    # A chunk is the same whatever was read before it, so that a run that was stopped goes on with the same rows.
    again = neurise.open_rows(folder)
    other = again.learn(None, None, None, alphabet=None, order=None, fraction=0.1, seed=3, verbose=False)[1].stream
    assert other is not None
    assert torch.equal(other.chunk(17, 5000).x, torch.cat([stream.chunk(n, 1000).x for n in range(85, 90)]))


def test_weights_labels_and_order_are_those_of_the_files(tmp_path: Path) -> None:
    rows, n = sorted_rows(2000), 2000
    label = np.where(rows[:, 0] > 0, "up", "down")
    count = np.arange(n) % 4
    stored = neurise.open_rows(write(tmp_path / "rows", rows, 3, 150, label=label, count=count))
    order = [2, 0, 3, 1]
    schema, own, held = stored.learn(None, None, None, alphabet=None, order=order, fraction=0.2, seed=0, verbose=False)
    expected = neurise.Independent(order=order).fit(rows, label, weights=count)
    assert schema.count == expected.schema_.count
    np.testing.assert_allclose(schema.labels.frequencies, expected.schema_.labels.frequencies)  # type: ignore[union-attr]
    assert schema.order == tuple(order)
    assert own.stream is not None
    assert held is not None
    epoch = own.stream.chunk(0, len(own.stream))
    assert epoch.y is not None
    ups = Counter(epoch.y.tolist())[1] / len(epoch.y)
    learnt = (own.y == 1).double() @ own.weights / own.weights.sum()  # type: ignore[operator,union-attr]
    assert ups == pytest.approx(float(learnt), abs=3 * len(stored.reader.pieces) / len(epoch.y))
    masses = {0: 0.0}
    for symbol in range(3):
        masses[symbol] = float((own.x[:, 1] == symbol).double() @ own.weights / own.weights.sum())  # type: ignore[operator,union-attr]
        share = float((epoch.x[:, 1] == symbol).double().mean())
        assert share == pytest.approx(masses[symbol], abs=3 * len(stored.reader.pieces) / len(epoch.y))
    turned = own.stream.in_order([3, 2, 1, 0]).chunk(0, 100)
    assert torch.equal(turned.x, epoch.x[:100, [3, 2, 1, 0]])


class Stopped(Exception):
    pass


def test_a_stopped_run_goes_on_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = write(tmp_path / "rows", sorted_rows(3000), 3, 300)
    monkeypatch.setattr(shuffled, "MIXED_TOKENS", 700 * SITES)
    model = tiny.model(training__batch_size=32)
    whole = tiny.model(training__batch_size=32).fit(neurise.open_rows(place), max_steps=40, verbose=False)

    def stepping(state: Any, genuine: Any) -> Any:
        if state.step == 27:
            raise Stopped
        return genuine()

    options: dict[str, Any] = {"max_steps": 40, "verbose": False, "checkpoint": tmp_path / "state"}
    with monkeypatch.context() as patch:
        patch.setattr(loop, "CHECKPOINT_SHARE", 1e9)
        replace_steps(patch, stepping)
        with pytest.raises(Stopped):
            model.fit(neurise.open_rows(place), **options)
    model.fit(neurise.open_rows(place), resume=True, **options)
    assert tiny.same_weights(model, whole)
    write(place, sorted_rows(3000)[::-1], 3, 300)
    with pytest.raises(ValueError, match="data"):
        tiny.model(training__batch_size=32).fit(neurise.open_rows(place), resume=True, **options)


def test_an_interrupted_run_leaves_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = write(tmp_path / "rows", sorted_rows(600), 2, 100)

    def stepping(state: Any, genuine: Any) -> Any:
        if state.step == 5:
            signal.raise_signal(signal.SIGINT)
        return genuine()

    replace_steps(monkeypatch, stepping)
    model = tiny.model().fit(neurise.open_rows(place), max_steps=40, verbose=False)
    assert model.stopped_ == "interrupted"
    assert model.sample(5, seed=0).shape == (5, SITES)


@pytest.mark.parametrize("ending", [".npy", ".arrow", ".feather", ".parquet"])
def test_every_kind_of_file_gives_the_same_model(tmp_path: Path, ending: str) -> None:
    rows, place = sorted_rows(500), tmp_path / f"rows{ending}"
    table = pa.table({f"s{k}": rows[:, k] for k in range(SITES)})
    if ending == ".npy":
        np.save(place, rows)
    elif ending in (".arrow", ".feather"):  # Feather is the same
        with pa.ipc.new_file(place, table.schema) as sink:
            sink.write_table(table, max_chunksize=100)
    else:
        pq.write_table(table, place)
    stored = neurise.open_rows(place)
    assert repr(stored) == "<500 rows of 4 sites in 1 file>"
    assert neurise.Independent().fit(stored).score(rows) == pytest.approx(neurise.Independent().fit(rows).score(rows))
    assert len(stored.as_holding(100).X) == 100


def mixed_table(n: int = 400) -> pa.Table:
    """Columns of five kinds, with alphabets of unequal size."""
    rng = np.random.default_rng(0)
    colour = rng.integers(0, 3, n)
    words = pa.array(np.array(["red", "green", "blue"])[colour].tolist())
    size = np.where(rng.random(n) < 0.8, colour, rng.integers(0, 5, n))
    sizes = pa.DictionaryArray.from_arrays(pa.array(size.astype(np.int8)), pa.array(["xs", "s", "m", "l", "xl"]))
    return pa.table(
        {
            "colour": words,
            "size": sizes,
            "rooms": pa.array(rng.integers(1, 8, n).astype(np.int16)),
            "half": pa.array(rng.integers(0, 2, n) * 0.5),
            "sold": pa.array((rng.random(n) < 0.4).tolist()),
        }
    )


@pytest.mark.filterwarnings("ignore:.*get_categories")
def test_columns_have_alphabets_of_their_own(tmp_path: Path) -> None:
    table = mixed_table()
    pq.write_table(table.slice(0, 250), tmp_path / "a.parquet", row_group_size=60)
    pq.write_table(table.slice(250), tmp_path / "b.parquet", row_group_size=60)
    stored = neurise.open_rows(tmp_path)
    model, expected = neurise.Independent().fit(stored), neurise.Independent().fit(table)
    assert model.space_.sizes == expected.space_.sizes == (3, 5, 7, 2, 2)
    np.testing.assert_allclose(model.log_prob(table), expected.log_prob(table))
    np.testing.assert_allclose(model.log_prob(stored), expected.log_prob(table))
    drawn = model.sample(20, seed=0)
    assert drawn.schema.names == table.schema.names
    assert drawn["colour"].type == table["colour"].type
    _, rows, _ = stored.learn(None, None, None, alphabet=None, order=None, fraction=0.0, seed=0, verbose=False)
    assert rows.stream is not None
    found = model.schema_.encode(model.schema_.decode(rows.stream.chunk(0, 400).x))
    everything = model.schema_.encode(table)
    assert sorted(map(tuple, found.tolist())) == sorted(map(tuple, everything.tolist()))
    less = neurise.open_rows(tmp_path, drop_column="half,sold", columns=None)
    assert less.reader.names == ["colour", "size", "rooms"]
    with pytest.raises(ValueError, match="cuts 'rooms' into bins"):
        neurise.Independent(alphabet={"rooms": SimpleNamespace(cut=None)}).fit(stored)


@pytest.mark.filterwarnings("ignore:.*get_categories")
def test_an_unknown_symbol_is_named_by_the_schema(tmp_path: Path) -> None:
    table = mixed_table()
    model = neurise.Independent().fit(table.filter(pa.array(np.array(table["rooms"].to_pylist()) < 7)))
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"7 at row .* of the column 'rooms'"):
        model.score(neurise.open_rows(tmp_path / "a.parquet"))


def test_own_validation_rows_are_used(tmp_path: Path) -> None:
    place, rows = write(tmp_path / "rows", sorted_rows(600), 2, 100), sorted_rows(90)
    model = tiny.model().fit(neurise.open_rows(place), validation=rows, max_steps=10, verbose=False)
    assert "validation" in model.history_[-1]
    with pytest.raises(ValueError, match="label_column="):
        tiny.model().fit(neurise.open_rows(place), np.zeros(600))


def test_the_share_that_is_set_apart_is_met() -> None:
    for rows, wanted in ((1, 0), (10, 1), (1000, 137), (1000, 1000)):
        below = level_of_share(rows, wanted, seed=7)
        assert int((levels(0, rows, 7) < below).sum()) == wanted
    u = levels(0, 100_000, 1)
    assert np.array_equal(u[40:60], levels(40, 60, 1))
    # Kolmogorov's distance of 10^5 uniform numbers exceeds 2 / sqrt(n) once in 10^3 times.
    assert np.abs(np.sort(u) - (np.arange(100_000) + 0.5) / 100_000).max() < 2 / 100_000**0.5
    assert abs(np.corrcoef(u, levels(0, 100_000, 2))[0, 1]) < 4 / 100_000**0.5


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda p: neurise.open_rows(p / "none"), "no file or folder"),
        (lambda p: neurise.open_rows(p / "*.npy"), r"no file that ends in .parquet"),
        (lambda p: neurise.open_rows(p, label_column="kind"), "no column 'kind' \\(label_column\\); it has 's0'"),
        (lambda p: neurise.open_rows(p, drop_column="s9"), "no column 's9' \\(drop_column\\)"),
        (lambda p: neurise.open_rows(p, columns=["s0", "t"]), "no column 't' \\(columns\\)"),
        (lambda p: neurise.open_rows(p, drop_column="s0,s1,s2,s3"), "no columns besides"),
        (lambda p: neurise.open_rows(3), "a file, a folder, a pattern or a list of files; got 3"),
        (lambda p: neurise.open_rows(p / "part-0.parquet" / "x"), "no file or folder"),
    ],
)
def test_what_cannot_be_opened_is_named(folder: Path, make: Callable[[Path], Any], told: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=told):
        make(folder)


def test_what_is_wrong_inside_is_named(tmp_path: Path) -> None:
    def parquet(name: str, **columns: Any) -> Path:
        (tmp_path / name).mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), tmp_path / name / "a.parquet")
        return tmp_path / name

    def learn(place: Path, **options: Any) -> Any:
        return neurise.Independent().fit(neurise.open_rows(place, **options))

    with pytest.raises(ValueError, match="column 'id' has more than 256 different values"):
        learn(parquet("many", id=np.arange(300), b=np.arange(300) % 2))
    with pytest.raises(ValueError, match="column 'b', row 1: a value is missing"):
        learn(parquet("gap", a=[1, 2], b=[1, None]))
    with pytest.raises(ValueError, match="column 'b' holds list"):
        learn(parquet("nested", a=[1, 2], b=[[1], [2]]))
    with pytest.raises(ValueError, match="count is -1"):
        learn(parquet("counted", a=[1, 2], count=[1, -1]))
    with pytest.raises(ValueError, match="has no rows"):
        learn(parquet("empty", a=np.zeros(0, int)))
    other = parquet("other", a=[1, 2])
    pq.write_table(pa.table({"c": [1]}), other / "b.parquet")
    with pytest.raises(ValueError, match=r"lacks \['a'\], and has \['c'\] besides"):
        learn(other)
    np.save(other / "c.npy", np.zeros((2, 2)))
    with pytest.raises(ValueError, match="are of two kinds"):
        learn(other)
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(ValueError, match=r"damaged.parquet is damaged, cut short or no .parquet"):
        learn(tmp_path / "damaged.parquet")
    (tmp_path / "damaged.npy").write_bytes(b"\x93NUMPY\x01")
    with pytest.raises(ValueError, match="damaged"):
        learn(tmp_path / "damaged.npy")
    np.save(tmp_path / "flat.npy", np.zeros(3))
    with pytest.raises(ValueError, match="must hold a matrix"):
        learn(tmp_path / "flat.npy")
    np.save(tmp_path / "rows.npy", np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"label_column is for .parquet"):
        neurise.open_rows(tmp_path / "rows.npy", label_column="a")
    (tmp_path / "by" / "year=3").mkdir(parents=True)
    pq.write_table(pa.table({"a": [1]}), tmp_path / "by" / "year=3" / "a.parquet")
    with pytest.raises(ValueError, match="named after a value"):
        neurise.open_rows(tmp_path / "by")
    assert len(neurise.open_rows(str(tmp_path / "by" / "**" / "*.parquet"))) == 1


def test_several_threads_may_read_at_once(folder: Path) -> None:
    """A training that has ended may read ahead while the same rows are scored; an open Parquet file is not for two threads."""
    stored = neurise.open_rows(folder)
    inside, together = [0], [0]
    opened = stored.reader._last[1]  # type: ignore[attr-defined]

    def read(number: int, columns: list[str]) -> Any:
        inside[0] += 1
        together[0] = max(together[0], inside[0])
        time.sleep(0.01)
        inside[0] -= 1
        return genuine(number, columns)

    genuine, opened.read = opened.read, read
    first = [piece for piece in stored.reader.pieces if piece.file == 0][:6]
    with ThreadPoolExecutor(3) as threads:
        assert [len(block) for block in threads.map(stored.reader.read, first)] == [2500] * 6
    assert together[0] == 1
