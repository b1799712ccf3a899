"""The Trainer of Hugging Face on a small Llama with random weights and random tokens; its flags are the Trainer's own."""
import torch
from transformers import HfArgumentParser, LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        tokens = torch.randint(0, 1024, (64,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens}


(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
config = LlamaConfig(vocab_size=1024, hidden_size=128, intermediate_size=384, num_hidden_layers=4,
                     num_attention_heads=4, use_cache=False)
Trainer(model=LlamaForCausalLM(config), args=args, train_dataset=Data()).train()
