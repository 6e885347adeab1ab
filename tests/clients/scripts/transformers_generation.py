"""transformers: a tiny Llama writes on, greedily and by beams, with a cache of keys and values."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        pad_token_id=0,
        eos_token_id=None,
    )
    model = LlamaForCausalLM(config).to(device).eval()
    for _ in range(3):
        prompt = torch.randint(1, 64, (2, 6)).to(device)
        greedy = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=8, do_sample=False)
        beams = model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=4, num_beams=2, do_sample=False
        )
        print("tokens", greedy[0].tolist(), beams[0].tolist())


if __name__ == "__main__":
    main()
