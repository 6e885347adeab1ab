"""TorchRL: a DQN loss on a replay buffer of random transitions."""

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.data import LazyTensorStorage, ReplayBuffer
from torchrl.modules import QValueActor
from torchrl.objectives import DQNLoss, SoftUpdate


def transitions(count):
    return TensorDict(
        {
            "observation": torch.randn(count, 4),
            "action": nn.functional.one_hot(torch.randint(0, 2, (count,)), 2),
            "next": {
                "observation": torch.randn(count, 4),
                "reward": torch.rand(count, 1),
                "done": torch.zeros(count, 1, dtype=torch.bool),
                "terminated": torch.zeros(count, 1, dtype=torch.bool),
            },
        },
        [count],
    )


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = TensorDictModule(
        nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2)), ["observation"], ["action_value"]
    )
    actor = QValueActor(net, in_keys=["observation"], action_space="one-hot").to(device)
    loss_module = DQNLoss(actor, action_space="one-hot", delay_value=True).to(device)
    loss_module.make_value_estimator(gamma=0.9)
    updater = SoftUpdate(loss_module, eps=0.9)
    optimizer = torch.optim.Adam(loss_module.parameters(), lr=1e-2)
    buffer = ReplayBuffer(storage=LazyTensorStorage(64), batch_size=16)
    buffer.extend(transitions(64))
    for _ in range(6):
        batch = buffer.sample().to(device)
        loss = loss_module(batch)["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        updater.step()
        print("loss", loss.item())


if __name__ == "__main__":
    main()
