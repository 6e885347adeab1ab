"""DVL901: a suppression that silences nothing hides the next finding."""

from __future__ import annotations

from devlint.finding import Applicability
from devlint.rules.base import Rule


class UnusedSuppression(Rule):
    """A suppression comment silences nothing.

    ## What it does
    Reports a `# devlint: ignore[...]`, a `# devlint: ignore-file[...]` or a `# noqa: DVL...` which no finding needs,
    one that names a rule that does not exist, and a `# devlint:` comment that devlint does not understand.

    ## Why it matters
    The code was mended, or the comment never worked. In the first case it will hide the next bug on its line, in the
    second its author believes in a silence that is not there.

    ## Example
    ```python
    x = x.to(device)  # devlint: ignore[DVL102]
    ```

    ## Use instead
    ```python
    x = x.to(device)
    ```

    ## When it stays silent
    - On a blank `# noqa` and on other linters' codes.
    - Where the rules that the comment names did not run: `--select DVL6` says nothing about `ignore[DVL102]`.
    - In a file that does not parse.

    ## Fix safety
    A comment changes nothing in a run. The fix takes out the codes that silence nothing or, where no other is left, the
    comment with its reason. Other linters' codes stay. It is unsafe where one of the rules judges also what
    `devlint audit` observes: an audit may need the comment although this check does not. There is no fix for what
    devlint does not understand.

    ## References
    - [ruff: unused-noqa](https://docs.astral.sh/ruff/rules/unused-noqa/)
    """

    code = "DVL901"
    fixes = (Applicability.SAFE, Applicability.UNSAFE)
