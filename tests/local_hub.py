"""A stand-in for the Hugging Face Hub on this machine: the part of its HTTP interface that models are put on and read from.

Repositories live in memory. As on the real hub, ``.safetensors`` files go through large file storage (ask where to put them, put
them there, have them verified, name them in the commit), and the other files stand in the commit itself.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

TOKEN = "hf_of_this_test"


@dataclass
class Hub:
    """What the hub holds, and what it was asked."""

    repositories: dict[str, list[dict[str, bytes]]] = field(default_factory=dict)  # commits, the newest last
    blobs: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)  # "METHOD /path"
    sizes: dict[str, Any] = field(default_factory=dict)  # what it says of files instead of the truth
    broken: int = 0  # answer everything with this status
    private: list[str] = field(default_factory=list)  # repositories that were created as private
    address: str = ""

    def commit_of(self, name: str, revision: str) -> str | None:
        """Return the name of a commit: ``main`` is the newest, and a tag ``v1`` is the first."""
        commits = self.repositories[name]
        places = {"main": len(commits), **{f"v{k + 1}": k + 1 for k in range(len(commits))}}
        places |= {sha(name, k + 1): k + 1 for k in range(len(commits))}
        return sha(name, places[revision]) if places.get(revision) else None

    def files(self, name: str, commit: str) -> dict[str, bytes]:
        """Return the files of a commit."""
        return next(files for k, files in enumerate(self.repositories[name]) if sha(name, k + 1) == commit)


def sha(name: str, number: int) -> str:
    """Make up the hash of a commit."""
    return hashlib.sha1(f"{name}{number}".encode()).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Answer one request after another; ``hub`` is set by :func:`running`."""

    hub: Hub

    def _answer(self, status: int, body: Any = None, **headers: str) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _refuse(self, status: int, code: str) -> None:
        self._answer(status, {"error": code}, X_Error_Code=code, X_Error_Message=code)

    def _begin(self) -> bytes | None:
        """Take down what is asked, and read its body; None where nothing more is to be answered."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.hub.requests.append(f"{self.command} {self.path}")
        if self.hub.broken:
            self._answer(self.hub.broken, {"error": "the hub is down"})
            return None
        return body

    def _found(self, name: str, revision: str) -> str | None:
        """Return the commit of a revision, or answer that there is none."""
        if name not in self.hub.repositories:
            self._refuse(404, "RepoNotFound")
            return None
        commit = self.hub.commit_of(name, unquote(revision))
        if commit is None:
            self._refuse(404, "RevisionNotFound")
        return commit

    def do_GET(self) -> None:
        if self._begin() is None:
            return
        path = self.path.partition("?")[0]
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?", path):
            if commit := self._found(found[1], found[2] or "main"):
                files = self.hub.files(found[1], commit)
                listed = [{"rfilename": k, "size": self.hub.sizes.get(k, len(v))} for k, v in files.items()]
                self._answer(200, {"id": found[1], "modelId": found[1], "sha": commit, "siblings": listed})
        elif found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            if commit := self._found(found[1], found[2]):
                content = self.hub.files(found[1], commit).get(found[3])
                if content is None:
                    self._refuse(404, "EntryNotFound")
                else:
                    self._answer(200, content, X_Repo_Commit=commit, ETag=f'"{hashlib.sha256(content).hexdigest()}"')
        else:
            self._refuse(404, "unknown to this stand-in")

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        body = self._begin()
        if body is not None:
            self.hub.blobs[self.path.rpartition("/")[2]] = body
            self._answer(200)

    def do_POST(self) -> None:
        body = self._begin()
        if body is None:
            return
        path = self.path.partition("?")[0]
        if path == "/api/validate-yaml":
            self._answer(200, {"errors": [], "warnings": []})
        elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer(401, {"error": "Invalid username or password."})
        elif path == "/api/repos/create":
            self._create(json.loads(body))
        elif re.fullmatch(r"/api/models/[^/]+/[^/]+/preupload/.+", path):
            files = [
                {
                    "path": file["path"],
                    "uploadMode": "lfs" if file["path"].endswith(".safetensors") else "regular",
                    "shouldIgnore": False,
                }
                for file in json.loads(body)["files"]
            ]
            self._answer(200, {"files": files})
        elif path.endswith(".git/info/lfs/objects/batch"):
            verify = {"href": f"{self.hub.address}/verify"}
            objects = [
                {
                    **wanted,
                    "actions": {"upload": {"href": f"{self.hub.address}/blobs/{wanted['oid']}"}, "verify": verify},
                }
                for wanted in json.loads(body)["objects"]
            ]
            self._answer(200, {"transfer": "basic", "objects": objects})
        elif path == "/verify":
            wanted = json.loads(body)
            content = self.hub.blobs.get(wanted["oid"], b"")
            whole = (hashlib.sha256(content).hexdigest(), len(content)) == (wanted["oid"], wanted["size"])
            self._answer(200 if whole else 422)
        elif found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/commit/.+", path):
            self._commit(found[1], [json.loads(line) for line in body.splitlines()])
        else:
            self._refuse(404, "unknown to this stand-in")

    def _create(self, wanted: dict[str, Any]) -> None:
        name = f"{wanted['organization']}/{wanted['name']}"
        if wanted.get("private") or wanted.get("visibility") == "private":
            self.hub.private.append(name)
        known = name in self.hub.repositories
        self.hub.repositories.setdefault(name, [])
        self._answer(409 if known else 200, {"url": f"{self.hub.address}/{name}"})

    def _commit(self, name: str, lines: list[dict[str, Any]]) -> None:
        commits = self.hub.repositories[name]
        files = dict(commits[-1]) if commits else {}
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.hub.blobs[value["oid"]]
        commits.append(files)
        commit = sha(name, len(commits))
        self._answer(200, {"commitUrl": f"{self.hub.address}/{name}/commit/{commit}", "commitOid": commit})

    def log_message(self, *arguments: object) -> None:
        pass


@contextmanager
def running() -> Iterator[Hub]:
    """Serve a hub that is empty at first."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Here", (Handler,), {"hub": hub}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
