"""Compiling the many files of one extension at once; setuptools does so with extensions, not with their files."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from setuptools.command.build_ext import build_ext


class ParallelBuild(build_ext):  # type: ignore[misc]  # setuptools has no types
    """Builds extensions with a compiler for each processor."""

    def build_extensions(self) -> None:
        """Hand each file to the next idle compiler, and wait for all of an extension before they are linked."""
        compile_one, link = self.compiler._compile, self.compiler.link
        waiting: list[Future[None]] = []

        def link_all(*given: Any, **named: Any) -> None:
            while waiting:
                waiting.pop().result()
            link(*given, **named)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            self.compiler._compile = lambda *given: waiting.append(pool.submit(compile_one, *given))
            self.compiler.link = link_all
            super().build_extensions()
