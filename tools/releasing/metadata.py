"""What the package index shows of devlint: its README and where its home is.

The README links to files beside it, which the index does not have.  Where the address of the repository is told by
``DEVLINT_REPOSITORY``, such as https://github.com/OWNER/devlint, the links lead there, at the tag of the version; a
workflow on GitHub tells its own.  What is built without it, for oneself, keeps the README as it is.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class IndexHook(MetadataHookInterface):
    """Fills in ``readme`` and ``urls``."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Read the README, and lead its links to the repository."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        address = os.environ.get("DEVLINT_REPOSITORY", "").rstrip("/")
        if address:
            about = Path(self.root, "devlint", "_about.py").read_text(encoding="utf-8")
            (version,) = re.findall(r'^__version__ = "(.+)"$', about, re.MULTILINE)
            sys.path.insert(0, self.root)
            from tools.releasing.links import absolute

            text = absolute(text, address, f"v{version}")
            metadata["urls"] = {
                "Source": address,
                "Issues": f"{address}/issues",
                "Changelog": f"{address}/blob/main/CHANGELOG.md",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
