"""torchtune: a tiny Llama with LoRA from its builders, in a recipe's loop with accumulated gradients."""

import torch
from torch.utils.data import DataLoader, TensorDataset
from torchtune.models.llama3 import lora_llama3
from torchtune.modules.loss import CEWithChunkedOutputLoss
from torchtune.modules.peft import get_adapter_params, set_trainable_params


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = lora_llama3(
        lora_attn_modules=["q_proj", "v_proj"],
        vocab_size=64,
        num_layers=2,
        num_heads=4,
        num_kv_heads=2,
        embed_dim=32,
        max_seq_len=32,
        intermediate_dim=64,
        lora_rank=4,
        lora_alpha=8,
    ).to(device)
    set_trainable_params(model, get_adapter_params(model))
    loss_function = CEWithChunkedOutputLoss(num_output_chunks=2)
    model.set_num_output_chunks(2)
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-2)
    loader = DataLoader(TensorDataset(torch.randint(0, 64, (24, 16))), batch_size=4)
    running = 0.0
    for number, (tokens,) in enumerate(loader):
        tokens = tokens.to(device)
        labels = torch.hstack((tokens[..., 1:], torch.full((len(tokens), 1), -100, device=device)))
        loss = loss_function(model(tokens), labels) / 2
        running += loss
        loss.backward()
        if number % 2:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            print("loss", running.item())
            running = 0.0


if __name__ == "__main__":
    main()
