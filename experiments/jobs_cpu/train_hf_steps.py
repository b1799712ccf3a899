"""train_hf.py with krigtune's callback, and nothing else of krigtune's: the Trainer reports its steps if it is a trial."""
import torch
from transformers import HfArgumentParser, LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

from krigtune.transformers import ReportStepsCallback


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        tokens = torch.randint(0, 1024, (64,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens}


(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
config = LlamaConfig(vocab_size=1024, hidden_size=128, intermediate_size=384, num_hidden_layers=4,
                     num_attention_heads=4, use_cache=False)
Trainer(model=LlamaForCausalLM(config), args=args, train_dataset=Data(), callbacks=[ReportStepsCallback()]).train()
