"""The addresses of the page: its files, and what it asks for."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from neurise.modeling import by_tokens
from neurise.player.asking import ask
from neurise.player.comparing import compare
from neurise.player.couplings import couplings
from neurise.player.guard import Guard, TooLarge
from neurise.player.scoring_rows import score
from neurise.player.stage import Stage
from neurise.player.watching import watch
from neurise.player.wishes import Wish, read_row
from neurise.player.workers import END, Busy, Workers

STATIC = Path(__file__).parent / "static"
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
STREAMS: dict[str, Callable[[Wish], Iterator[dict[str, Any]]]] = {
    "watch": watch,
    "ask": ask,
    "compare": compare,
    "couplings": couplings,
    "score": score,
}
LOG = logging.getLogger(__name__)
HEARTBEAT = 0.5
"""Seconds after which a stream that has nothing to say looks whether somebody still listens."""
MOST_ROWS = 100_000
"""Rows of a file of samples."""
REFUSALS: dict[type[Exception], int] = {
    ValueError: 400,
    LookupError: 404,
    NotImplementedError: 400,
    RecursionError: 400,
    TooLarge: 413,
    Busy: 429,
    MemoryError: 507,
}


def make_app(
    stage: Stage, *, token: str, hosts: set[str], frames: str = "'none'", workers: Workers | None = None
) -> Guard:
    """Put the page together behind its guard."""
    crew = workers or Workers()
    files = {file.name: file for file in STATIC.rglob("*") if file.suffix in KINDS}

    async def page(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in files:
            raise LookupError(f"there is no file {name[:80]!r}")
        return FileResponse(files[name], media_type=KINDS[files[name].suffix])

    async def about(request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(stage.about))

    async def alive(request: Request) -> Response:
        return JSONResponse({})

    async def read(request: Request) -> Response:
        text = (await _fields(request)).get("text")
        if not isinstance(text, str):
            raise ValueError("text must be the symbols of a row")
        return JSONResponse({"row": read_row(stage, text)})

    async def samples(request: Request) -> Response:
        wish = Wish(stage, await _fields(request))
        job = crew.begin(_client(request), _csv(wish))
        try:
            text = await job.next(600)
        finally:
            job.cancel()
        return Response(text, media_type="text/csv")

    async def stream(request: Request) -> Response:
        work = STREAMS.get(request.path_params["name"])
        if work is None:
            raise LookupError(f"there is nothing at {request.path_params['name'][:80]!r}")
        if not stage.actors:
            raise ValueError("the model has not been trained yet: wait for its first step")
        wish = Wish(stage, await _fields(request))
        job = crew.begin(_client(request), work(wish))
        return StreamingResponse(_events(request, job), media_type="text/event-stream")

    async def training(request: Request) -> Response:
        if stage.feed is None:
            raise LookupError("no model is being trained here")
        since = request.query_params.get("since", "0")
        if not since.isdigit() or len(since) > 9:
            raise ValueError(f"since must be a whole number, got {since[:20]!r}")
        return JSONResponse(stage.feed.told(int(since)))

    routes = [
        Route("/", page),
        Route("/static/{name}", page),
        Route("/api/about", about),
        Route("/api/alive", alive),
        Route("/api/training", training),
        Route("/api/read", read, methods=["POST"]),
        Route("/api/samples", samples, methods=["POST"]),
        Route("/api/{name}", stream, methods=["POST"]),
    ]
    handlers = dict.fromkeys((*REFUSALS, Exception, 404, 405), _refused)
    app = Starlette(routes=routes, exception_handlers=handlers)
    guard = Guard(app, token=token, hosts=hosts, frames=frames)
    guard.workers = crew  # type: ignore[attr-defined]
    return guard


async def _fields(request: Request) -> dict[str, Any]:
    try:
        found = json.loads(await request.body())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"a request is a JSON object: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"a request is a JSON object, got {type(found).__name__}")
    return found


def _client(request: Request) -> str:
    """Tell pages apart by the name that each gives itself; whoever gives none shares one."""
    return request.headers.get("x-page", "")[:40]


async def _events(request: Request, job: Any) -> AsyncIterator[str]:
    """Send results as server-sent events until the work ends or the page is closed, which ends the work."""
    try:
        while not await request.is_disconnected():
            try:
                found = await job.next(HEARTBEAT)
            except TimeoutError:
                yield ": still here\n\n"
                continue
            except Exception as error:
                if not isinstance(error, tuple(REFUSALS)):
                    LOG.error("a request failed", exc_info=error)
                yield _event("failed", {"error": _told(error)})
                return
            if found is END:
                yield _event("end", {})
                return
            yield _event("result", found)
    finally:
        job.cancel()


def _event(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"


def _csv(wish: Wish) -> Iterator[str]:
    n = wish.whole("rows", 1, MOST_ROWS, 1000)
    tokens = by_tokens.draw(wish.actor.model, n, wish.clamp, wish.label, wish.seed)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(wish.stage.names)
    symbols = wish.stage.symbols
    writer.writerows([symbols[site][token] for site, token in enumerate(row)] for row in tokens.tolist())
    yield text.getvalue()


def _told(error: BaseException) -> str:
    expected = isinstance(error, tuple(REFUSALS)) or "allocate memory" in str(error)
    return " ".join(str(error).split()) if expected and str(error) else f"this went wrong: {type(error).__name__}"


async def _refused(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", None) or next(
        (code for kind, code in REFUSALS.items() if isinstance(error, kind)), 500
    )
    if status == 500:
        LOG.error("a request failed", exc_info=error)
    message = {404: "there is nothing at this address", 405: "this address is asked in another way"}.get(
        getattr(error, "status_code", 0), _told(error)
    )
    return JSONResponse({"error": message}, status)


def one_thread() -> None:
    """Let each slice of work use one core: clients share them by taking turns."""
    torch.set_num_threads(1)
