"""x-transformers: a small language model, trained for some steps, that then writes on by itself."""

import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoregressiveWrapper(
        TransformerWrapper(num_tokens=32, max_seq_len=32, attn_layers=Decoder(dim=32, depth=2, heads=2))
    ).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(5):
        loss = model(torch.randint(0, 32, (4, 24)).to(device))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("loss", loss.item())
    found = model.generate(torch.zeros(1, 1, dtype=torch.long, device=device), 12, temperature=0.0)
    print("tokens", *found[0].tolist())


if __name__ == "__main__":
    main()
