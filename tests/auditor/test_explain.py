"""Explanations of mismatches: realistic scripts, each with what somebody has to be told to mend it."""

from __future__ import annotations

import functools
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.auditor import explaining  # noqa: E402 -- needs torch

pytestmark = pytest.mark.skipif(
    not hasattr(torch.utils.backend_registration, "_setup_privateuseone_for_python_backend"),
    reason="the simulated accelerator needs torch 2.10",
)

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

case(
    "conv model not moved",
    """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    def forward(self, x):
        return self.features(x)
def main():
    net = Net()
    images = torch.randn(1, 3, 8, 8).to(device)
    net(images)
main()
""",
    at="return self.features(x)",
    module="features.0 Conv2d",
    parties="""
features.0.weight | cpu | parameter
    all of `net` is on the CPU: it was never moved, or moved back
    at: net = Net()
x | device | input
""",
)

case(
    "dropped move",
    """
def step(model, x, device):
    x.to(device)
    return model(x)
model = nn.Linear(8, 3).to(device)
batch = torch.randn(4, 8)
step(model, batch, device)
""",
    at="return model(x)",
    module="Linear",
    parties="""
x | cpu | input
    the result of `x.to(device)` is dropped: `.to()` of a tensor returns the moved one
    at: x.to(device)
model.weight | device | parameter
""",
)

case(
    "optimizer state",
    """
model = nn.Linear(8, 3)
opt = torch.optim.Adagrad(model.parameters())
model.to(device)
model(torch.randn(4, 8).to(device)).sum().backward()
opt.step()
""",
    at="opt.step()",
    module="",
    parties="""
state of Adagrad['sum'] | cpu | variable
    `Adagrad` got this state while the parameter was there, which has moved since
parameter | device | parameter
""",
)

case(
    "mha mask",
    """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, batch_first=True, dropout=0.0)
        self.mask = nn.Transformer.generate_square_subsequent_mask(5)
    def forward(self, x):
        return self.layer(x, src_mask=self.mask)
Net().to(device)(torch.randn(2, 5, 8).to(device))
""",
    at="return self.layer(x, src_mask=self.mask)",
    module="layer.self_attn MultiheadAttention",
    parties="""
self.mask | cpu | attribute
    `mask` is a plain attribute, not a buffer, so `.to()` did not move it
    at: self.mask = nn.Transformer.generate_square_subsequent_mask(5)
layer.self_attn.in_proj_weight | device | parameter
query | device | input
""",
)

case(
    "numpy",
    """
model = nn.Linear(8, 3).to(device)
preds = model(torch.randn(4, 8).to(device)).detach()
a = preds.numpy()
""",
    at="a = preds.numpy()",
    module="",
    parties="""
preds | device | variable
    NumPy reads the memory of the host only
    at: preds = model(torch.randn(4, 8).to(device)).detach()
""",
)

case(
    "two gpus",
    """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8).to(device)
        self.b = nn.Linear(8, 8).to(other)
    def forward(self, x):
        return self.b(self.a(x))
Net()(torch.randn(4, 8).to(device))
""",
    at="return self.b(self.a(x))",
    module="b Linear",
    parties="""
self.a(x) | device | input
b.weight | other | parameter
""",
)

case(
    "trainer attr",
    """
class Trainer:
    def __init__(self, model):
        self.model = model.to(device)
        self.weights = torch.tensor([1., 2., 3.])
    def step(self, x, y):
        out = self.model(x)
        return F.cross_entropy(out, y, weight=self.weights)
Trainer(nn.Linear(8, 3)).step(torch.randn(4, 8).to(device), torch.tensor([0, 1, 2, 0]).to(device))
""",
    at="return F.cross_entropy(out, y, weight=self.weights)",
    module="",
    parties="""
self.weights | cpu | variable
    `torch.tensor` makes it on the CPU, since no `device=` is given
    at: self.weights = torch.tensor([1., 2., 3.])
out | device | variable
y | device | variable
""",
)

case(
    "caught",
    """
from_inner = None
def f():
    try:
        torch.randn(3).to(device) + torch.randn(3)
    except RuntimeError as e:
        raise ValueError('bad batch') from e
f()
""",
    at="torch.randn(3).to(device) + torch.randn(3)",
    module="",
    parties="""
torch.randn(3) | cpu | variable
    `torch.randn` makes it on the CPU, since no `device=` is given
    at: torch.randn(3).to(device) + torch.randn(3)
torch.randn(3).to(device) | device | variable
""",
)

case(
    "vae eps",
    """
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.mu = nn.Linear(8, 4)
    def reparam(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn(std.shape)
        return mu + eps * std
    def forward(self, x):
        mu = self.mu(x)
        return self.reparam(mu, mu)
VAE().to(device)(torch.randn(4, 8).to(device))
""",
    at="return mu + eps * std",
    module="VAE",
    parties="""
eps | cpu | variable
    `torch.randn` makes it on the CPU, since no `device=` is given
    at: eps = torch.randn(std.shape)
std | device | variable
""",
)

case(
    "kwarg batch",
    """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(10, 8)
        self.out = nn.Linear(8, 2)
    def forward(self, input_ids=None, attention_mask=None):
        h = self.emb(input_ids)
        return self.out(h * attention_mask.unsqueeze(-1))
model = Net().to(device)
def collate(): return {'input_ids': torch.tensor([[1, 2]]), 'attention_mask': torch.ones(1, 2)}
batch = collate()
batch['input_ids'] = batch['input_ids'].to(device)
model(**batch)
""",
    at="return self.out(h * attention_mask.unsqueeze(-1))",
    module="Net",
    parties="""
attention_mask | cpu | variable
    at: batch = collate()
h | device | variable
""",
)

case(
    "late head",
    """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(8, 8)
        self.head = None
    def forward(self, x):
        h = self.enc(x)
        if self.head is None:
            self.head = nn.Linear(8, 2)
        return self.head(h)
Net().to(device)(torch.randn(4, 8).to(device))
""",
    at="return self.head(h)",
    module="head Linear",
    parties="""
head.weight | cpu | parameter
    `self.head` is assigned in `Net.forward`, after the model had been moved
    at: self.head = nn.Linear(8, 2)
h | device | input
""",
)

case(
    "dp",
    """
model = nn.DataParallel(nn.Linear(8, 3), device_ids=[0, 1])
model(torch.randn(4, 8).to(device))
""",
    at="model(torch.randn(4, 8).to(device))",
    module="",
    parties="""
weight | cpu | parameter
    `DataParallel` wants the module on device before it wraps it; all of `Linear` is on the CPU
device_ids[0] | device | variable
""",
)


SILENT = {
    "no mismatch": "torch.ones(2, 3, device=device) @ torch.ones(2, 3, device=device)\n",
    "a checkpoint": "raise RuntimeError('Attempting to deserialize object on a CUDA device but "
    "torch.cuda.is_available() is False.')\n",
    "out of memory": "raise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 2.00 GiB.')\n",
    "user code is not run": """
class Batch:
    @property
    def x(self):
        raise SystemExit("the audit ran the script's code")
    def __getattr__(self, name):
        raise SystemExit("the audit ran the script's code")
    def __getitem__(self, key):
        raise SystemExit("the audit ran the script's code")
batch = Batch()
def compute(value):
    raise ValueError("no tensor")
compute(torch.ones(2, device=device)) + batch.x + batch["x"]
""",
}
"""Scripts that fail of something else."""


@functools.cache
def outcomes() -> dict[str, Any]:
    scripts = {name: code for name, (code, *_) in CASES.items()}
    return explaining.explained({**scripts, **{f"3.10 {name}": code for name, code in scripts.items()}, **SILENT})


def shown(party: dict[str, Any]) -> str:
    lines = [f"{party['text']} | {party['device']} | {party['role']}"]
    lines += [f"    {party['why']}"] if party["why"] else []
    lines += [f"    at: {party['origin']}"] if party["origin"] else []
    text = "".join(f"{line}\n" for line in lines)
    return text.replace("devlintsim:0", "device").replace("devlintsim:1", "other")


@pytest.mark.parametrize("name", CASES)
def test_explained(name: str) -> None:
    _, at, module, parties = CASES[name]
    found = outcomes()[name]
    assert "unexplained" not in found, found["unexplained"]
    assert found["frame"] == at
    assert f"{found['module']} {found['module_class']}".strip() == module
    assert "".join(shown(party) for party in found["parties"]) == parties


@pytest.mark.parametrize("name", CASES)
def test_explained_where_only_the_line_is_known(name: str) -> None:
    """As on Python 3.10; who is to blame, and why, is the same."""
    _, at, _, parties = CASES[name]
    found = outcomes()[f"3.10 {name}"]
    assert found["frame"] == at
    blamed = "".join(shown(party) for party in found["parties"] if party["why"] or party["origin"])
    assert parties.startswith(blamed)


@pytest.mark.parametrize("name", SILENT)
def test_other_failures_are_not_explained(name: str) -> None:
    assert "Error" in outcomes()[name]["unexplained"]
