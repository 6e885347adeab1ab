"""The vocabulary of library rows: what can be said of a function, a method, a class or a package, and how it is read.

A row is a table of words under a dotted name, in TOML.  The vocabulary is closed: a word or a value that it does not
have is an error, which names the row.  The same words serve devlint's own files and those of its users.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from devlint.device import ACCELERATOR_TYPES
from devlint.immutable import immutable

Words = dict[str, object]
"""The words of a row, each with its value, as they stand in the file."""


class RowError(ValueError):
    """A row says something that is not in the vocabulary; ``word`` is what was meant, perhaps, as one of ``known``."""

    def __init__(self, text: str, word: str = "", known: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.word = word
        self.known = known


@immutable(frozen=True, slots=True)
class Word:
    """One word: what values it takes, and what it means.

    ``form`` is how values are written: "name" (one of the choices), "place", "result", "path", "text", "flag",
    "names" (a list of them, of the choices if there are any) or "words" (names in one string).
    """

    form: str
    meaning: str
    choices: tuple[str, ...] = ()
    of: str = "call"
    """What it is said of: "call" (a function, a method, a class that is called), "class", "package", or "any"."""


@immutable(frozen=True, slots=True)
class Row:
    """All that is stated under one name, and of the patterns that it matches: a field for each word."""

    path: str
    alias_of: str = ""
    result: str = ""
    is_a: str = ""
    place: str = ""
    parameters: tuple[str, ...] = ()
    device_argument: str = ""
    moves: tuple[str, ...] = ()
    managed_by: str = ""
    must_be_cpu: tuple[str, ...] = ()
    rejects_cpu: tuple[str, ...] = ()
    accepts_cpu: tuple[str, ...] = ()
    waits: bool = False
    elementwise: bool = False
    stateless: bool = False
    needs: str = ""
    runs: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    example: str = ""

    @property
    def made(self) -> str:
        """What a call makes: the result of a function, an object of a class."""
        return self.result or self.is_a

    @property
    def speaks_of_calls(self) -> bool:
        """Whether it says what a call does, and not only what a package is."""
        made = self.made and self.made != "framework"
        return bool(made or self.must_be_cpu or self.rejects_cpu or self.accepts_cpu or self.waits)


OBJECTS = ("module", "loader", "dataset", "tensor", "tensor-mapping", "host-array", "number", "device")
"""What a function can return, and what an object of a class can be."""
_PLACES = ("cpu", "accelerator", "default", "inputs", "self", "unknown", *sorted(ACCELERATOR_TYPES))
_RESULTS = ("self", "call", "foreign", "unknown", *OBJECTS)

VOCABULARY: dict[str, Word] = {
    "alias-of": Word(
        "path",
        "It is the same as this: another name of it, or code that behaves so. With `.*` at the end, whatever matches a "
        "pattern is that which has its last name there.",
        of="any",
    ),
    "is": Word(
        "name",
        "What an object of the class is: `module` (an `nn.Module`), `loader` (a `DataLoader`), `dataset`, `tensor`, "
        "`tensor-mapping` (a dict of tensors that moves as a whole), `host-array` (an array of NumPy), `estimator` (of "
        "scikit-learn, it reads the host's memory), `transform` (of samples), `object` (none of these, but its methods "
        "have rows); or that a package is a `framework` with tensors of its own.",
        (*OBJECTS, "estimator", "transform", "object", "framework"),
        "class",
    ),
    "result": Word(
        "result",
        "What a call returns: `argument:NAME` (what it was given there, or at that position), `self` (what its method "
        "was called on), `call` (what calling the module returns), one of the things of `is`, `number`, `device`, "
        "`unknown` (it need not be where the arguments are), or `foreign` (something of a library that has "
        "devices of its own, which the arguments name).",
        _RESULTS,
    ),
    "place": Word(
        "place",
        "Where that is: `cpu`, `accelerator` (that of the process, the CPU where there is none), a device such as "
        "`cuda` or `cuda:1`, `default` (where torch makes tensors), `inputs` (with the tensors that were put in), "
        "`self`, `argument:NAME` (the device given there, or that of the tensor or module), or `unknown`. What was "
        "given and comes back is moved there.",
        _PLACES,
    ),
    "parameters": Word("names", "The names of the positional parameters, in order, `self` left out."),
    "device-argument": Word("text", "The argument that says where the result is, instead of `place`, if it is given."),
    "moves": Word("names", "The methods that move an object of the class as `.to(device)` does.", of="class"),
    "managed-by": Word(
        "text", "Who places the result, and what is made of it: moving it by hand does nothing, or undoes that."
    ),
    "must-be-cpu": Word(
        "names",
        "The arguments that have to be on the CPU if they are tensors; `*` stands for all, `*[]` for what is in lists.",
    ),
    "rejects-cpu": Word(
        "names",
        "The arguments for which a tensor on the CPU, among others elsewhere, raises; `*` (all) is a hint.",
    ),
    "accepts-cpu": Word(
        "names",
        "The arguments that may be anywhere, whatever the others need; `*` of a module: it moves its inputs itself.",
    ),
    "waits": Word("flag", "The host waits until the device has computed what is given."),
    "elementwise": Word("flag", "Of numbers it makes a number."),
    "stateless": Word("flag", "The module has neither parameters nor buffers of its own.", of="class"),
    "needs": Word(
        "name",
        "What the package does nothing without: `cuda`, an `accelerator` that `torch.cuda` may stand for, or "
        "`nothing`, as a part of such a package may.",
        ("cuda", "accelerator", "nothing"),
        "package",
    ),
    "runs": Word(
        "names",
        "What the package runs by itself: `training`, where it places models and batches, or other `processes`.",
        ("training", "processes"),
        "package",
    ),
    "steps": Word("names", "The methods that the library calls once in every training step.", of="class"),
    "example": Word(
        "text",
        "The arguments with which `devlint models check` calls it, such as `\"x, mode='train'\"`. `x` is a tensor, "
        "`model` a module, `batch` a dict of tensors, `loader` a loader, `device` a device; `torch` and `nn` are at "
        "hand.",
    ),
    "names": Word("words", "The last names for which a pattern holds, in one string; without it, it holds for all."),
}
"""Every word that a row may use."""

_NAME = re.compile(r"[^\W\d]\w*")
_PATH = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*(?:\.\*)?")
_KEY = re.compile(r"[^\W\d]\w*(?:\.(?:[\w*]|\[[^\]\[.]+\])+)*")
_PLACE = re.compile(rf"(?:{'|'.join(sorted(ACCELERATOR_TYPES))}):\d+")
_ARGUMENT = "argument:"
_FIELDS = {"is": "is_a"}
"""The field of a word that cannot have its name."""


def tables(document: Mapping[str, object], key: str = "") -> Iterator[tuple[str, Words]]:
    """The rows of a file, each with its key; ``[a.b]`` is the same key as ``["a.b"]``."""
    words: Words = {}
    for name, value in document.items():
        inner = f"{key}.{name}" if key else name
        if isinstance(value, Mapping):
            yield from tables(value, inner)
        elif isinstance(value, list) and value and all(isinstance(part, Mapping) for part in value):
            for part in value:
                yield from tables(part, inner)
        elif not key:
            raise RowError(f'{name!r} stands outside of any row: expected a table such as ["package.function"]')
        else:
            words[name] = value
    if words:
        if _KEY.fullmatch(key) is None:
            raise RowError(f"[{key!r}]: expected a dotted name, whose first part is no pattern")
        yield key, words


def check(key: str, words: Words) -> None:
    """Raise the error of a row that says what cannot be said."""
    for name, value in words.items():
        word = VOCABULARY.get(name)
        if word is None:
            raise RowError(f'["{key}"]: unknown word {name!r}', name, tuple(VOCABULARY))
        problem = _problem(word, value)
        if problem is not None:
            meant = {"gpu": "accelerator"}.get(value, value) if isinstance(value, str) else ""
            raise RowError(f'["{key}"]: {name}: {problem}', meant, word.choices)
    fault = _fault(key, words)
    if fault:
        raise RowError(f'["{key}"]: {fault}')


def _problem(word: Word, value: object) -> str | None:
    """What is wrong with the value of a word."""
    if word.form == "flag":
        return None if isinstance(value, bool) else "expected true or false"
    if word.form == "names":
        given = value if isinstance(value, list) and all(isinstance(item, str) for item in value) else None
        if given is None:
            return "expected a list of strings"
        strange = [item for item in given if word.choices and item not in word.choices]
        return f"expected {_listed(word.choices)}, not {strange[0]!r}" if strange else None
    if not isinstance(value, str) or not value.strip():
        return "expected a string"
    if word.form == "path":
        return None if _PATH.fullmatch(value) else f"expected a dotted name, not {value!r}"
    if word.form in ("text", "words") or value in word.choices:
        return None
    named = value.removeprefix(_ARGUMENT) if word.form in ("place", "result") else value
    if named != value and (_NAME.fullmatch(named) or named.isdigit()):
        return None
    if word.form == "place" and _PLACE.fullmatch(value):
        return None
    also = "" if word.form == "name" else "argument:NAME, "
    return f"expected {also}{_listed(word.choices)}, not {value!r}"


def _fault(key: str, words: Words) -> str:
    """What is wrong with words beside each other, or under their name."""
    owner, _, last = key.rpartition(".")
    if last in ("__init__", "__call__", "forward") and owner.rpartition(".")[2][:1].isupper():
        return f'what a call of a class or a module does stands in the row of the class, ["{owner}"]'
    accepted, module = words.get("accepts-cpu"), "module" in (words.get("is"), words.get("result"))
    if isinstance(accepted, list) and "*" in accepted and not module:
        return 'accepts-cpu = ["*"] is for a wrapper that moves its inputs: say is = "module" and place beside it'
    if "alias-of" in words and words.keys() - {"alias-of", "names"}:
        return f"alias-of says all, but {next(name for name in words if name != 'alias-of')} stands beside it"
    if "names" in words and "*" not in key:
        return "names belongs to a pattern, such as package.*"
    if "result" in words and "is" in words:
        return "result is for a function, is for a class: say one of them"
    if "place" in words and not words.keys() & {"result", "is"}:
        return "place needs a result, or what it is"
    if words.get("place") == "self" and words.get("result") not in ("self", "call", *OBJECTS):
        return "place = 'self' is for what a method returns"
    named = words.get("parameters")
    known = [*named] if isinstance(named, list) else None
    for name in ("result", "place"):
        value = words.get(name)
        asked = value.removeprefix(_ARGUMENT) if isinstance(value, str) and value.startswith(_ARGUMENT) else ""
        if asked and known is not None and not asked.isdigit() and asked not in known:
            return f"{name}: {asked!r} is not among the parameters"
    return ""


def _listed(choices: tuple[str, ...]) -> str:
    return ", ".join(map(repr, choices[:-1])) + (" or " if len(choices) > 1 else "") + repr(choices[-1])


def row(path: str, words: Words) -> Row:
    """The row of a name, of words that are known to be right."""
    given = ((_FIELDS.get(name, name.replace("-", "_")), value) for name, value in words.items() if name != "names")
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in given}
    return Row(path, **fields)
