"""Self-play of noughts and crosses: two copies of a value network choose moves, and the games teach it."""

import copy

import torch
from torch import nn

LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


def winner(board):
    return next((board[a] for a, b, c in LINES if board[a] and board[a] == board[b] == board[c]), 0)


@torch.no_grad()
def play(players, device):
    board, states = [0] * 9, []
    for turn in range(9):
        side = 1 if turn % 2 == 0 else -1
        moves = [place for place in range(9) if not board[place]]
        after = [[*board[:move], side, *board[move + 1 :]] for move in moves]
        values = players[turn % 2](torch.tensor(after, dtype=torch.float32).to(device))[:, 0] * side
        board = after[int(values.argmax())]
        states.append(board)
        if winner(board):
            break
    return states, winner(board)


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 1), nn.Tanh()).to(device)
    opponent = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for game in range(6):
        states, result = play((model, opponent), device)
        x = torch.tensor(states, dtype=torch.float32).to(device)
        loss = (model(x)[:, 0] - result).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", loss.item(), "winner", result)
        if game % 2:
            opponent.load_state_dict(model.state_dict())


if __name__ == "__main__":
    main()
