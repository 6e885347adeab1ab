"""The rows that a project and installed packages have written for libraries, and for code of their own.

A package names its file in the entry point group `devlint.models`, as `package:file.toml`.  Neither it nor the project
is imported.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from devlint.check.project import content
from devlint.config.messages import did_you_mean
from devlint.config.schema import Config, ConfigError
from devlint.source.files import toml

if TYPE_CHECKING:
    from devlint.flow.catalog.libraries import Catalog, Layer

GROUP = "devlint.models"
"""The group of entry points that name files of rows."""
_METADATA = (".dist-info", ".egg-info")


def files(config: Config) -> tuple[str, ...]:
    """The files of rows that hold under a configuration, besides devlint's own."""
    return (*config.models, *_packaged())


def digest(config: Config) -> str:
    """What is different if anything in those files is; empty where there are none."""
    return repr(_held(files(config))) if files(config) else ""


def catalog(config: Config) -> Catalog:
    """What is known of libraries under a configuration; a :class:`ConfigError` is about a file of rows."""
    return _catalog(config.models, _held(files(config)))


def look_again() -> None:
    """A run begins: what the files held, and which packages are installed, is not known any more."""
    _packaged.cache_clear()
    _held.cache_clear()


@cache
def _held(names: tuple[str, ...]) -> tuple[tuple[str, bytes], ...]:
    """What files hold, as digests."""
    return tuple((name, content.examine(name)[1].digest) for name in names)


@lru_cache(maxsize=8)
def _catalog(project: tuple[str, ...], held: tuple[tuple[str, bytes], ...]) -> Catalog:
    from devlint.flow.catalog.libraries import BUILT_IN, Catalog

    packages = (read((name,)) for name, _ in held[len(project) :])
    layers = [layer for layer in (read(project), *packages) if layer.keys]
    return Catalog(layers) if layers else BUILT_IN


def read(names: tuple[str, ...]) -> Layer:
    """The rows of several files; a :class:`ConfigError` is about one of them."""
    from devlint.flow.catalog.libraries import Layer
    from devlint.flow.catalog.schema import RowError

    layer = Layer()
    for name in names:
        data, fingerprint = content.examine(name)
        if fingerprint.digest == content.UNREADABLE:
            raise ConfigError(f"{name}: there is no such file, or it cannot be read")
        try:
            layer.add(toml(data))
        except RowError as error:
            raise ConfigError(
                f"{name}: {error}{did_you_mean(error.word, error.known) if error.word else ''}"
            ) from error
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{name}: not valid TOML: {error}") from error
    return layer


# -- installed packages ------------------------------------------------------------------------------------------------


@cache
def _packaged() -> tuple[str, ...]:
    """The files that installed packages name, in the order of the entry points' names."""
    if not any(_speaks_of_models(folder) for folder in dict.fromkeys(sys.path)):
        # looking through everything that is installed takes longer than most checks
        return ()
    from importlib.metadata import entry_points

    found = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    return tuple(dict.fromkeys(_file(point.name, point.value) for point in found))


def _speaks_of_models(folder: str) -> bool:
    """Whether a package that is installed in a folder has such an entry point."""
    with suppress(OSError):
        for name in os.listdir(folder or os.curdir):
            if name.endswith(_METADATA):
                with suppress(OSError), open(os.path.join(folder, name, "entry_points.txt"), "rb") as stream:
                    if GROUP.encode() in stream.read():
                        return True
    return False


def _file(name: str, value: str) -> str:
    """The file that an entry point names, found without importing the package."""
    from importlib.util import find_spec

    package, _, resource = value.partition(":")
    root, *inner = package.split(".")
    spec = find_spec(root) if root.isidentifier() else None
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        file = os.path.join(folder, *inner, resource)
        if resource and os.path.isfile(file):
            return file
    raise ConfigError(f"the entry point {name!r} of {GROUP}: there is no file {value!r}")
