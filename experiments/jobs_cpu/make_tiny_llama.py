"""Makes the files that the jobs need, without a download: a small Llama with random weights, a tokenizer of whole words,
a text, and instructions with their answers.

usage: make_tiny_llama.py FOLDER      makes FOLDER/model, in the form of transformers or of LitGPT, whichever the interpreter
                                      has, FOLDER/data and FOLDER/instructions
"""
import importlib.util
import json
import random
import sys
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers

WORDS = 1000
TOKENS = 64  # of a text with its end, so that all packed sequences are full
VOCABULARY, WIDTH, MLP_WIDTH, LAYERS, HEADS = 1024, 128, 384, 4, 4
SPECIAL = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>"}


def save_tokenizer(folder):
    folder.mkdir(parents=True, exist_ok=True)
    names = ["<unk>", "<s>", "</s>", *(f"word{i}" for i in range(WORDS))]
    tokenizer = Tokenizer(models.WordLevel({name: i for i, name in enumerate(names)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 2048, **SPECIAL}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def save_model(folder):
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=MLP_WIDTH, num_hidden_layers=LAYERS,
                         num_attention_heads=HEADS, use_cache=False, bos_token_id=1, eos_token_id=2, pad_token_id=2)
    LlamaForCausalLM(config).save_pretrained(folder)


def save_litgpt(folder):
    import torch
    from litgpt import GPT, Config
    from litgpt.utils import save_config
    config = Config(name="tiny-llama", block_size=2048, vocab_size=VOCABULARY, padded_vocab_size=VOCABULARY, n_layer=LAYERS,
                    n_head=HEADS, n_embd=WIDTH, rotary_percentage=1.0, parallel_residual=False, bias=False,
                    norm_class_name="RMSNorm", mlp_class_name="LLaMAMLP", intermediate_size=MLP_WIDTH)
    torch.save(GPT(config).state_dict(), folder / "lit_model.pth")
    save_config(config, folder)


def words(chance, count):
    return " ".join(f"word{chance.randrange(WORDS)}" for _ in range(count))


def save_text(folder):
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(1)
    with open(folder / "train.jsonl", "w", encoding="utf-8") as file:
        for _ in range(2000):
            file.write(json.dumps({"text": words(chance, TOKENS - 1)}) + "\n")


def save_instructions(folder):
    """As Alpaca's, with the list of data sets that LLaMA-Factory reads. Each is longer than a sequence."""
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(2)
    made_up = [{"instruction": words(chance, 10), "input": "", "output": words(chance, TOKENS)} for _ in range(2000)]
    (folder / "made_up.json").write_text(json.dumps(made_up), encoding="utf-8")
    (folder / "dataset_info.json").write_text(json.dumps({"made_up": {"file_name": "made_up.json"}}), encoding="utf-8")


def main():
    folder = Path(sys.argv[1])
    save_tokenizer(folder / "model")
    if importlib.util.find_spec("litgpt"):
        save_litgpt(folder / "model")
    else:
        save_model(folder / "model")
    save_text(folder / "data")
    save_instructions(folder / "instructions")


if __name__ == "__main__":
    main()
