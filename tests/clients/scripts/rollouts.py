"""REINFORCE on a walk of its own: a rollout of single forward passes, then one step of learning."""

import torch
from torch import nn


class Walk:
    def reset(self):
        self.place, self.left = 0, 12
        return [0.0, 1.0]

    def step(self, action):
        self.place += 1 if action else -1
        self.left -= 1
        return [self.place / 12, self.left / 12], float(self.place > 0), self.left == 0


@torch.no_grad()
def rollout(policy, walk, device, generator):
    seen, chosen, rewards = [], [], []
    state, done = walk.reset(), False
    while not done:
        logits = policy(torch.tensor(state, device=device))
        action = int(torch.multinomial(logits.softmax(-1).cpu(), 1, generator=generator))
        seen.append(state)
        chosen.append(action)
        state, reward, done = walk.step(action)
        rewards.append(reward)
    return torch.tensor(seen), torch.tensor(chosen), torch.tensor(rewards)


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    policy = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2)).to(device)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        states, actions, rewards = (each.to(device) for each in rollout(policy, Walk(), device, generator))
        returns = rewards.flip(0).cumsum(0).flip(0)
        picked = policy(states).log_softmax(-1).gather(1, actions[:, None])[:, 0]
        loss = -(picked * returns).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", loss.item(), "return", rewards.sum().item())


if __name__ == "__main__":
    main()
