"""Scripts that die of a mismatch of another kind, and some that die of something else."""

from __future__ import annotations

from tests.auditor.mismatches import case

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
x | device | input
""",
)

case(
    "rnn input",
    """
rnn = nn.LSTM(8, 3).to(device)
rnn(torch.randn(2, 1, 8))
""",
    at="rnn(torch.randn(2, 1, 8))",
    module="LSTM",
    parties="""
torch.randn(2, 1, 8) | cpu | input
rnn.weight_ih_l0 | device | parameter
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


case(
    "result of a helper",
    """
def positions():
    return torch.arange(4.0)
def step(x):
    return x.mul(positions())
step(torch.ones(4, device=device))
""",
    at="return x.mul(positions())",
    module="",
    parties="""
positions() | cpu | variable
x | device | variable
""",
)

case(
    "added in place",
    """
def noise():
    return torch.rand(4, device=device)
total = torch.zeros(4)
total += noise()
""",
    at="total += noise()",
    module="",
    parties="""
total | cpu | variable
    `torch.zeros` makes it on the CPU, since no `device=` is given
    at: total = torch.zeros(4)
noise() | device | variable
""",
)

case(
    "made on the device",
    """
weights = torch.ones(4)
torch.cat([torch.zeros(4, device=device), weights])
""",
    at="torch.cat([torch.zeros(4, device=device), weights])",
    module="",
    parties="""
weights | cpu | variable
    `torch.ones` makes it on the CPU, since no `device=` is given
    at: weights = torch.ones(4)
torch.zeros(4, device=device) | device | variable
""",
)

case(
    "moved to where another is",
    """
x, y = torch.ones(4, device=device), torch.ones(4)
z = torch.zeros(4).to(x.device) + y
""",
    at="z = torch.zeros(4).to(x.device) + y",
    module="",
    parties="""
y | cpu | variable
    `torch.ones` makes it on the CPU, since no `device=` is given
    at: x, y = torch.ones(4, device=device), torch.ones(4)
torch.zeros(4).to(x.device) | device | variable
""",
)

case(
    "one of two",
    """
def noise():
    return torch.rand(4)
def step():
    x, y = torch.ones(4, device=device), torch.ones(4)
    return (x if len(y) else y) + noise()
step()
""",
    # which branch was taken is not known, so nobody is blamed
    at="return (x if len(y) else y) + noise()",
    module="",
    parties="""
 | device | variable
 | cpu | variable
""",
)

case(
    "written at an index",
    """
table = torch.zeros(3, 4, device=device)
table[torch.tensor([0, 1], device=device)] = torch.ones(2, 4)
""",
    at="table[torch.tensor([0, 1], device=device)] = torch.ones(2, 4)",
    module="",
    parties="""
torch.ones(2, 4) | cpu | variable
    `torch.ones` makes it on the CPU, since no `device=` is given
    at: table[torch.tensor([0, 1], device=device)] = torch.ones(2, 4)
table | device | variable
torch.tensor([0, 1], device=device) | device | variable
""",
)

SILENT = {
    "no mismatch": "torch.ones(2, 3, device=device) @ torch.ones(2, 3, device=device)\n",
    "a checkpoint": "raise RuntimeError('Attempting to deserialize object on a CUDA device but "
    "torch.cuda.is_available() is False.')\n",
    "out of memory": "raise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 2.00 GiB.')\n",
    "the output of a process": """
said = "Traceback (most recent call last):\\n  y.to('cuda:7')\\nE: Expected all tensors to be on the same device"
raise RuntimeError(f"{device}: {said}")
""",
    "an assertion on a text": "text = 'found cpu, but all have to be on the same device'\nassert not text, text\n",
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
