"""Lightning's own command line with a small transformer on random tokens: `train_lightning.py fit --trainer.devices 2 ...`."""
import time

import torch
from lightning.pytorch import LightningDataModule, LightningModule
from lightning.pytorch.cli import LightningCLI
from torch import nn
from torch.utils.checkpoint import checkpoint

VOCABULARY = 1024
TOKENS = 64


class Sequences(torch.utils.data.Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        return torch.randint(0, VOCABULARY, (TOKENS,), generator=torch.Generator().manual_seed(index))


class Data(LightningDataModule):
    def __init__(self, batch_size: int = 1, workers: int = 0):
        super().__init__()
        self.batch_size, self.workers = batch_size, workers

    def train_dataloader(self):
        return torch.utils.data.DataLoader(Sequences(), batch_size=self.batch_size, num_workers=self.workers)


class Gpt(LightningModule):
    def __init__(self, hidden: int = 128, layers: int = 4, recompute: bool = False):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, hidden)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(hidden, 4, 4 * hidden, dropout=0, batch_first=True,
                                                               norm_first=True) for _ in range(layers))
        self.head = nn.Linear(hidden, VOCABULARY)
        self.recompute = recompute
        self.begin = time.perf_counter()

    def training_step(self, tokens, _):
        mask = nn.Transformer.generate_square_subsequent_mask(TOKENS)
        x = self.embedding(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, mask, use_reentrant=False) if self.recompute else block(x, mask)
        loss = nn.functional.cross_entropy(self.head(x)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def on_train_batch_end(self, outputs, batch, _):
        now = time.perf_counter()
        self.log("samples_per_s", self.trainer.world_size * len(batch) / (now - self.begin), prog_bar=True)
        self.begin = now

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


if __name__ == "__main__":
    LightningCLI(Gpt, Data, save_config_callback=None)  # it would refuse to write its config.yaml a second time
