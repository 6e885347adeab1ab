"""Programs about which linter and run once disagreed, as small as they get; none of them may do so again.

python -m tests.accuracy.fuzz.regressions
"""

from __future__ import annotations

import json
import textwrap

from tests.accuracy.fuzz.comparing import Disagreement, compare
from tests.accuracy.fuzz.generate import HEADER
from tests.accuracy.fuzz.program import Line, Program

PROGRAMS = {
    "a global that a branch has changed": """
        m1 = torch.ones(4, 4)
        m2 = m1.cuda()
        def function1(p1):
            m2 * torch.eye(4, device="cuda")
        if m1.device.type == "cpu":
            m2 = torch.ones(4, 4)
        function1(m1)
    """,
    "a global that changes after the last call": """
        i1 = torch.arange(4, device="cuda")
        m1 = torch.ones(4, 4).cuda()
        def function1(p1):
            return torch.index_select(m1, 0, i1)
        m2 = function1(m1)
        i1 = i1.cpu()
    """,
    "a list on either side of a branch": """
        flag1 = torch.cuda.is_available()
        ls1 = [torch.ones(4, 4), torch.ones(4, 4).cpu()]
        if flag1:
            v1 = torch.ones(4)
        else:
            ls1 = [part.cuda() for part in ls1]
        m1 = torch.stack([part * 2 for part in ls1])
    """,
    "a move to where it is already, dropped": """
        m1 = torch.ones(4, 4)
        m1.cpu()
        m1 += m1 + torch.ones(4, device="cuda")
    """,
    "a branch on where a tensor is": """
        m1 = torch.ones(4, 4)
        if m1.is_cuda:
            m1 = m1.cuda()
        if m1.device.type == "cuda":
            m1 = m1.cuda()
        m1 + torch.ones(4, 4)
    """,
    "a result that hangs on what is available": """
        m1 = torch.ones(4, 4)
        def function1(p1):
            if torch.cuda.is_available():
                return m1
            return p1.cuda()
        m1.add_(function1(m1))
    """,
    "different tensors in a tuple": """
        m1 = torch.ones(4, 4)
        m2 = m1.cuda()
        ps1 = (m2 * 2, m1)
        ps2 = tuple(part + m2 for part in ps1)
    """,
    "the first round of a loop": """
        m1 = torch.ones(4, 4)
        m2 = torch.ones(4, 4).cuda()
        for e1 in m1:
            m2[torch.randperm(4, device="cuda")] = m1
            m1 = m1.cuda()
    """,
    "one round and no second": """
        m1 = torch.ones(4, 4)
        for n1 in range(1):
            m1 + torch.ones(4, 4)
            m1 = m1.cuda()
    """,
    "three rounds": """
        m1, m2, m3 = torch.ones(4, 4), torch.ones(4, 4), torch.ones(4, 4)
        for n1 in range(4):
            m1 + torch.ones(4, 4)
            m1 = m2
            m2 = m3
            m3 = m3.cuda()
    """,
    "a loop that is always left": """
        m1 = torch.ones(4, 4).cuda()
        for n1 in range(3):
            m1 = torch.ones(4, 4)
            break
        m1.masked_fill(torch.ones(4, 4, dtype=torch.bool), 0.0)
    """,
    "exchanged in each round": """
        m1 = torch.ones(4, 4).cuda()
        m2 = torch.ones(4, 4)
        for n1 in range(4):
            m1, m2 = m2, m1
        torch.maximum(torch.rand(4, 4), m2)
    """,
    "dimensions that are known": """
        m1 = torch.ones(4, 4).unsqueeze(0)[0] * 1
        m2 = torch.stack([m1, m1]).sum(0)
        m3 = torch.index_select(m2, 0, torch.arange(4))
        m4 = torch.arange(16.0).view(4, 4)
        m1 + torch.ones(4, 4, device="cuda")
        m2 + torch.ones(4, 4, device="cuda")
        m3 + torch.ones(4, 4, device="cuda")
        m4[0] + torch.ones(4, 4, device="cuda")
        for e1 in m4 * torch.ones(4):
            e1 + torch.ones(4, device="cuda")
    """,
    "the last of a list": """
        m1 = torch.ones(4, 4)
        ls1 = [m1, m1.cuda(), m1]
        m2 = ls1[-1] + torch.ones(4, 4)
        m3 = ls1[-2] + torch.ones(4, 4)
    """,
    "a module that does nothing with its input": """
        m1 = torch.ones(4, 4)
        class Net1(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)
            def forward(self, x):
                return m1 * 2
        net1 = Net1()
        ls1 = [m1, net1(m1.cuda())]
    """,
    "a module made before a global is moved": """
        m1 = torch.ones(4, 4)
        class Net1(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)
                self.part = m1
            def forward(self, x):
                return self.part.new_full((4, 4), 1.0)
        net1 = Net1().cuda()
        m1 = m1.cuda()
        m2 = net1(m1) + torch.ones(4, 4)
    """,
    "a flag that is the opposite of another": """
        flag1 = "word1" in sys.argv
        flag2 = not flag1
        m1 = torch.ones(4, 4)
        if flag1:
            m1 = m1.cuda()
        if flag2:
            m1 + torch.ones(4, 4)
    """,
    "a flag that is no variable": """
        flag1 = not (True)
        m1 = torch.ones(4, 4)
        if flag1:
            m1 = m1.cuda()
        m1 + torch.ones(4, 4)
    """,
    "a branch for machines without an accelerator": """
        flag1 = "word1" in sys.argv
        m1 = torch.ones(4, 4)
        if not torch.cuda.is_available() and not flag1:
            m1 = m1.cuda()
        m1 + torch.ones(4, 4)
    """,
    "a lambda": """
        m1 = torch.ones(4, 4)
        function1 = lambda p1: torch.where(torch.eye(4, device=p1.device) > 0, p1, m1)
        print(function1(m1))
    """,
    "a branch under which a loop comes around": """
        m1 = torch.ones(4, 4).cuda()
        for n1 in range(2):
            if m1.is_cuda:
                m1 = m1.cpu()
            m1.masked_fill_(torch.ones(4, 4, dtype=torch.bool), 1.0)
    """,
    "what only gives its shape, elsewhere in the first round alone": """
        m1 = torch.ones(4, 4).cuda()
        m2 = m1.cpu()
        for n1 in range(4):
            m3 = m1.expand_as(m2)
            m2 = m1.clone()
    """,
}


def main() -> None:
    """Print what each program's disagreement is, if there is one, as JSON."""
    found: dict[str, str | None] = {}
    for name, code in PROGRAMS.items():
        lines = HEADER + textwrap.dedent(code).strip()
        program = Program(tuple(map(Line, lines.splitlines())), ("word1",) if "word1" in code else ())
        try:
            compare(program)
        except Disagreement as disagreement:
            found[name] = str(disagreement)
        else:
            found[name] = None
    print(json.dumps(found))


if __name__ == "__main__":
    main()
