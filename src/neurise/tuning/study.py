"""Where trials are kept: a journal file, or a PostgreSQL database that many machines share."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from neurise.extras import need
from neurise.tuning.task import Task

if TYPE_CHECKING:
    import optuna
    from optuna.storages import BaseStorage

IDENTITY = "neurise"
"""The attribute of a study that says what its trials are of."""
UNPRUNED = 5
"""So many trials come to their end before any is compared with them, and given up."""
PATIENCE = 10
"""Seconds after which a server that does not answer is not there."""
LONGEST = 80
HEARTBEAT, GRACE = 60, 300
"""Seconds between two signs of life of a trial in a database, and without any before it counts as dead."""


def open_study(storage: str, name: str, task: Task) -> optuna.Study:
    """Make a study, or go on with the one of that name; one that was made for another task is refused."""
    need("optuna", "hpo")
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        storage=open_storage(storage),
        study_name=name,
        load_if_exists=True,
        direction="minimize",
        pruner=optuna.pruners.MedianPruner(n_startup_trials=UNPRUNED, n_warmup_steps=1),
    )
    _insist(study, task, storage)
    return study


def _insist(study: optuna.Study, task: Task, storage: str) -> None:
    made_for, wanted = study.user_attrs.get(IDENTITY), json.loads(json.dumps(task.identity()))
    if made_for is None and not study.get_trials(deepcopy=False):
        study.set_user_attr(IDENTITY, wanted)
        return
    made_for = made_for or {}
    different = [key for key, value in wanted.items() if made_for.get(key) != value]
    if different:
        changes = "; ".join(_change(key, made_for.get(key), wanted[key]) for key in different)
        raise ValueError(
            f"the study {study.study_name!r} in {without_password(storage)} was made for something else ({changes}); "
            "name another with --study, or another --storage"
        )


def _change(key: str, there: Any, here: Any) -> str:
    """Say what differs: values that are long enough to hide the point are left out."""
    told = f"{there!r} there, {here!r} here"
    return f"{key}: {told}" if len(told) < LONGEST else f"another {key}"


def open_storage(storage: str) -> BaseStorage:
    """Open a journal file, or a database by its ``postgresql://`` address."""
    if not is_address(storage):
        return _journal(Path(storage))
    scheme, rest = storage.split("://", 1)
    if scheme not in ("postgresql", "postgres"):
        raise ValueError(
            f"--storage {scheme}://… is not known: give postgresql://user@host:port/database, or the path of a file"
        )
    need("psycopg", "postgres")
    from optuna.exceptions import ExperimentalWarning
    from optuna.storages import RDBStorage
    from sqlalchemy.exc import ArgumentError, SQLAlchemyError
    from sqlalchemy.pool import NullPool

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)  # said of heartbeats, which have been there for years
            return RDBStorage(
                f"postgresql+psycopg://{rest}",
                heartbeat_interval=HEARTBEAT,
                grace_period=GRACE,
                # A trial writes seldom: no connection is kept between two writes, so that many machines can share a server.
                engine_kwargs={"poolclass": NullPool, "connect_args": {"connect_timeout": PATIENCE}},
            )
    except (SQLAlchemyError, ArgumentError, ImportError, ValueError) as error:
        shown, why = without_password(storage), _one_line(error, storage)
    raise ConnectionError(
        f"the database {shown} cannot be used: {why}; see that the server runs and takes connections from here (psql "
        f"'{shown}' should answer), that the database exists, and that the password is right (PGPASSWORD or ~/.pgpass "
        "keep it off the command line)"
    )


def _journal(path: Path) -> BaseStorage:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    from neurise.tuning.journal import JournalLock

    if path.is_dir():
        raise ValueError(f"{path} is a folder; a study is kept in a file")
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = JournalLock(str(path))
    lock.acquire()  # mends what a crash has left
    lock.release()
    try:
        return JournalStorage(JournalFileBackend(str(path), lock_obj=lock))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no journal of a study, or is damaged ({error}); name another file") from error


def is_address(storage: str) -> bool:
    """Whether a storage is the address of a server, and not a path."""
    return "://" in storage


def without_password(storage: str) -> str:
    """Give an address as it may be shown."""
    if not is_address(storage):
        return storage
    parts = urlsplit(storage)
    place = parts.netloc.rpartition("@")
    user = place[0].partition(":")[0]
    shown = parts._replace(netloc=f"{user}@{place[2]}" if user else place[2], query="", fragment="")
    return shown.geturl()


def _one_line(error: Exception, storage: str) -> str:
    """Say what went wrong, without the password, wherever it stood."""
    text = " ".join(str(getattr(error, "orig", None) or error).split())
    secret = urlsplit(storage).netloc.rpartition("@")[0].partition(":")[2]
    hidden: Any = text.replace(secret, "…") if secret else text
    return str(hidden)
