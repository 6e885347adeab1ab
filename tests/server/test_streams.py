"""Clients that do not behave, and a server that cannot start: one clear line, and an end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from tests.server.client import ROOT

LONG = 30


class Pipes:
    """The standard streams of a server."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "devlint", "server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": ROOT},
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout

    def write(self, data: bytes) -> None:
        self._in.write(data)
        self._in.flush()

    def send(self, method: str, params: object = None, number: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        body = json.dumps(message if number is None else {**message, "id": number}).encode()
        self.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def answer(self, number: int) -> dict[str, Any]:
        """The answer to a request, whatever else is told before."""
        while True:
            length = 0
            while (line := self._out.readline()).strip() or not length:
                assert line, "the server has ended"
                if line.lower().startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
            message: dict[str, Any] = json.loads(self._out.read(length))
            if message.get("id") == number and "method" not in message:
                return message

    def initialize(self) -> None:
        self.send("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, 1)
        assert self.answer(1)["result"]["serverInfo"]["name"] == "devlint"
        self.send("initialized", {})

    def end(self) -> tuple[int, str]:
        """How it ends when nobody writes any more: the exit code, and the standard error."""
        _, errors = self.process.communicate(timeout=LONG)
        return self.process.returncode, errors.decode()


@pytest.fixture
def pipes():
    made = Pipes()
    # whoever waits for an answer that never comes reads the end instead
    watchdog = Timer(LONG, made.process.kill)
    watchdog.start()
    yield made
    watchdog.cancel()
    made.process.kill()
    made.process.wait(LONG)
    for stream in (made.process.stdin, made.process.stdout, made.process.stderr):
        with suppress(OSError):
            stream.close()


def test_a_client_that_is_gone(pipes: Pipes) -> None:
    pipes.initialize()
    document = {"uri": "file:///nowhere/a.py", "languageId": "python", "version": 1, "text": "import torch\n"}
    pipes.send("textDocument/didOpen", {"textDocument": document})
    assert pipes.end() == (1, "")


def test_a_client_that_never_came(pipes: Pipes) -> None:
    assert pipes.end() == (1, "")


def test_a_client_that_no_longer_listens(pipes: Pipes) -> None:
    pipes.initialize()
    assert pipes.process.stdout is not None
    pipes.process.stdout.close()
    document = {"uri": "file:///nowhere/a.py", "languageId": "python", "version": 1, "text": "import torch\n"}
    pipes.send("textDocument/didOpen", {"textDocument": document})
    pipes.send("shutdown", number=7)
    assert pipes.process.stdin is not None
    pipes.process.stdin.close()
    assert pipes.process.wait(LONG) in (0, 1)
    assert pipes.process.stderr is not None
    assert pipes.process.stderr.read() == b""


def test_garbage(pipes: Pipes) -> None:
    pipes.initialize()
    pipes.write(b"\x00\xff what is this\r\n\r\n")
    pipes.write(b"Content-Length: 9\r\n\r\nnot json!")
    pipes.write(b"Content-Length: 2\r\n\r\n[]")
    pipes.write(b"Content-Length: 4\r\n\r\nnull")
    pipes.send("textDocument/didOpen", {"nothing": 1})
    pipes.send("textDocument/didChange", {"textDocument": {"uri": "file:///a.py", "version": 1}, "contentChanges": []})
    pipes.send("textDocument/didClose", {"textDocument": {"uri": "file:///a.py"}})
    pipes.send("devlint/unknown", {})
    pipes.send("devlint/unknown", {}, 2)
    assert "error" in pipes.answer(2)
    pipes.send("textDocument/hover", {"textDocument": {}}, 3)
    ask = {"textDocument": {"uri": "file:///a.py"}, "position": {"line": 1, "character": 2}}
    pipes.send("textDocument/hover", ask, 4)
    assert pipes.answer(4)["result"] is None
    pipes.send("shutdown", number=5)
    assert pipes.answer(5)["result"] is None
    pipes.send("exit")
    assert pipes.end() == (0, "")


def test_without_pygls(tmp_path: Path) -> None:
    code = "import sys; sys.modules['pygls'] = None\nfrom devlint.cli import main\nmain(['server'])"
    environment = {**os.environ, "PYTHONPATH": ROOT}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, timeout=LONG, text=True)
    line = "error: devlint server needs the extra `server`: pip install 'devlint[server]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", line)
