"""Who may ask: the token in the address, the Host and the Origin of a request, its size, and what pages may load."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.responses import JSONResponse

Message = MutableMapping[str, Any]
App = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]

MOST_BYTES = 2**20
"""Of a request."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors {frames}"
)
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Let requests of the page through, and answer all others with a message.

    The token is the first part of every path, so that addresses on the page are relative and nothing is stored in a cookie.
    """

    def __init__(self, app: App, *, token: str, hosts: set[str], frames: str) -> None:
        self.app, self.token, self.hosts = app, token.encode(), hosts
        policy = POLICY.format(frames=frames)
        self.headers = [
            (name.encode(), text.encode()) for name, text in {**HEADERS, "content-security-policy": policy}.items()
        ]

    async def __call__(
        self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        """Check one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *self.headers]
            await send(message)

        status, complaint = self._complaint(scope)
        if complaint:
            await JSONResponse({"error": complaint}, status)(scope, receive, answer)
            return
        inner = {**scope, "path": "/" + scope["path"].split("/", 2)[2], "root_path": ""}
        await self.app(inner, _limited(receive), answer)

    def _complaint(self, scope: Message) -> tuple[int, str]:
        given: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            given.setdefault(name.lower(), []).append(value)
        host = given.get(b"host", [b""])
        if len(host) != 1 or host[0].decode("latin-1").lower() not in self.hosts:
            return (
                400,
                f"this server answers to {', '.join(sorted(self.hosts))}, not to {host[0][:80].decode('latin-1')!r}",
            )
        origins = given.get(b"origin", [])
        if any(origin != b"http://" + host[0] for origin in origins):
            return 403, "requests of other pages are not answered"
        parts = scope["path"].split("/", 2)
        if len(parts) < 3 or not hmac.compare_digest(parts[1].encode("utf-8", "replace"), self.token):
            return 403, "the address lacks the token of this run: open the one that neurise play printed"
        length = given.get(b"content-length", [b"0"])[0]
        if not length.isdigit() or len(length) > 12 or int(length) > MOST_BYTES:
            return 413, f"a request may have {MOST_BYTES:,} bytes"
        return 0, ""


class TooLarge(Exception):
    """A request has more bytes than it may."""


def _limited(receive: Callable[[], Awaitable[Message]]) -> Callable[[], Awaitable[Message]]:
    """Count the bytes of a body whose length was not announced."""
    total = 0

    async def counted() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if total > MOST_BYTES:
            raise TooLarge(f"a request may have {MOST_BYTES:,} bytes")
        return message

    return counted
