"""DVL900: a file that cannot be parsed is reported, never skipped."""

from __future__ import annotations

from devlint.finding import Severity
from devlint.rules.base import Rule


class ParseError(Rule):
    """A file that Python cannot parse was not checked.

    ## What it does
    Reports the place where decoding or parsing the file failed: a syntax error, code for Python 2 or for a newer
    Python than the one that devlint runs on, a NUL byte, text that is not in the encoding that the file declares,
    nesting too deep for Python's parser. The run goes on with the other files.

    ## Why it matters
    devlint read nothing of this file. Without the report, a clean run would look as if the file were clean.

    ## Example
    ```python
    print "loss", loss.item()
    ```

    ## Use instead
    ```python
    print("loss", loss.item())
    ```

    ## When it stays silent
    It is a hint where a newer Python than the one that devlint runs on may read the file: run devlint on that one. So
    is all syntax in a project that requires a newer Python (`requires-python`). A file that was a notebook and kept its
    magics (`%matplotlib inline`) and commands (`!pip install`) is read as a notebook is.

    It is for those who select the rule where the project does not say that it runs on the Python which devlint runs on,
    and a newer one may read the file; where nothing was to be checked, or nobody would mend it: the file imports
    something, and never names torch; the line is one of a template, `{{ name }}`, or of dots, for code that is left
    out, as in `def f(...):`, or, in a notebook, a comment that keeps the place of a block, or a value,
    `x = # YOUR CODE`, that its reader is to write; it is a pointer of
    Git LFS to the file that is meant; or it is a copy that was put aside (`archive/`, `old/`, `third_party/`). Else
    never, unless it is ignored by name: `--select` of other rules does not switch it off. A file that is not meant to
    parse belongs under `exclude` or `per-file-ignores`; where it is a comment of the file that should say so,
    `# devlint: ignore-file[DVL900]` works as long as it stands above the error.

    ## Fix safety
    There is no fix.

    ## References
    - [PEP 263: Defining Python Source Code Encodings](https://peps.python.org/pep-0263/)
    """

    code = "DVL900"
    severity = Severity.ERROR
