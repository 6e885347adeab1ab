"""The torch that a project requires: the oldest release that its own files allow, and which of them says so."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias

from devlint.immutable import immutable, replace
from devlint.source.files import content, toml

Release = tuple[int, int]
Table = dict[str, Any]
Readers = dict[str, Callable[[str, bytes], Iterable[str]]]
Reader = Callable[[str], "Release | None"]
_NAMES = frozenset({"torch", "pytorch"})
"""What torch is called in the package index, and by conda."""
_LAST_WITH = {
    "9.0": (1, 1), "9.2": (1, 7), "10.0": (1, 4), "10.1": (1, 8), "10.2": (1, 12), "11.0": (1, 7), "11.1": (1, 10),
    "11.3": (1, 12), "11.6": (1, 13), "11.7": (2, 0),
}  # fmt: skip
"""The last minor release that was built with each version of CUDA's toolkit."""
_LAST_WITH_CUDATOOLKIT = (1, 12)
"""Later ones come with ``pytorch-cuda`` instead, for those who take them from conda."""
_CONTAINERS = {
    (18, 9): (0, 4), (18, 12): (1, 0), (19, 3): (1, 1), (19, 7): (1, 2), (19, 10): (1, 3), (19, 11): (1, 4),
    (20, 2): (1, 5), (20, 6): (1, 6), (20, 8): (1, 7), (20, 11): (1, 8), (21, 3): (1, 9), (21, 7): (1, 10),
    (21, 11): (1, 11), (22, 3): (1, 12), (22, 6): (1, 13), (23, 3): (2, 0), (23, 4): (2, 1), (23, 11): (2, 2),
    (24, 2): (2, 3), (24, 5): (2, 4), (24, 8): (2, 5), (24, 11): (2, 6), (25, 2): (2, 7), (25, 5): (2, 8),
}  # fmt: skip
"""The first of NVIDIA's containers, by year and month, that has each minor release, or a preview of it."""
_LAST_MINOR = {0: 4, 1: 13}
"""The last minor release of each major one that gets no more."""
_MENTION = re.compile(rb"torch", re.IGNORECASE)
_ROOTS = (".git", ".hg", ".svn")
_PACKAGED = ("pyproject.toml", "setup.py", "setup.cfg")
_FOLDERS = frozenset({"requirements", "env", "envs", "environment", "environments", "conda", "docker"})
"""Folders of files that say the same as those beside them."""
_DOCUMENTS = frozenset({"docs", "doc", "documents", "documentation"})
_GUIDES = _DOCUMENTS | frozenset({"sh", "script", "scripts", "setup", "install", "tools"})
"""Folders of what people are told, or what they run, among it how to install."""
_MOST_INCLUDED = 20


@immutable(frozen=True, slots=True)
class TorchRequirement:
    """The oldest torch that a declaration allows: the declaration as it stands there, and its file.

    ``latest`` is the youngest that it allows, None where it leaves that open.
    """

    release: Release
    text: str
    file: str
    latest: Release | None = None


Known: TypeAlias = dict[tuple[str, str, bool], TorchRequirement | None]
"""What was found for directories of projects, by releases of torch and by toolkits."""


def nearest(directory: str, known: Known, checked: str = "") -> TorchRequirement | None:
    """What the files of an absolute directory require of torch, or else those of the nearest one above it.

    What people are told to install counts where no file of the same directory declares it, and a toolkit where no
    release of torch is told of anywhere. The search ends where a repository begins: what lies around it is somebody
    else's. Without one, documents are read up to the outermost of the directory that is ``checked`` and the nearest
    that is made into a package. ``known`` keeps what was found.
    """
    root = _root(directory, checked or os.getcwd())
    return _nearest(directory, root, oldest, known) or _nearest(directory, root, _last_with, known)


def _nearest(directory: str, root: str, release: Reader, known: Known) -> TorchRequirement | None:
    key = directory, root, release is oldest
    if key not in known:
        found, parent = declared(directory, release, told=len(directory) >= len(root)), os.path.dirname(directory)
        outermost = parent == directory or _has(directory, _ROOTS)
        known[key] = found if found is not None or outermost else _nearest(parent, root, release, known)
    return known[key]


def _root(directory: str, checked: str) -> str:
    """Where the project of a directory begins."""
    above = [directory]
    while (parent := os.path.dirname(above[-1])) != above[-1]:
        above.append(parent)
    repository = next((one for one in above if _has(one, _ROOTS)), "")
    packaged = next((one for one in above if _has(one, _PACKAGED)), directory)
    return repository or min((one for one in (packaged, checked) if one in above), key=len)


def _has(directory: str, names: Iterable[str]) -> bool:
    return any(os.path.lexists(os.path.join(directory, name)) for name in names)


def may_declare(names: Iterable[str]) -> bool:
    """Whether a directory that has files of such names may differ from the one above it in what it requires."""
    return any(name in _ROOTS or name in _FOLDERS or name in _GUIDES or _FILE.fullmatch(name) for name in names)


def declared(directory: str, release: Reader, told: bool) -> TorchRequirement | None:
    """What the files of one directory require: of the first kind of file that has a bound for torch.

    Where that leaves open which is the youngest, the one that people are told to install is.
    """
    try:
        names = sorted(os.listdir(directory))
        for folder in (_FOLDERS | _GUIDES if told else _FOLDERS).intersection(names):
            inside = _names(directory, folder)
            # documents stand in folders of their own by language, or by what they are
            deeper = (each for name in inside for each in _names(directory, name)) if folder in _DOCUMENTS else ()
            names += [*inside, *deeper]
    except OSError:
        return None
    found = next(filter(None, (_of_files(directory, names, one, release) for one in _READERS.items())), [])
    said = (_of_files(directory, names, one, release) for one in (_PROSE.items() if told else ()))
    others: Iterable[list[TorchRequirement]] = said
    if not found:
        found = next(filter(None, said), [])
        others = chain((found,), said)
    first = min(found, key=lambda one: one.release, default=None)
    if first is None or first.latest is not None or release is not oldest:
        return first
    pinned = [
        one.latest for several in others for one in several if one.latest is not None and one.latest >= first.release
    ]
    return replace(first, latest=max(pinned)) if pinned else first


def _names(directory: str, folder: str) -> list[str]:
    """The names of what is in a folder of a directory, that of the folder before each; none where it is no folder."""
    inside = os.path.join(directory, folder)
    return [f"{folder}/{name}" for name in sorted(os.listdir(inside))] if os.path.isdir(inside) else []


def _of_files(
    directory: str, names: Sequence[str], kind: tuple[str, Callable[[str, bytes], Iterable[str]]], release: Reader
) -> list[TorchRequirement]:
    """The bounds of all files of a kind."""
    files = [os.path.join(directory, name) for name in names if re.fullmatch(kind[0], name)]
    return [one for file in files for one in _of_file(file, kind[1], release)]


def _of_file(file: str, read: Callable[[str, bytes], Iterable[str]], release: Reader) -> list[TorchRequirement]:
    """The bounds of one file; none of one that cannot be read: whoever uses it will say what is wrong with it."""
    try:
        data = content(file) if os.path.isfile(file) else b""
        texts = list(read(file, data)) if _MENTION.search(data) or read is _requirements else []
    except (OSError, ValueError, SyntaxError, RecursionError):
        return []
    found = ((release(text), text) for text in texts)
    upto = _youngest if release is oldest else lambda _: None
    return [TorchRequirement(one, text.strip(), file, upto(text)) for one, text in found if one]


# -- one declaration ---------------------------------------------------------------------------------------------------

_DECLARATION = r"(?:[\w./-]+::)?(?P<name>[A-Za-z][\w.-]*?)\s*(?:\[[^]]*\])?\s*(?P<bounds>[=<>!~^\d(*].*)?"
_WHEEL = r"(?:^|[\s/@])torch-(?P<version>\d+\.\d+)[^/]*\.whl"
_TORCH = r"(?<![\w.-])(?:py)?torch(?:[`*\])]*\([^\s)]*\)|[`*\])]*)\s*"
"""How prose names it, as a link perhaps."""
_RELEASE = r"v?(?P<release>[0-2]\.\d+)"
_ALONE = rf"-?[`*]{{0,2}}{_RELEASE}(?:\.\d+)*(?!\w)"
_ASKS = (
    "tested|developed|built|requires?|required|needs?|implemented|trained|verified|based|written|works?|runs?|uses?|used|"
    "using|install|installed|supports?|evaluated|conducted|compatible|recommend|recommended"
)
_TOLD = (
    rf"{_TORCH}\(?\s*\\?(?P<bound>[=>~]=?|≥|:|version:?|install =?|tested on|we use)\s*{_RELEASE}",
    rf"{_TORCH}{_RELEASE}[\d.]*\s*(?:\+|or (?:later|higher|newer|above)|(?:is|are) (?:now )?(?:required|recommended))",
    rf"{_TORCH}[^.;|()\n]{{0,60}}\((?:at least|from|>=|≥)\s*{_RELEASE}",
    # the words of one sentence
    rf"(?<!not )(?<!n't )(?<!not been )\b(?:{_ASKS})\b(?:[^.;|\n]|\.\d|\n(?!\s*\n)){{0,60}}?{_TORCH}{_ALONE}",
    # an item of a list that is nothing else
    rf"^\s*(?:[-*+•]|\d+[.)])\s+[\[`*]*{_TORCH}{_ALONE}\s*(?:$|[`*\]),;(~-]|(?:and|or|to)\b)",
    # how it is fetched, to be built from its source
    rf"(?:-b|--branch)[ =]{_RELEASE}[\d.]* \S+/pytorch/pytorch\b",
)
"""How people are told which one to take."""
_SAID = rf"{_TORCH}{_ALONE}"
_ENVIRONMENT = r"(?i)\b(?:python|cuda|torchvision)\b[`*\s:=]*v?\d"
"""Beside its version stand others, of what it was run with."""
_TOOLKIT = r"\b(?:(cudatoolkit|pytorch-cuda)\s*=*\s*(\d+\.\d+)|cu(\d+)(\d)\b)"
_BUILD = r"(?<=[\w*])=[\w.*]+"
"""The third part of ``pytorch=1.9.0=py3.8_cuda11.1``."""
_BOUND = r"(?P<operator>===?|~=|>=|<=|!=|[<>=~^]|)\s*v?(?P<major>\d+)(?:\.(?P<minor>\d+))?(?P<patch>[\w.*+]*)"


def oldest(declaration: str) -> Release | None:
    """The oldest torch that a requirement allows, as pip, Poetry or conda spell it; None if it is of something else,
    or leaves that open."""
    return min((_oldest_of_all(way) for way in _ways(declaration)), default=None) or None


def _youngest(declaration: str) -> Release | None:
    """The youngest torch that it allows; None if it leaves that open."""
    newest = [upto for way in _ways(declaration) if (upto := _youngest_of_all(way))]
    return max(newest) if newest and len(newest) == len(_ways(declaration)) else None


def _ways(declaration: str) -> list[str]:
    """The bounds of torch in a requirement, several where it names alternatives."""
    declaration = re.split(r"\s#|;", declaration.strip(), maxsplit=1)[0].strip()
    if wheel := re.search(_WHEEL, declaration):
        return [f"=={wheel['version']}"]
    match = re.fullmatch(_DECLARATION, declaration)
    if match is None or match["name"].lower() not in _NAMES or not match["bounds"]:
        return []
    return re.split(r"\|\|?", match["bounds"].strip("() "))


def _oldest_of_all(bounds: str) -> Release | tuple[()]:
    """The oldest release that several bounds allow together; empty where they leave that open."""
    least: list[Release] = []
    most: list[Release] = []
    for match in re.finditer(_BOUND, re.sub(_BUILD, "", bounds)):
        if match["operator"] in ("<", "<="):
            most += _upto(match)
        elif match["operator"] != "!=":
            least.append(_release(match))
    return max(least) if least else min(most, default=())


def _youngest_of_all(bounds: str) -> Release | tuple[()]:
    """The youngest release that several bounds allow together; empty where they leave that open."""
    bound = [upto for match in re.finditer(_BOUND, re.sub(_BUILD, "", bounds)) for upto in _upto(match)]
    return min(bound, default=())


def _release(match: re.Match[str]) -> Release:
    return int(match["major"]), int(match["minor"] or 0)


def _upto(match: re.Match[str]) -> list[Release]:
    """The last minor release that one bound allows, none where it allows any."""
    release, operator = _release(match), match["operator"]
    if operator == "<" and not match["patch"].strip(".0*"):
        return _before(*release)
    within = match["minor"] is not None and (operator != "~=" or match["patch"])
    return [release] if operator in ("<", "<=") or (within and operator in ("", "=", "==", "===", "~", "~=")) else []


def _before(major: int, minor: int) -> list[Release]:
    """The last minor release before one, unless it has not been made yet."""
    if minor:
        return [(major, minor - 1)]
    return [(major - 1, _LAST_MINOR[major - 1])] if major - 1 in _LAST_MINOR else []


def _last_with(declaration: str) -> Release | None:
    """The last torch that was built with the toolkit that is installed along with it."""
    match = re.fullmatch(f"torch {_TOOLKIT}", declaration)
    if match is None:
        return None
    last = _LAST_WITH.get(match[2] or f"{match[3]}.{match[4]}")
    return min(last or _LAST_WITH_CUDATOOLKIT, _LAST_WITH_CUDATOOLKIT) if match[1] == "cudatoolkit" else last


# -- files -------------------------------------------------------------------------------------------------------------


def _pyproject(file: str, data: bytes) -> Iterator[str]:
    """The dependencies of PEP 621, of groups (PEP 735), uv, PDM, Poetry and pixi; those of users before all others."""
    document = toml(data)
    project, tool = _table(document, "project"), _table(document, "tool")
    poetry, pixi = _table(tool, "poetry"), _table(tool, "pixi")
    used = [*_listed(project.get("dependencies")), *_tabled(_table(poetry, "dependencies"))]
    if any(oldest(text) for text in used):
        return (yield from used)
    groups = [_table(poetry, "dev-dependencies")]
    groups += [_table(group, "dependencies") for group in _table(poetry, "group").values() if isinstance(group, dict)]
    groups += [_table(pixi, "dependencies"), _table(pixi, "pypi-dependencies")]
    lists = [_table(project, "optional-dependencies"), _table(document, "dependency-groups")]
    lists += [_table(_table(tool, "pdm"), "dev-dependencies"), {"dev": _table(tool, "uv").get("dev-dependencies")}]
    for group in groups:
        yield from _tabled(group)
    for table in lists:
        for value in table.values():
            yield from _listed(value)


def _setup_cfg(file: str, data: bytes) -> Iterator[str]:
    import configparser

    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(data.decode("utf-8-sig"))
    except configparser.Error as error:
        raise ValueError(str(error)) from error
    yield from parser.get("options", "install_requires", fallback="").splitlines()
    if parser.has_section("options.extras_require"):
        for _, value in parser.items("options.extras_require"):
            yield from value.splitlines()


def _setup_py(file: str, data: bytes) -> Iterator[str]:
    """The literal requirements of a ``setup`` call, given there or by names."""
    tree = ast.parse(data)
    named = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == "setup":
            for keyword in call.keywords:
                if keyword.arg in ("install_requires", "extras_require"):
                    value = keyword.value
                    value = named.get(value.id, value) if isinstance(value, ast.Name) else value
                    yield from _texts(value)


def _texts(node: ast.expr) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def _requirements(file: str, data: bytes) -> Iterator[str]:
    """The lines of a requirements file, and of those that it includes."""
    files, seen = [(file, data)], {file}
    for name, text in files:
        for line in text.decode("utf-8-sig", "replace").splitlines():
            yield line
            yield from _by_toolkit(line)
            included = re.match(r"\s*(?:-r|--requirement|-c|--constraint)[\s=]*([^\s#]+)", line)
            path = os.path.join(os.path.dirname(name), included[1]) if included else ""
            if path and path not in seen and len(seen) < _MOST_INCLUDED and os.path.isfile(path):
                seen.add(path)
                files.append((path, content(path)))


def _environment(file: str, data: bytes) -> Iterator[str]:
    import yaml

    if not re.search(rb"^dependencies:", data, re.MULTILINE):
        return
    try:
        document = yaml.safe_load(data)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    found = document.get("dependencies") if isinstance(document, dict) else None
    items = found if isinstance(found, list) else []
    texts = [text for item in items for text in _listed(item.get("pip") if isinstance(item, dict) else [item])]
    yield from (*texts, *_by_toolkit(" ".join(texts)))


def _pipfile(file: str, data: bytes) -> Iterator[str]:
    document = toml(data)
    for name in ("packages", "dev-packages"):
        yield from _tabled(_table(document, name))


def _prose(file: str, data: bytes) -> Iterator[str]:
    """The releases that are asked for, as in `pip install torch==1.8.0` and "PyTorch 1.6+", and no other mention."""
    text = data.decode("utf-8-sig", "replace")
    for pattern in _TOLD:
        for match in re.finditer(pattern, text, re.IGNORECASE | re.MULTILINE):
            exact = match.groupdict().get("bound") in ("=", "==")
            yield f"torch{'==' if exact else '>='}{match['release']}"
    yield from _by_container(text)
    for line in text.splitlines():
        yield from _by_toolkit(line)
        if re.search(_ENVIRONMENT, line):
            yield from (f"torch>={match['release']}" for match in re.finditer(_SAID, line, re.IGNORECASE))


def _by_toolkit(words: str) -> Iterator[str]:
    """CUDA's toolkit, where it is installed along with torch."""
    if re.search(r"\b(?:py)?torch\b", words):
        yield from (f"torch {match[0]}" for match in re.finditer(_TOOLKIT, words))


def _by_container(text: str) -> Iterator[str]:
    """The torch of NVIDIA's container that an image is made of."""
    for match in re.finditer(r"nvcr\.io/nvidia/pytorch:(\d\d)\.(\d\d)", text):
        made = int(match[1]), int(match[2])
        major, minor = max((torch for first, torch in _CONTAINERS.items() if first <= made), default=(0, 4))
        yield f"torch=={major}.{minor}"


def _table(parent: Table, key: str) -> Table:
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def _listed(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _tabled(table: Table) -> Iterator[str]:
    """Requirements that stand as ``torch = "^2.1"``, or as a table, or a list of tables, with a ``version``."""
    for name, value in table.items():
        for one in value if isinstance(value, list) else [value]:
            bounds = one.get("version") if isinstance(one, dict) else one
            if isinstance(bounds, str):
                yield f"{name} {bounds}"


_READERS: Readers = {
    r"pyproject\.toml": _pyproject,
    r"setup\.cfg": _setup_cfg,
    r"setup\.py": _setup_py,
    r"(?!docs?/).*requirement.*\.txt": _requirements,
    r"(?!docs?/).*\.ya?ml": _environment,
    "Pipfile": _pipfile,
}
"""By the name of a file: what gives its requirements as text; the first kind that has a bound for torch is meant."""
_DOCUMENT = r"(?:[^/]*\.(?:md|rst|txt)|[^/.]*)"
_INSTALLING = r"(?:install|environment|set_?up|quick[_-]?start|get(?:ting)?[_-]?started)"
"""How documents are called that say how to begin."""
_SET_UP = r"(?:[^/]*[_-])?(?:install|setup|set_up|create|env|environment|conda|requirements)(?:[_-][^/]*)?\.sh"
"""Scripts that make an environment."""
_PROSE: Readers = {
    rf"(?i:{_INSTALLING}{_DOCUMENT})": _prose,
    rf"(?i:readme{_DOCUMENT}|doc(?:s|uments|umentation)?/(?:[^/]*/)?[^/]*{_INSTALLING}{_DOCUMENT})": _prose,
    rf"(?i:.*dockerfile.*|(?:(?:{'|'.join(sorted(_GUIDES))})/)?{_SET_UP})": _prose,
}
_FILE = re.compile("|".join(f"(?:{pattern})" for pattern in (*_READERS, *_PROSE)))
