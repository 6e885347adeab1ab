"""Readers of the formats for other programs, written from what those programs' documentation and sources say."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pydantic
import sarif_pydantic

TEXT = {"type": "string", "minLength": 1}
_POSITION = {
    "type": "object",
    "required": ["line", "column"],
    "properties": {"line": {"type": "integer", "minimum": 1}, "column": {"type": "integer", "minimum": 1}},
    "additionalProperties": False,
}

# https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
GITLAB = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": TEXT,
            "check_name": TEXT,
            "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "positions"],
                "properties": {
                    "path": {"type": "string", "not": {"pattern": r"^\./"}},
                    "positions": {
                        "type": "object",
                        "required": ["begin"],
                        "properties": {"begin": _POSITION, "end": _POSITION},
                    },
                },
                "additionalProperties": False,
            },
        },
        "additionalProperties": False,
    },
}

# The messages of reviewdog's proto/rdf/reviewdog.proto.
_RANGE = {
    "type": "object",
    "required": ["start"],
    "properties": {"start": _POSITION, "end": _POSITION},
    "additionalProperties": False,
}
_LOCATION = {
    "type": "object",
    "required": ["path"],
    "properties": {"path": TEXT, "range": _RANGE},
    "additionalProperties": False,
}
_SOURCE = {"type": "object", "properties": {"name": TEXT, "url": TEXT}, "additionalProperties": False}
_SEVERITY = {"enum": ["ERROR", "WARNING", "INFO"]}
RDJSON = {
    "type": "object",
    "required": ["diagnostics"],
    "properties": {
        "source": _SOURCE,
        "severity": _SEVERITY,
        "diagnostics": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["message", "location"],
                "properties": {
                    "message": TEXT,
                    "location": _LOCATION,
                    "severity": _SEVERITY,
                    "source": _SOURCE,
                    "code": {
                        "type": "object",
                        "properties": {"value": TEXT, "url": TEXT},
                        "additionalProperties": False,
                    },
                    "suggestions": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["range", "text"],
                            "properties": {"range": _RANGE, "text": {"type": "string"}},
                            "additionalProperties": False,
                        },
                    },
                    "related_locations": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["location"],
                            "properties": {"message": TEXT, "location": _LOCATION},
                            "additionalProperties": False,
                        },
                    },
                },
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
}

_LACKING = {"columnKind", "toolExecutionNotifications"}
"""What the standard has and that library's models have not."""


def gitlab(text: str) -> list[dict[str, Any]]:
    document = json.loads(text)
    jsonschema.validate(document, GITLAB)
    found: list[dict[str, Any]] = document
    return found


def rdjson(text: str) -> dict[str, Any]:
    document = json.loads(text)
    jsonschema.validate(document, RDJSON)
    found: dict[str, Any] = document
    return found


def sarif(text: str) -> dict[str, Any]:
    """The one run of a log that a library of the standard's types accepts, without a property that it has not."""
    log = sarif_pydantic.Sarif.model_validate_json(text)
    assert _unknown(log) <= _LACKING
    document = json.loads(text)
    (run,) = document["runs"]
    found: dict[str, Any] = run
    return found


def _unknown(value: object) -> set[str]:
    if isinstance(value, pydantic.BaseModel):
        below = (getattr(value, name) for name in value.model_fields_set if name in type(value).model_fields)
        return set(value.model_extra or ()).union(*map(_unknown, below))
    return set[str]().union(*map(_unknown, value)) if isinstance(value, list) else set()


def github(text: str) -> list[tuple[str, dict[str, str], str]]:
    """The commands in an output, as the runner's `ActionCommand.TryParseV2` takes them apart."""
    return [_command(line) for line in text.splitlines()]


def _command(line: str) -> tuple[str, dict[str, str], str]:
    assert line.startswith("::")
    end = line.index("::", 2)
    name, _, properties = line[2:end].partition(" ")
    assert name in ("error", "warning", "notice")
    pairs = [entry.split("=", 1) for entry in properties.strip().split(",") if entry]
    data = _unescaped(line[end + 2 :], (("%0D", "\r"), ("%0A", "\n"), ("%25", "%")))
    table = (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%"))
    return name, {key: _unescaped(value, table) for key, value in pairs}, data


def _unescaped(text: str, table: tuple[tuple[str, str], ...]) -> str:
    for escape, char in table:
        text = text.replace(escape, char)
    return text
