"""A small GPT in plain torch, and the synthetic text that it learns."""
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    """Pre-norm attention and a feed-forward four times as wide."""

    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.project = nn.Linear(hidden, hidden)
        self.feed_forward_norm = nn.LayerNorm(hidden)
        self.widen = nn.Linear(hidden, 4 * hidden)
        self.narrow = nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        batch, length, hidden = x.shape
        split = self.qkv(self.attention_norm(x)).view(batch, length, 3, self.heads, hidden // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.project(attended.transpose(1, 2).reshape(batch, length, hidden))
        return x + self.narrow(functional.gelu(self.widen(self.feed_forward_norm(x))))


class Gpt(nn.Module):
    """forward(tokens): the mean cross-entropy, in nats, of each next token."""

    def __init__(self, vocabulary, sequence, hidden, layers, heads, checkpoint_activations=False):
        super().__init__()
        self.checkpoint_activations = checkpoint_activations
        self.token = nn.Embedding(vocabulary, hidden)
        self.position = nn.Embedding(sequence, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, vocabulary, bias=False)

    def forward(self, tokens):
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        x = self.token(inputs) + self.position(torch.arange(inputs.shape[1], device=tokens.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpoint_activations else block(x)
        logits = self.head(self.norm(x)).float()
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def sample(index, vocabulary, sequence, seed):
    """Returns sequence number `index` of the text, sequence + 1 tokens. Each token follows from the one before by a rule
    that the model can learn; one in eight is random.  A sequence depends only on its number, so a global batch has the
    same text however it is split into ranks and micro-batches."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + index)
    draws = torch.randint(vocabulary, (sequence + 1,), generator=generator).tolist()
    fresh = torch.randint(8, (sequence + 1,), generator=generator).tolist()
    tokens = draws[:1]
    for draw, die in zip(draws[1:], fresh[1:]):
        tokens.append(draw if die == 0 else (3 * tokens[-1] + 1) % vocabulary)
    return torch.tensor(tokens)
