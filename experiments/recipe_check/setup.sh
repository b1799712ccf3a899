#!/bin/sh
# Makes a virtual environment with one framework from PyPI, so that `krigtune recipes
# --check` can compare its flags and keys with those of its recipe. Prints the
# interpreter on stdout and everything else on stderr.
# usage: setup.sh FRAMEWORK      one of the names in the list below
#
# Not in the list: nanotron, whose release of 2024 (0.4) does not import; the trainer
# of ms-swift on Megatron, which needs Transformer Engine; llm-foundry, which needs an
# older torch; and frameworks that are no packages.
#
# Only what the framework's arguments or configuration classes import is installed:
# nothing can be trained in such an environment. torch 2.15.0 comes from
# ../deepspeed_cpu/setup_torch.sh (530 MB, once); each framework needs 20 to 300 MB
# more. Set PYTHON to a Python 3.12, which Axolotl and Megatron core need.
#
# Exit code 77: PyPI cannot be reached; 1: any other error.
set -eu

here=$(cd "$(dirname "$0")/../deepspeed_cpu" && pwd)
. "$here/setup_common.sh"

# Packages that are installed with what they need, and after -- those without it,
# because they would bring CUDA's libraries or another torch.
packages_of() {
  case $1 in
    torchtitan) echo "tyro datasets==4.7.0 tokenizers tensorboard einops pillow spmd_types==0.2.3 -- torchtitan==0.3.0 torchdata torch_checkpointing triton wandb" ;;
    llama-factory) echo "transformers==5.6.0 datasets==4.0.0 omegaconf einops -- llamafactory==0.9.5 accelerate==1.11.0 peft==0.18.1 trl==0.24.0" ;;
    axolotl) echo "transformers==5.20.1 datasets pydantic==2.13.5 addict fire python-dotenv pillow -- axolotl==0.21.0 accelerate==1.15.0 peft==0.21.2 trl==1.14.1" ;;
    hf-trainer) echo "transformers==5.23.0 datasets==5.2.0 -- accelerate==1.15.0 trl==1.16.0 peft==0.21.2" ;;
    torchtune) echo "pyyaml -- torchtune==0.6.1" ;;
    litgpt) echo "jsonargparse[signatures]==4.41.0 lightning-utilities tokenizers safetensors huggingface-hub==1.3.7 -- litgpt==0.5.13 lightning==2.6.6 torchmetrics==1.9.0" ;;
    megatron) echo "-- megatron-core==0.19.2 triton" ;;
    ms-swift) echo "transformers==5.19.0 datasets==4.8.4 modelscope addict json-repair pillow importlib-metadata dacite binpacking -- ms-swift==4.6.0 accelerate==1.15.0 peft==0.20.0 trl==0.29.1" ;;
    openrlhf) echo "-- openrlhf==0.11.2" ;;
    verl) echo "hydra-core -- verl==0.9.1" ;;
    olmo) echo "omegaconf rich cached-path datasets tokenizers safetensors importlib_resources boto3 google-cloud-storage -- ai2-olmo==0.6.0 torchmetrics==1.9.0" ;;
    *) fail "$1: write torchtitan, llama-factory, axolotl, hf-trainer, torchtune, litgpt, megatron, ms-swift, openrlhf, verl or olmo" ;;
  esac
}

framework=${1:?write the name of a framework}
packages=$(packages_of "$framework")
lock_cache
"$here/setup_torch.sh" >/dev/null || exit $?
folder=$cache/recipe-$framework
if [ ! -e "$folder/complete" ]; then
  say "$framework from PyPI into $folder"
  ask_pypi
  rm -rf "$folder"
  "$torch/bin/python" -m venv --without-pip "$folder"
  site "$torch/bin/python" >"$(site "$folder/bin/python")/torch.pth"
  # shellcheck disable=SC2086  # the packages are words
  for part in "${packages%%-- *}" "--no-deps ${packages#*-- }"; do
    [ -z "$part" ] || pip --python "$folder/bin/python" install --quiet --no-warn-conflicts --timeout 60 $part ||
      fail "pip could not install $part: see above"
  done
  touch "$folder/complete"
fi
echo "$folder/bin/python"
