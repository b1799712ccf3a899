"""A training loop with Hugging Face's accelerate: the same small GPT-2, with flags of its own for the batch.

  accelerate launch --use_deepspeed --deepspeed_config_file ds_config.json --num_processes 2 --num_machines 1 \\
      --dynamo_backend no hf_accelerate.py --batch_size 2
"""
import argparse

import torch
from accelerate import Accelerator

from hf_trainer import Text, small_gpt2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch_size", type=int, default=2, help="sequences a rank and micro-step (%(default)s)")
    parser.add_argument("--steps", type=int, default=20, help="of the optimizer (%(default)s)")
    args = parser.parse_args()

    accelerator = Accelerator()
    model = small_gpt2()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = torch.utils.data.DataLoader(Text(), batch_size=args.batch_size)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    step = 0
    for batch in loader:
        with accelerator.accumulate(model):
            loss = model(**batch).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        if accelerator.sync_gradients:
            step += 1
            if accelerator.is_main_process:
                print(f"step {step} loss {loss.item():.4f}", flush=True)
        if step >= args.steps:
            break


if __name__ == "__main__":
    main()
