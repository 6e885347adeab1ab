"""Scripts that die of a mismatch in a module or a training step, and what is to be said of it."""

from __future__ import annotations

CASES: dict[str, tuple[str, str, str, str]] = {}
"""By name: the script; the line that fails; path and class of the module that ran; parties, those to blame first.

A party is its text, device and role, and, where it is to blame, why and the line of code where that was decided.
"""


def case(name: str, code: str, at: str, module: str, parties: str) -> None:
    CASES[name] = (code.removeprefix("\n"), at, module, parties.removeprefix("\n"))


case(
    "heads list",
    """
class Enc(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)
        self.heads = [nn.Linear(8, 2) for _ in range(2)]
    def forward(self, x):
        return self.heads[0](self.lin(x))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Enc()
    def forward(self, x): return self.encoder(x)
model = Net().to(device)
model(torch.randn(4, 8).to(device))
""",
    at="return self.heads[0](self.lin(x))",
    module="encoder.heads.0 Linear",
    parties="""
encoder.heads.0.weight | cpu | parameter
    `heads` is a plain list, so `.to()` did not move the modules in it
    at: self.heads = [nn.Linear(8, 2) for _ in range(2)]
self.lin(x) | device | input
""",
)

case(
    "dict modules",
    """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(8, 8)
        self.heads = {'a': nn.Linear(8, 2), 'b': nn.Linear(8, 3)}
    def forward(self, x):
        h = self.enc(x)
        return {k: head(h) for k, head in self.heads.items()}
model = Net().to(device)
model(torch.randn(4, 8).to(device))
""",
    at="return {k: head(h) for k, head in self.heads.items()}",
    module="heads.a Linear",
    parties="""
heads.a.weight | cpu | parameter
    `heads` is a plain dict, so `.to()` did not move the modules in it
    at: self.heads = {'a': nn.Linear(8, 2), 'b': nn.Linear(8, 3)}
h | device | input
""",
)

case(
    "pos",
    """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(8, 8)
        self.pos = torch.zeros(8)
    def forward(self, x):
        return self.enc(x) + self.pos
model = Net().to(device)
model(torch.randn(4, 8).to(device))
""",
    at="return self.enc(x) + self.pos",
    module="Net",
    parties="""
self.pos | cpu | attribute
    `pos` is a plain attribute, not a buffer, so `.to()` did not move it
    at: self.pos = torch.zeros(8)
self.enc(x) | device | variable
""",
)

case(
    "mask in forward",
    """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(8, 8)
    def forward(self, x):
        h = self.enc(x)
        mask = torch.ones(4, 8)
        mask[:, 3:] = 0
        return h * mask
model = Net().to(device)
model(torch.randn(4, 8).to(device))
""",
    at="return h * mask",
    module="Net",
    parties="""
mask | cpu | variable
    `torch.ones` makes it on the CPU, since no `device=` is given
    at: mask = torch.ones(4, 8)
h | device | variable
""",
)

case(
    "loss weight",
    """
def train(device):
    model = nn.Linear(8, 3).to(device)
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([1., 2., 3.]))
    for x, y in [(torch.randn(4, 8), torch.tensor([0, 1, 2, 0]))]:
        x, y = x.to(device), y.to(device)
        loss = criterion(model(x), y)
        loss.backward()
train(device)
""",
    at="loss = criterion(model(x), y)",
    module="CrossEntropyLoss",
    parties="""
criterion.weight | cpu | buffer
    all of `criterion` is on the CPU: it was never moved, or moved back
    at: criterion = nn.CrossEntropyLoss(weight=torch.tensor([1., 2., 3.]))
model(x) | device | input
y | device | input
""",
)

case(
    "target not moved",
    """
def train(device, loader):
    model = nn.Linear(8, 3).to(device)
    criterion = nn.CrossEntropyLoss()
    for x, y in loader:
        x = x.to(device)
        loss = criterion(model(x), y)
        loss.backward()
train(device, [(torch.randn(4, 8), torch.tensor([0, 1, 2, 0]))])
""",
    at="loss = criterion(model(x), y)",
    module="CrossEntropyLoss",
    parties="""
y | cpu | input
    it comes from the loop over `loader` as it is, and was never moved
    at: for x, y in loader:
model(x) | device | input
""",
)

case(
    "input not moved",
    """
model = nn.Sequential(nn.Linear(8, 3), nn.ReLU()).to(device)
loader = [(torch.randn(4, 8), torch.tensor([0, 1, 2, 0]))]
for i, (x, y) in enumerate(loader):
    out = model(x)
""",
    at="out = model(x)",
    module="0 Linear",
    parties="""
x | cpu | input
    it comes from the loop over `loader` as it is, and was never moved
    at: for i, (x, y) in enumerate(loader):
0.weight | device | parameter
""",
)

case(
    "batch dict",
    """
def train(device, loader):
    model = nn.Linear(8, 3).to(device)
    for batch in loader:
        batch['x'] = batch['x'].to(device)
        out = model(batch['x'])
        loss = F.cross_entropy(out, batch['labels'])
train(device, [{'x': torch.randn(4, 8), 'labels': torch.tensor([0, 1, 2, 0])}])
""",
    at="loss = F.cross_entropy(out, batch['labels'])",
    module="",
    parties="""
batch['labels'] | cpu | variable
    it comes from the loop over `loader` as it is, and was never moved
    at: for batch in loader:
out | device | variable
""",
)

case(
    "hidden",
    """
class RNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 16, batch_first=True)
    def init_hidden(self, n):
        return torch.zeros(1, n, 16), torch.zeros(1, n, 16)
    def forward(self, x, hidden):
        out, hidden = self.rnn(x, hidden)
        return out
model = RNN().to(device)
hidden = model.init_hidden(4)
model(torch.randn(4, 5, 8).to(device), hidden)
""",
    at="out, hidden = self.rnn(x, hidden)",
    module="rnn LSTM",
    parties="""
hidden[0] | cpu | input
    `model.init_hidden()` returns it, and there `torch.zeros` makes it on the CPU, since no `device=` is given
    at: return torch.zeros(1, n, 16), torch.zeros(1, n, 16)
hidden[1] | cpu | input
    `model.init_hidden()` returns it, and there `torch.zeros` makes it on the CPU, since no `device=` is given
    at: return torch.zeros(1, n, 16), torch.zeros(1, n, 16)
rnn.weight_ih_l0 | device | parameter
x | device | input
""",
)

case(
    "metric",
    """
class Accuracy(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('total', torch.zeros(3))
    def update(self, out, y):
        self.total += F.one_hot(out.argmax(-1), 3).sum(0)
model = nn.Linear(8, 3).to(device)
metric = Accuracy()
out = model(torch.randn(4, 8).to(device))
metric.update(out, torch.tensor([1]))
""",
    at="self.total += F.one_hot(out.argmax(-1), 3).sum(0)",
    module="Accuracy",
    parties="""
self.total | cpu | buffer
    all of `metric` is on the CPU: it was never moved, or moved back
    at: metric = Accuracy()
out | device | variable
""",
)

case(
    "cat zeros",
    """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(8, 8)
    def forward(self, x):
        x = torch.cat([x, torch.zeros(4, 1)], dim=1)
        return self.enc(x)
model = Net().to(device)
model(torch.randn(4, 7).to(device))
""",
    at="x = torch.cat([x, torch.zeros(4, 1)], dim=1)",
    module="Net",
    parties="""
torch.zeros(4, 1) | cpu | variable
    `torch.zeros` makes it on the CPU, since no `device=` is given
    at: x = torch.cat([x, torch.zeros(4, 1)], dim=1)
x | device | variable
""",
)

case(
    "index",
    """
scores = torch.randn(10)
model = nn.Linear(8, 3).to(device)
idx = model(torch.randn(4, 8).to(device)).argmax(-1)
best = scores[idx]
""",
    at="best = scores[idx]",
    module="",
    parties="""
scores | cpu | variable
    `torch.randn` makes it on the CPU, since no `device=` is given
    at: scores = torch.randn(10)
idx | device | variable
""",
)

case(
    "embedding",
    """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 4)
    def forward(self, ids, position):
        return self.embed(ids)
model = Net().to(device)
batch = torch.tensor([[1, 2]])
batch.to(device)
model(batch, position=None)
""",
    at="return self.embed(ids)",
    module="embed Embedding",
    parties="""
ids | cpu | input
    the result of `batch.to(device)` is dropped: `.to()` of a tensor returns the moved one
    at: batch.to(device)
embed.weight | device | parameter
""",
)
