"""No fix takes a comment away unasked."""

from __future__ import annotations

import pytest

from devlint.check.analysis import Analyzer, check_source
from devlint.check.rewrite.fixes import ApplyFixes
from devlint.config.schema import Config, RuleLayer
from devlint.finding import Applicability

COPY = "import torch\n\n\ndef f(count, device):\n    noise = torch.randn(count, device=device)\n    return "


def fix_of(code: str, text: str) -> Applicability:
    (finding,) = check_source(text, config=Config(rule_layers=(RuleLayer((code,)),)))
    assert finding.fix is not None
    return finding.fix.applicability


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('noise.to("cpu", non_blocking=True).numpy()  # why', Applicability.SAFE),
        ('(noise  # the first\n        .to("cpu", non_blocking=True).numpy())', Applicability.SAFE),
        (
            'noise.to(\n        # as NumPy wants it\n        "cpu", non_blocking=True,\n    ).numpy()',
            Applicability.SAFE,
        ),
        ('noise.to("cpu", non_blocking=  # to be quick\n        True).numpy()', Applicability.UNSAFE),
    ],
)
def test_a_comment_within_what_goes_makes_a_fix_unsafe(expression: str, expected: Applicability) -> None:
    assert fix_of("DVL205", f"{COPY}{expression}\n") is expected


def test_what_is_written_again_is_not_lost() -> None:
    text = "import torch\nscaler = torch.cuda.amp.GradScaler(  # for half precision\n    enabled=True)\n"
    assert fix_of("DVL701", text) is Applicability.SAFE
    mended = ApplyFixes().rewrite(text.encode(), Analyzer("a.py", Config(rule_layers=(RuleLayer(("DVL701",)),))))
    assert b"# for half precision" in mended.data
    assert not mended.findings
