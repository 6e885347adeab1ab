"""peft: LoRA adapters on a tiny Llama with random weights, in a loop of its own."""

import torch
from peft import LoraConfig, get_peft_model
from torch.utils.data import DataLoader, TensorDataset
from transformers import LlamaConfig, LlamaForCausalLM


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4
    )
    model = get_peft_model(LlamaForCausalLM(config), LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))
    model.to(device)
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], lr=1e-2)
    loader = DataLoader(TensorDataset(torch.randint(0, 64, (24, 12))), batch_size=4)
    model.train()
    for (tokens,) in loader:
        tokens = tokens.to(device)
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("loss", loss.item())
    with torch.no_grad():
        print("merged", model.merge_and_unload()(tokens).logits.sum().item())


if __name__ == "__main__":
    main()
