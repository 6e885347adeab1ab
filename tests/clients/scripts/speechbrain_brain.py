"""SpeechBrain: a `Brain` that fits features to labels, with its own loaders and checkpoints off."""

import speechbrain as sb
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(sb.Brain):
    def compute_forward(self, batch, stage):
        return self.modules.model(batch[0].to(self.device))

    def compute_objectives(self, predictions, batch, stage):
        return nn.functional.cross_entropy(predictions, batch[1].to(self.device))

    def on_stage_end(self, stage, stage_loss, epoch=None):
        print("loss", float(stage_loss))


def main():
    torch.manual_seed(0)
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(sb.nnet.linear.Linear(n_neurons=16, input_size=10), nn.ReLU(), nn.Linear(16, 3))
    brain = Classifier(
        {"model": model}, lambda parameters: torch.optim.SGD(parameters, 0.1), run_opts={"device": device}
    )
    data = TensorDataset(torch.randn(32, 10), torch.randint(0, 3, (32,)))
    loader = DataLoader(data, batch_size=8)
    brain.fit(range(2), loader, loader, progressbar=False)


if __name__ == "__main__":
    main()
