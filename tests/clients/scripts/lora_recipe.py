"""A recipe by its configuration, as torchtune's: adapters, checkpointed layers, accumulated gradients, a resume."""

import io
from functools import partial

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

CONFIG = {"layers": 2, "width": 32, "rank": 4, "batch": 4, "accumulate": 2, "epochs": 2, "lr": 1e-2, "clip": 1.0}


class LoRALinear(nn.Module):
    def __init__(self, width, rank):
        super().__init__()
        self.base = nn.Linear(width, width).requires_grad_(False)
        self.down, self.up = nn.Linear(width, rank, bias=False), nn.Linear(rank, width, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class Recipe:
    def __init__(self, config):
        self.config = config
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def setup(self):
        width = self.config["width"]
        self.embed = nn.Embedding(64, width).to(self.device)
        self.layers = nn.ModuleList(LoRALinear(width, self.config["rank"]) for _ in range(self.config["layers"]))
        self.layers.to(self.device)
        trained = [each for each in self.layers.parameters() if each.requires_grad]
        self.optimizer = torch.optim.AdamW(trained, lr=self.config["lr"])
        self.loader = DataLoader(TensorDataset(torch.randint(0, 64, (16, 12))), self.config["batch"])

    def loss(self, tokens):
        x = self.embed(tokens[:, :-1])
        for layer in self.layers:
            x = x + checkpoint(layer, x, use_reentrant=False)
        logits = nn.functional.linear(x, self.embed.weight)
        return nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    def train(self):
        for _ in range(self.config["epochs"]):
            for number, batch in enumerate(self.loader):
                (tokens,) = map(partial(torch.Tensor.to, device=self.device), batch)
                loss = self.loss(tokens)
                (loss / self.config["accumulate"]).backward()
                if number % self.config["accumulate"]:
                    nn.utils.clip_grad_norm_(self.layers.parameters(), self.config["clip"])
                    self.optimizer.step()
                    self.optimizer.zero_grad(set_to_none=True)
                    print("loss", loss.item())
            self.resume()

    def resume(self):
        kept = io.BytesIO()
        torch.save({"layers": self.layers.state_dict(), "optimizer": self.optimizer.state_dict()}, kept)
        kept.seek(0)
        state = torch.load(kept, map_location="cpu", weights_only=True)
        self.layers.load_state_dict(state["layers"])
        self.optimizer.load_state_dict(state["optimizer"])


if __name__ == "__main__":
    torch.manual_seed(0)
    recipe = Recipe(CONFIG)
    recipe.setup()
    recipe.train()
