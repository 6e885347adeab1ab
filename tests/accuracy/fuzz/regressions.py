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
    "a variable for where a tensor surely is": """
        m4 = torch.ones(4, 4).cuda()
        flag8 = m4.is_cuda
        if flag8:
            m4 = torch.ones(4, 4)
        class Box13:
            def __init__(self, kept):
                self.kept = kept
        box14 = Box13(m4)
        box14.kept = torch.where(torch.ones(4, 4, dtype=torch.bool), m4, 0.0)
        x = torch.where(torch.ones(4, 4, dtype=torch.bool), m4, 0.0)
    """,
    "a mistake that another one, claimed before, hides for some": """
        flag2 = "word1" in sys.argv
        m4 = torch.ones(4, 4)
        m10 = m4
        e11 = 0
        while (e11 := e11 + 1) < 3:
            m10.add_(m4)
            if flag2:
                m10 = m10.cuda()
        m10[torch.arange(4)] = torch.ones(4, 4).cuda()
    """,
    "a condition that always holds, and rounds in rounds": """
        flag2 = "word1" in sys.argv
        m3 = torch.ones(4, 4)
        m4 = torch.ones(4, 4).cuda()
        e19 = 0
        while (e19 := e19 + 1) < 4:
            m22 = m3
            if m22.device.type == "cpu" or m22.is_cuda:
                m14 = m4
            m5 = m22 @ m14
            for n27 in range(3):
                if flag2:
                    break
                m3 = m3.to(device=m4.device)
    """,
    "a claim of arguments behind another one": """
        m2 = torch.ones(4, 4).cuda()
        m9 = m2.cpu()
        def function21(p22, p23):
            m25 = torch.maximum(p22, m9)
            p22 = torch.zeros_like(m9)
            return torch.where(torch.eye(4, device=torch.minimum(p22, m25).device) > 0, torch.minimum(p22, m25), p22)
        m26 = function21(m9, nn.Linear(4, 4))
    """,
    "a function that keeps the shape": """
        m3 = F.dropout(torch.ones(4, 4), 0.5).unsqueeze(0)[0] * 1
        x = torch.eye(4, device="cuda").add(m3)
    """,
    "a loader whose parts are in different places": """
        m1 = torch.ones(4, 4)
        i6 = torch.ones(4, 4, device="cuda").argmax(dim=1)
        loader7 = DataLoader(TensorDataset(torch.cat([m1] * 2), torch.cat([i6] * 2)), batch_size=4)
        for x16, y17 in loader7:
            loss18 = F.cross_entropy(x16, y17)
    """,
    "an entry that is replaced keeps its place": """
        m3 = torch.ones(4, 4)
        net5 = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).cuda()
        a16 = {"a": m3, "b": m3}
        a16["a"] = a16["b"]
        for e27 in a16.values():
            m28 = net5(a16.get("a"))
            a16["b"] = a16["b"].cuda()
    """,
    "matrices that are stacked and summed up": """
        m2 = torch.matmul(torch.ones(4,4), torch.ones(4, 4, device="cpu"))
        m3 = torch.stack([m2, m2]).sum(0)
        m5 = m3+m3
        i25 = torch.arange(4).cuda()
        m5[i25] = 2.0
        m3[i25] = 2.0
        m4 = torch.ones(4,4,device="cpu")+ torch.ones(4,4)
        m4[i25] = 2.0
    """,
    "items of one list, each with all of them": """
        m2 = torch.ones(4, 4).cuda()
        ls3 = [torch.ones(4, 4), torch.ones(4, 4)]
        ls3[0] = m2
        for e16 in ls3:
            c17 = [part + e16 for part in ls3]
    """,
    "a module that moves what it made itself": """
        class Net4(nn.Module):
           def __init__(self):
               super().__init__()
               self.layer = nn.Linear(4, 4)
               self.part5 = torch.ones(())
           def forward(self, x):
               x = self.layer(x)
               x = x - self.part5.to(x.device)
               return x
        net9 = Net4()
        def function10(p11):
            return net9(p11)
        m13 = function10(torch.ones(4, 4))
        m18 = m13.cuda()
        m19 = m13.to(torch.float32)
        criterion20 = nn.BCEWithLogitsLoss(pos_weight=torch.ones(4, device="cuda")).to(device=m18.device)
        s21 = criterion20(m13, m19)
    """,
    "elsewhere in later rounds": """
        m1 = torch.ones(4, 4)
        m1 = m1.cuda()
        a4 = m1
        for n11 in range(3):
            a4.mul_(torch.ones((), device=m1.device))
            a4 = torch.ones(4, 4)
    """,
    "a condition that says the same twice": """
        flag2 = "word1" in sys.argv
        m3 = torch.ones(4, 4)
        def function4(p5, p6, p7=torch.ones(4, 4)):
            return m3
        for n17 in range(3):
            if not m3.is_cuda and not flag2:
                continue
            m3[torch.ones(4, 4, device="cuda") > 0] = 0.0
            m22 = function4(m3, torch.eye(4, device="cuda"), p7=m3)
            m3 = torch.ones(4, 4, device="cuda")
    """,
    "a loop that is left and begun again as there is an accelerator": """
        m1 = torch.ones(4, 4)
        e9 = 0
        while (e9 := e9 + 1) < 4:
            if torch.cuda.is_available():
                m1 = m1.cuda()
                continue
            break
        a19 = m1
        array25 = a19.detach().numpy()
    """,
    "one way out of a round behind the other": """
        m1 = torch.ones(4, 4)
        m2 = torch.ones(4, 4).cuda()
        for n11 in range(3):
            if torch.cuda.is_available():
                continue
            if n11 > 5:
                m1 = m1.to(m2.device)
                continue
        m1 + m2
    """,
    "a batch in the place of a tensor": """
        m1 = torch.ones(4, 4)
        v2 = m1.sum(0) * 1
        loader3 = DataLoader(TensorDataset(torch.ones(8, 4), torch.arange(8) % 4), batch_size=4)
        for x5, y6 in loader3:
            x5 = x5.cuda()
            m1[0] += v2
            m1, x5 = x5, m1
    """,
    "a list that grew on one path": """
        flag2 = "word1" in sys.argv
        m3 = torch.ones(4, 4)
        ls22 = [torch.ones(4, 4), torch.ones(4, 4)]
        if not flag2:
            ls22.append(torch.ones(4, 4).cuda())
        for e30 in ls22:
            if not flag2:
                continue
            u33 = e30.mm(m3)
    """,
    "a layer that keeps the number of dimensions": """
        net11 = nn.BatchNorm1d(4)
        m20 = net11(torch.eye(4)).unsqueeze(0)[0] * 1
        torch.index_select(m20, 0, torch.randint(0, 4, (4,), device="cuda")).cuda()
    """,
    "a negative tensor": """
        m2 = -torch.rand(4, 4)
        i3 = m2.argmax(dim=1)
        x= torch.index_select(torch.ones(4, 4, device="cuda"), 0, i3)
    """,
    "CUDA by another name, after a loop": """
        m4 = torch.ones(4, 4).cuda()
        ls8 = [torch.ones(4, 4), torch.ones(4, 4)]
        for n14 in range(2):
            m4 = torch.ones(4, 4, device="cuda:0")
        m35 = ls8[0] * m4
        m4 = torch.ones(4, 4).cuda()
        for n14 in range(2):
            if m4.device.type == "cuda":
                m4 = torch.ones(4, 4, device="cuda:0")
        m35 = ls8[0] * m4
    """,
    "tensors that change places": """
        m3 = torch.ones(4, 4, device="cuda").cpu() * torch.eye(4)
        m4 = torch.ones(4, 4)
        for n6 in range(3):
            m3, m4 = m4, m3
        m4[torch.arange(4)] = torch.ones(4, 4).cuda()
    """,
    "a number that goes elsewhere after the first round": """
        s2 = torch.tensor(1.0)
        p4 = torch.ones(4, 4)
        s7 = torch.tensor(1.0)
        for n in range(3):
            p4.mul_(s7)
            s7 = s2.cuda() * 2
    """,
    "rows that a list of numbers selects": """
        i = torch.tensor([3, 1, 0, 2])
        c = torch.ones(4, device="cuda")
        m1 = torch.ones(4, 4)[:, i]
        (m1.unsqueeze(0)[0]) + c
        m1 = torch.ones(4, 4)[:, i] @ torch.eye(4)
        (m1.unsqueeze(0)[0]) + c
    """,
    "a loop that ends with a break": """
        u5, u6 = torch.ones(4, 4), torch.ones(4, 4)
        ls35 = [F.embedding(torch.arange(4), u5), torch.ones(4, 4, device="cuda")]
        for e36 in ls35:
            m38 = u5 @ e36
            break
    """,
    "an attribute moved under another name": """
        m1 = torch.ones(4, 4).cuda()
        m2 = torch.ones(4, 4)
        u3 = torch.ones(4, 4, device="cuda")
        m7 = torch.ones(4, 4)
        class Net8(nn.Module):
            def __init__(self):
                super().__init__()
                self.part11 = m7

            def forward(self, x):
                x = x * self.part11
                a14 = self.part11
                a14 = a14.cuda()
        net16 = Net8().cuda()
        u33, u34 = m2, net16(u3)
    """,
    "a loop that returns in its first round": """
        def function8(p9, p10):
            for n13 in range(1):
                a16 = p10
                return a16
            return p9.cpu() * 2
        m22 = function8(torch.ones(4, 4, device="cuda"), p10=torch.eye(4, device="cuda"))
        m22.masked_fill_(torch.ones(4, 4) > 0, 1.0)
    """,
    "a condition under which no other round comes": """
        flag2 = "word1" in sys.argv
        m3 = torch.ones(4, 4).cuda()
        v4 = (m3.mean(dim=1) * 1).cuda()
        e11 = 0
        while (e11 := e11 + 1) < 4:
            m12 = m3.type_as(m3)
            if flag2:
                m12[0] += v4
                break
            m3 = torch.ones(4, 4)
    """,
    "a list made of the list of the round before": """
        m3 = torch.ones(4, 4).cuda()
        def function8(p9, p10):
            for n15 in range(2):
                p10 = [part + p9 for part in p10]
        ls29 = [torch.ones(4, 4), torch.ones(4, 4)]
        ls29.insert(0, function8(m3, ls29))
    """,
    "rounds that only a machine without accelerator has": """
        flag2 = "word1" in sys.argv
        m3 = torch.ones(4, 4)
        for n13 in range(3):
            m16 = torch.where(torch.ones(4, 4) > 0, m3, torch.tensor(0.0))
            if flag2:
                break
            if torch.cuda.is_available():
                continue
            m3 = torch.minimum(torch.rand(4, 4, device="cuda"), torch.ones(4, 4, device="cuda"))
    """,
    "a move dropped at the end of a round": """
        flag2 = "word1" in sys.argv
        m4 = torch.ones(4, 4)
        ls6 = [m4.relu(), torch.ones(4, 4, device="cuda")]
        a7 = m4
        for n11 in range(3):
            a7 = (m4 if flag2 else a7)
            for n13, e12 in enumerate(ls6):
                a14 = ls6
                ls6[0] = a7.to(device=a7.device)
                m15 = a14[0] * e12
            m4.cuda()
    """,
    "how a list begins that a loop has made longer": """
        m3 = torch.ones(4, 4)
        ls11 = [torch.ones(4, 4), torch.ones(4, 4)]
        m14 = torch.ones(4, 4)
        m15 = m3.mm(m14)
        m16 = m3.cuda()
        for n18 in range(2):
            ls11.extend([m16])
            m15 = m15.cuda()
        a19 = ls11
        m20 = a19[0] * m15
    """,
    "how a list begins that one path has made longer": """
        flag2 = "word1" in sys.argv
        m3 = torch.ones(4, 4)
        m4 = m3.to(m3.device)
        ls10 = [torch.ones(4, 4), torch.ones(4, 4)]
        if not flag2:
            m4.add_(torch.minimum(m3, m4))
        else:
            ls10.extend([m4])
        a14 = ls10
        ls10[0] = torch.arange(16.0, device="cuda").view(4, 4)
        m15 = a14[0] * m3
    """,
    "a third item of one of two kinds": """
        m3 = torch.ones(4, 4)
        device11 = "cuda" if torch.cuda.is_available() else "cpu"
        ls12 = [m3.to(device11), m3]
        ls12.extend([m3.to(device11)])
        m17 = sum([part * 2 for part in ls12])
    """,
    "a list that grows at its beginning": """
        m2 = torch.ones(4, 4).cuda()
        m3 = torch.ones(4, 4)
        ls4 = [torch.ones(4, 4), torch.ones(4, 4)]
        a6 = ls4
        ls4[0] = m2
        for n9 in range(4):
            a6.insert(0, m3)
            m7 = torch.stack([part * 2 for part in ls4]).sum(0)
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
