"""A wheel with compiled modules, for those who ask hatch for it."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompilingHook(BuildHookInterface[Any]):
    """Puts the compiled modules beside their sources."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; an editable devlint stays as it is, since what is compiled cannot be edited."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from tools.compiling.build import build

        self.folder = Path(tempfile.mkdtemp(prefix="devlint-"))
        for path in build(self.folder / "compiled", Path(self.root)):
            build_data["force_include"][str(path)] = path.relative_to(self.folder / "compiled").as_posix()
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete what compiling left."""
        shutil.rmtree(getattr(self, "folder", ""), ignore_errors=True)
