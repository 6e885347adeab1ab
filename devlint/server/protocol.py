"""What the server makes of messages that are not as the protocol wants them: each request gets an answer."""

from __future__ import annotations

import re
from typing import IO, Any

from lsprotocol.types import EXIT
from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest
from pygls.protocol import LanguageServerProtocol

_LENGTH = re.compile(rb"content-length: *(\d+)\s*", re.IGNORECASE)
LARGEST = 256 << 20
"""No message has more bytes than this."""


class Protocol(LanguageServerProtocol):
    """Answers what pygls lets go unanswered, on which a client would wait for ever."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Make an object of a message; whose request cannot be read is told so."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            number = data.get("id")
            if "method" in data and isinstance(number, int | str):
                self._send_response(number, error=error.to_response_error())
            raise

    def handle_message(self, message: Any) -> None:
        """Do what a message asks for; after `shutdown` that is nothing."""
        method, number = getattr(message, "method", ""), getattr(message, "id", None)
        if self._shutdown and method and method != EXIT and number is not None:
            refusal = JsonRpcInvalidRequest("the server has been shut down")
            self._send_response(number, error=refusal.to_response_error())
            return
        super().handle_message(message)


class Input:
    """A stream of messages, in which the next header counts, whatever came before it instead of one."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readline(self) -> bytes:
        """The next line; of one that ends with a message's length, that in the words that pygls expects."""
        line = self._stream.readline()
        found = _LENGTH.search(line)
        if found is None or found.end() != len(line):
            return line
        possible = len(found[1]) <= len(str(LARGEST)) and int(found[1]) <= LARGEST
        return b"Content-Length: %b\r\n" % found[1] if possible else b"?\r\n"

    def read(self, size: int) -> bytes:
        """So many bytes, or what there is before the end."""
        return self._stream.read(size)
