"""Start the page on this machine, and say where it is."""

from __future__ import annotations

import ipaddress
import secrets
import socket
import threading
import warnings
from dataclasses import dataclass
from typing import Any

from neurise.extras import need
from neurise.player.stage import Stage

LOCAL = "127.0.0.1"


@dataclass
class Page:
    """A page that is being served from a thread of its own."""

    url: str
    server: Any
    thread: threading.Thread
    workers: Any

    def stop(self) -> None:
        """End the server and its work."""
        self.server.should_exit = True
        self.workers.end()
        self.thread.join(10)

    def wait(self) -> None:
        """Wait until the server ends."""
        while self.thread.is_alive():
            self.thread.join(0.5)


def serve(stage: Stage, *, host: str = LOCAL, port: int = 0, frames: str = "'none'", token: str | None = None) -> Page:
    """Serve a stage from a thread; return when it answers.

    A port of 0 is any that is free. The address holds a token without which nothing is answered.
    """
    uvicorn = need("uvicorn", "play")
    need("starlette", "play")
    from neurise.player.app import make_app

    _check(host, port)
    stage.about()  # worked out now, so that the page paints at once
    listening = _listen(host, port)
    port = listening.getsockname()[1]
    token = token or secrets.token_urlsafe(18)
    shown = f"[{host}]" if ":" in host else host
    names = {shown, LOCAL, "localhost"}
    if host in ("0.0.0.0", "::"):  # all addresses of this machine: one that can be typed is shown
        own = _addresses()
        shown = min((one for one in own if not one.startswith("127.")), default=LOCAL)
        names |= {socket.gethostname().lower(), *own}
    app = make_app(stage, token=token, hosts={f"{name}:{port}" for name in names}, frames=frames)
    options = {"log_level": "critical", "lifespan": "off", "timeout_graceful_shutdown": 1, "access_log": False}
    server = uvicorn.Server(uvicorn.Config(app, **options, server_header=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True, name="play-server")
    thread.start()
    while not server.started:
        if not thread.is_alive():
            raise OSError(f"the page could not be served at {shown}:{port}")
        thread.join(0.01)
    return Page(f"http://{shown}:{port}/{token}/", server, thread, app.workers)  # type: ignore[attr-defined]


def _check(host: str, port: int) -> None:
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise ValueError(f"port must be a number from 0 to 65535, got {port!r}")
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        warnings.warn(
            f"the page can be reached from other machines (host {host}): whoever has its address can use the models and "
            "read the rows that it shows, over a line that is not encrypted",
            stacklevel=3,
        )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise OSError(
            error.errno, f"port {port} of {host} cannot be used: {error.strerror}; --port 0 takes a free one"
        ) from None
    return listening


def _addresses() -> set[str]:
    try:
        return {str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    except OSError:
        return set()
