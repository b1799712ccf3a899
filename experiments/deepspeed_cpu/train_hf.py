"""Trains the same GPT with the command line of a Hugging Face script: the Trainer without transformers.

  deepspeed --num_gpus 2 train_hf.py --deepspeed ds_config.json --per_device_train_batch_size 2 \\
      --gradient_accumulation_steps 8 --learning_rate 1e-3

The flags replace the "auto" values of the configuration. A value that contradicts
its flag is refused, by the rules and in the words of transformers
(HfTrainerDeepSpeedConfig, compared with 5.23.0).
"""
import argparse
import os

import train


class FilledConfig:
    """The configuration as the Trainer completes it: fill() uses a flag's value, or records a contradiction."""

    def __init__(self, config):
        self.config = config
        self.mismatches = []

    def node(self, key):
        *parents, name = key.split(".")
        node = self.config
        for parent in parents:
            node = node.get(parent)
            if node is None:
                return None, name
        return node, name

    def value(self, key):
        node, name = self.node(key)
        return None if node is None else node.get(name)

    def fill(self, key, value, flag=None):
        """Without the name of a flag, the user's own value is kept whatever it is."""
        node, name = self.node(key)
        if node is None or node.get(name) is None:
            return
        if node[name] == "auto":
            node[name] = value
        elif flag and node[name] != value:
            self.mismatches.append(f"- ds {key}={node[name]} vs hf {flag}={value}")

    def fill_from_flags(self, args, ranks):
        micro_batch, accumulation = args.per_device_train_batch_size, args.gradient_accumulation_steps
        self.fill("train_micro_batch_size_per_gpu", micro_batch, "per_device_train_batch_size")
        self.fill("gradient_accumulation_steps", accumulation, "gradient_accumulation_steps")
        self.fill("train_batch_size", ranks * micro_batch * accumulation, "train_batch_size (calculated)")
        self.fill("gradient_clipping", args.max_grad_norm, "max_grad_norm")
        self.fill("optimizer.params.lr", args.learning_rate, "learning_rate")
        self.fill("optimizer.params.betas", [args.adam_beta1, args.adam_beta2], "adam_beta1+adam_beta2")
        self.fill("optimizer.params.eps", args.adam_epsilon, "adam_epsilon")
        self.fill("optimizer.params.weight_decay", args.weight_decay, "weight_decay")
        self.fill("scheduler.params.warmup_min_lr", 0)
        self.fill("scheduler.params.warmup_max_lr", args.learning_rate, "learning_rate")
        self.fill("fp16.enabled", args.fp16, "fp16|fp16_full_eval")
        self.fill("bf16.enabled", args.bf16, "bf16|bf16_full_eval")

    def finish(self, args):
        """Fills in what needs the model and the number of steps, and then reports all contradictions, like the Trainer."""
        self.fill("zero_optimization.reduce_bucket_size", args.hidden * args.hidden)
        if self.value("zero_optimization.stage") == 3:
            self.fill("zero_optimization.stage3_prefetch_bucket_size", int(0.9 * args.hidden * args.hidden))
            self.fill("zero_optimization.stage3_param_persistence_threshold", 10 * args.hidden)
        self.fill("scheduler.params.total_num_steps", args.steps, "num_training_steps (calculated)")
        self.fill("scheduler.params.warmup_num_steps", max(1, args.warmup_steps), "warmup_steps")
        if self.mismatches:
            raise ValueError("Please correct the following DeepSpeed config values that mismatch TrainingArguments "
                             "values:\n" + "\n".join(self.mismatches) + "\nThe easiest method is to set these "
                             "DeepSpeed config values to 'auto'.")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deepspeed", required=True, metavar="FILE",
                        help="configuration of DeepSpeed: a path or base64")
    parser.add_argument("--per_device_train_batch_size", type=int, default=8, help="micro-batch (%(default)s)")
    parser.add_argument("--gradient_accumulation_steps", type=int, default=1, help="micro-batches a step (%(default)s)")
    parser.add_argument("--learning_rate", type=float, default=5e-5, help="of AdamW (%(default)s)")
    parser.add_argument("--adam_beta1", type=float, default=0.9, help="(%(default)s)")
    parser.add_argument("--adam_beta2", type=float, default=0.999, help="(%(default)s)")
    parser.add_argument("--adam_epsilon", type=float, default=1e-8, help="(%(default)s)")
    parser.add_argument("--weight_decay", type=float, default=0.0, help="(%(default)s)")
    parser.add_argument("--max_grad_norm", type=float, default=1.0, help="gradient clipping (%(default)s)")
    parser.add_argument("--max_steps", type=int, default=20, dest="steps", help="optimizer steps (%(default)s)")
    parser.add_argument("--warmup_steps", type=int, default=0, help="of a scheduler's \"auto\" (%(default)s)")
    parser.add_argument("--bf16", action="store_true", help="bf16.enabled of the configuration")
    parser.add_argument("--fp16", action="store_true", help="fp16.enabled of the configuration")
    parser.add_argument("--gradient_checkpointing", action="store_true", dest="checkpoint_activations",
                        help="recompute each block in its backward")
    train.add_model_flags(parser)
    train.add_trouble_flags(parser)
    return parser.parse_args()


def main():
    args = parse()
    filled = FilledConfig(train.read_config(args.deepspeed))
    filled.fill_from_flags(args, int(os.environ.get("WORLD_SIZE", "1")))
    if "optimizer" not in filled.config:
        filled.config["zero_allow_untested_optimizer"] = True  # like the Trainer: AdamW is then its own
    model = train.start(args, filled.config)
    filled.finish(args)
    train.train(args, filled.config, model)


if __name__ == "__main__":
    main()
