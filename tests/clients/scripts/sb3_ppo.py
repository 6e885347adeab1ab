"""Stable-Baselines3: PPO on CartPole for two rollouts."""

import torch
from stable_baselines3 import PPO


def main():
    model = PPO("MlpPolicy", "CartPole-v1", n_steps=64, batch_size=32, n_epochs=2, seed=0, device="auto")
    model.learn(128)
    with torch.no_grad():
        print("sum", sum(each.double().abs().sum().item() for each in model.policy.parameters()))


if __name__ == "__main__":
    main()
