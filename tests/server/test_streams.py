"""Clients that do not behave, and a server that cannot start: one clear line, and an end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from tests.server.client import ROOT

LONG = 120
"""Seconds after which nobody waits for an answer any more: it is a hang."""
ENDLESS = """
import sys
from devlint.cli import main
from devlint.server import app
def analyze(snapshot):
    print("begun", file=sys.stderr, flush=True)
    while True: pass
app.analyze = analyze
main(["server"])
"""
INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32600, -32601, -32602


class Pipes:
    """The standard streams of a server."""

    def __init__(self, temporary: Path, *how: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *(how or ("-m", "devlint", "server"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": ROOT, "TMPDIR": str(temporary)},
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
        return self._next(lambda message: message.get("id") == number and "method" not in message)

    def told(self, method: str) -> dict[str, Any]:
        """The next notification of a kind."""
        return self._next(lambda message: message.get("method") == method)

    def _next(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            length = 0
            while (line := self._out.readline()).strip() or not length:
                assert line, "the server has ended"
                if line.lower().startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
            message: dict[str, Any] = json.loads(self._out.read(length))
            if wanted(message):
                return message

    def initialize(self) -> None:
        self.send("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, 1)
        assert self.answer(1)["result"]["serverInfo"]["name"] == "devlint"
        self.send("initialized", {})

    def end(self) -> tuple[int, str]:
        """How it ends when nobody writes any more: the exit code, and the standard error."""
        _, errors = self.process.communicate(timeout=LONG)
        return self.process.returncode, errors.decode()


@contextmanager
def served(temporary: Path, *how: str) -> Iterator[Pipes]:
    made = Pipes(temporary, *how)
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


@pytest.fixture
def pipes(tmp_path: Path) -> Iterator[Pipes]:
    with served(tmp_path) as made:
        yield made


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
    assert pipes.answer(3)["error"]["code"] == INVALID_PARAMS
    ask = {"textDocument": {"uri": "file:///a.py"}, "position": {"line": 1, "character": 2}}
    pipes.send("textDocument/hover", ask, 4)
    assert pipes.answer(4)["result"] is None
    pipes.send("shutdown", number=5)
    assert pipes.answer(5)["result"] is None
    pipes.send("textDocument/hover", ask, 6)
    assert pipes.answer(6)["error"]["code"] == INVALID_REQUEST
    pipes.send("exit")
    assert pipes.end() == (0, "")


@pytest.mark.parametrize(
    "garbage",
    [
        b"Content-Length: -5\r\n\r\n{}",
        b"Content-Length: 1000000000000000000000\r\n\r\n{}",
        b"Content-Length: 1" + b"0" * 5000 + b"\r\n\r\n{}",
        b"Content-Length: 2000000000\r\n\r\n{}",
        b'Content-Length: 9\r\n\r\n{"jsonrpc": "2.0", "method": "exit"}',
        b"{}",
    ],
)
def test_the_next_message_counts_whatever_came_before(pipes: Pipes, garbage: bytes) -> None:
    pipes.initialize()
    pipes.write(garbage)
    pipes.send("devlint/unknown", {}, 2)
    assert pipes.answer(2)["error"]["code"] == METHOD_NOT_FOUND
    assert pipes.process.stdin is not None
    pipes.process.stdin.close()
    assert pipes.process.wait(LONG) == 1


@pytest.mark.parametrize(
    "header", [b"content-length:%d\r\n\r\n", b"Content-Length: %d\n\n", b"A: b\r\nContent-Length: %d\r\n\r\n"]
)
def test_a_header_may_be_written_otherwise(pipes: Pipes, header: bytes) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "devlint/unknown", "params": {}}).encode()
    pipes.write(header % len(body) + body)
    assert pipes.answer(1)["error"]["code"] == METHOD_NOT_FOUND


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_the_client_says_nothing(pipes: Pipes, number: signal.Signals, tmp_path: Path) -> None:
    pipes.initialize()
    document = {"uri": "file:///nowhere/a.py", "languageId": "python", "version": 1, "text": "import torch.cuda\nx = ("}
    pipes.send("textDocument/didOpen", {"textDocument": document})
    pipes.told("textDocument/publishDiagnostics")
    assert [path.name for path in tmp_path.iterdir()] != []
    pipes.process.send_signal(number)
    assert pipes.process.wait(LONG) == 128 + number
    assert [*tmp_path.iterdir()] == []  # the pages of its rules


def test_nobody_waits_for_an_analysis_that_nobody_wants(tmp_path: Path) -> None:
    with served(tmp_path, "-c", ENDLESS) as pipes:
        pipes.initialize()
        document = {"uri": "file:///nowhere/a.py", "languageId": "python", "version": 1, "text": "import torch\n"}
        pipes.send("textDocument/didOpen", {"textDocument": document})
        assert pipes.process.stderr is not None
        assert pipes.process.stderr.readline() == b"begun\n"
        pipes.send("shutdown", number=2)
        pipes.answer(2)
        pipes.send("exit")
        assert pipes.process.wait(LONG) == 0


def test_without_pygls(tmp_path: Path) -> None:
    code = "import sys; sys.modules['pygls'] = None\nfrom devlint.cli import main\nmain(['server'])"
    environment = {**os.environ, "PYTHONPATH": ROOT}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, timeout=LONG, text=True)
    line = "error: devlint server needs the extra `server`: pip install 'devlint[server]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", line)
