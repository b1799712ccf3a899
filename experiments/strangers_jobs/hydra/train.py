#!/usr/bin/env python3
"""A trainer with Hydra's kind of configuration: config.yaml beside this file, `section.key=value` on the command line,
a logger's records on stderr. Nothing is trained: a formula gives the times.

usage: train.py [SECTION.KEY=VALUE]...
"""
import sys
from pathlib import Path

TOKENS_AN_EPOCH = 50_000_000
SEQUENCE = 512


def value_of(text):
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return text


def read_config(file):
    """Two levels of keys, as in this file."""
    config, section = {}, None
    for line in file.read_text(encoding="utf-8").splitlines():
        line = line.split("#")[0].rstrip()
        key, _, value = line.strip().partition(":")
        if not line or key.startswith("-"):
            continue
        if not line.startswith(" "):
            section = key
        else:
            config[f"{section}.{key}"] = value_of(value.strip())
    return config


def override(config, words):
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            sys.exit(f"Error when parsing override '{word}': missing EQUAL")
        if key.lstrip("+") not in config and not key.startswith("+"):
            sys.exit(f"Could not override '{key}'.\nTo append to your config use +{word}\n"
                     f"Key '{key.split('.')[-1]}' is not in struct")
        config[key.lstrip("+")] = value_of(value)
    return config


def step_s(config):
    """A micro-batch costs a launch and its sequences; compiling reduces the launch; prefetching hides reading."""
    micro_batch, prefetch = config["trainer.micro_batch"], config["data.prefetch"]
    micro_steps = config["trainer.global_batch"] // micro_batch
    launch, sequence = (0.012, 0.0088) if config["model.compile"] else (0.025, 0.0101)
    compute = micro_steps * (launch + sequence * micro_batch * (1 + (micro_batch / 24) ** 2))
    read = 0.4 / (1 + prefetch) + 0.012 * prefetch
    return compute + read


def main():
    config = override(read_config(Path(__file__).with_name("config.yaml")), sys.argv[1:])
    micro_batch = config["trainer.micro_batch"]
    if micro_batch < 1 or config["trainer.global_batch"] % micro_batch:
        sys.exit(f"ValueError: trainer.global_batch={config['trainer.global_batch']} is no multiple of "
                 f"trainer.micro_batch={micro_batch}")
    clock = 0.0
    for step in range(config["trainer.steps"]):
        first = 9 if config["model.compile"] else 2
        seconds = step_s(config) * (first if step == 0 else 1 + 0.008 * ((step * 31) % 5 - 2))
        clock += seconds
        tokens = config["trainer.global_batch"] * SEQUENCE
        print(f"[2026-01-01 10:{clock // 60:02.0f}:{clock % 60:06.3f}][trainer][INFO] - step={step} loss={7 - 0.05 * step:.4f} "
              f"tok_per_sec={tokens / seconds:,.0f} min_per_epoch={TOKENS_AN_EPOCH / tokens * seconds / 60:.3f}",
              file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
