"""The Trainer of Hugging Face on a small GPT-2 with random weights and random text. Its flags are the Trainer's.

  torchrun --nproc_per_node 2 hf_trainer.py --deepspeed ds_config_auto.json --per_device_train_batch_size 2 \\
      --gradient_accumulation_steps 8 --learning_rate 1e-3 --max_steps 40 --logging_steps 1 --use_cpu --output_dir out \\
      --report_to none --save_strategy no
"""
import torch
from transformers import GPT2Config, GPT2LMHeadModel, HfArgumentParser, Trainer, TrainingArguments

VOCABULARY = 512
TOKENS = 64


class Text(torch.utils.data.Dataset):
    """Sequences that depend only on their numbers."""

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        tokens = torch.randint(0, VOCABULARY, (TOKENS,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens}


def small_gpt2():
    torch.manual_seed(1)
    return GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=TOKENS, n_embd=128, n_layer=4, n_head=4,
                                      bos_token_id=0, eos_token_id=0))


def main():
    (args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
    Trainer(model=small_gpt2(), args=args, train_dataset=Text()).train()


if __name__ == "__main__":
    main()
