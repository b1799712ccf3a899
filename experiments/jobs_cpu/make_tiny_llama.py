"""Makes the files that TRL's sft needs, without a download: a small Llama with random weights, a tokenizer of whole
words, a text.

usage: make_tiny_llama.py FOLDER      makes FOLDER/model and FOLDER/data
"""
import json
import random
import sys
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

WORDS = 1000
TOKENS = 64  # of a text with its end, so that all packed sequences are full


def save_tokenizer(folder):
    names = ["<unk>", "<s>", "</s>", *(f"word{i}" for i in range(WORDS))]
    tokenizer = Tokenizer(models.WordLevel({name: i for i, name in enumerate(names)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>",
                            pad_token="</s>").save_pretrained(folder)


def save_model(folder):
    config = LlamaConfig(vocab_size=1024, hidden_size=128, intermediate_size=384, num_hidden_layers=4,
                         num_attention_heads=4, use_cache=False, bos_token_id=1, eos_token_id=2, pad_token_id=2)
    LlamaForCausalLM(config).save_pretrained(folder)


def save_text(folder):
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(1)
    with open(folder / "train.jsonl", "w", encoding="utf-8") as file:
        for _ in range(2000):
            words = " ".join(f"word{chance.randrange(WORDS)}" for _ in range(TOKENS - 1))
            file.write(json.dumps({"text": words}) + "\n")


def main():
    folder = Path(sys.argv[1])
    save_tokenizer(folder / "model")
    save_model(folder / "model")
    save_text(folder / "data")


if __name__ == "__main__":
    main()
