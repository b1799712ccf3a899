#!/bin/sh
# Adds transformers and accelerate of Hugging Face to setup.sh's DeepSpeed, and
# prints the interpreter.
# usage: setup_transformers.sh      (transformers 5.23.0, accelerate 1.15.0; 15 s
#                                    and 120 MB more than setup.sh)
#
# It is for hf_trainer.py and hf_accelerate.py. Exit code 77: PyPI cannot be
# reached; 1: any other error.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/setup_common.sh"
into=$cache/transformers-5.23.0

base=$("$here/setup.sh") || exit $?
if [ ! -e "$into/complete" ]; then
  say "transformers and accelerate from PyPI into $into"
  rm -rf "$into"
  "$torch/bin/python" -m venv --without-pip "$into"
  { site "$base"; site "$torch/bin/python"; } >"$(site "$into/bin/python")/base.pth"
  # Installs their dependencies except torch, which would bring CUDA's
  # libraries.
  pip --python "$into/bin/python" install --quiet --no-deps \
    transformers==5.23.0 accelerate==1.15.0 tokenizers safetensors huggingface_hub regex pyyaml requests urllib3 certifi \
    idna charset_normalizer hf-xet httpx httpx2 httpcore httpcore2 truststore h11 anyio shellingham typer-slim click ||
    fail "pip could not install them: see above"
  "$here/write_torchrun.sh" "$into"
  sed "1s|.*|#!$into/bin/python|" "$(dirname "$base")/deepspeed" >"$into/bin/deepspeed"
  chmod +x "$into/bin/deepspeed"
  DS_ACCELERATOR=cpu "$into/bin/python" -c 'from transformers import Trainer; import accelerate, deepspeed' >/dev/null ||
    fail "they do not load"
  touch "$into/complete"
fi
echo "$into/bin/python"
