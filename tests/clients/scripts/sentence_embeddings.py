"""sentence-transformers: a tiny BERT with pooling, trained on pairs, then used to encode."""

import tempfile
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer, losses, models
from torch.utils.data import DataLoader
from transformers import BertConfig, BertModel, BertTokenizerFast

WORDS = "the loss of a step falls while tensors move from host to device and back again".split()


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = Path(folder, "vocab.txt")
        vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
        BertTokenizerFast(str(vocabulary)).save_pretrained(folder)
        config = BertConfig(
            vocab_size=32, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
        )
        BertModel(config).save_pretrained(folder)
        word = models.Transformer(folder, max_seq_length=16)
        model = SentenceTransformer(modules=[word, models.Pooling(32)])
    device = model.device
    loss_function = losses.MultipleNegativesRankingLoss(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    pairs = [(" ".join(WORDS[each : each + 4]), " ".join(WORDS[each + 2 : each + 6])) for each in range(12)]
    for batch in DataLoader(pairs, batch_size=4):
        features = [model.tokenize(list(side)) for side in batch]
        features = [{name: one[name].to(device) for name in ("input_ids", "attention_mask")} for one in features]
        loss = loss_function(features, labels=None)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("loss", loss.item())
    found = model.encode([first for first, _ in pairs], batch_size=4, show_progress_bar=False)
    print("norm", float(abs(found).sum()))


if __name__ == "__main__":
    main()
