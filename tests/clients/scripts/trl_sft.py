"""TRL: `SFTTrainer` on a tiny GPT-2 with random weights."""

import tempfile

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

WORDS = "the loss of a step falls while tensors move from host to device and back again".split()


def tokenizer():
    made = Tokenizer(
        models.WordLevel({word: number for number, word in enumerate(["<pad>", "<unk>", *WORDS])}, "<unk>")
    )
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", unk_token="<unk>", eos_token="<pad>")


def main():
    torch.manual_seed(0)
    texts = [" ".join(WORDS[each : each + 8]) for each in range(16)]
    model = GPT2LMHeadModel(
        GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=32, n_positions=32, bos_token_id=0, eos_token_id=0)
    )
    with tempfile.TemporaryDirectory() as folder:
        arguments = SFTConfig(
            folder,
            max_length=16,
            per_device_train_batch_size=2,
            max_steps=8,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            bf16=False,
            gradient_checkpointing=False,
        )
        trainer = SFTTrainer(
            model,
            arguments,
            train_dataset=Dataset.from_dict({"text": texts}),
            processing_class=tokenizer(),
        )
        trainer.train()
    for entry in trainer.state.log_history:
        if "loss" in entry:
            print("loss", entry["loss"], entry["grad_norm"])


if __name__ == "__main__":
    main()
