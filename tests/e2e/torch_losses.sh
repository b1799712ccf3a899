#!/bin/bash
# usage: torch_losses.sh KRIGTUNE_BENCH
# PyTorch computes the same losses as krigtune-bench (experiments/torch/check.py). It
# uses KRIGTUNE_TEST_PYTHON, which must have torch, otherwise the interpreter that
# experiments/deepspeed_cpu/setup_torch.sh has installed, or python3. Exit code 77:
# none of these has torch.
set -euo pipefail
experiments=$(cd "$(dirname "$0")/../../experiments" && pwd)
if [ -n "${KRIGTUNE_TEST_PYTHON:-}" ]; then
  exec "$KRIGTUNE_TEST_PYTHON" "$experiments/torch/check.py" "$1"
fi
for python in "${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}"/krigtune/torch-*/bin/python python3; do
  if "$python" -c 'import torch' 2>/dev/null; then
    exec "$python" "$experiments/torch/check.py" "$1"
  fi
done
echo "skipped: no Python with torch; experiments/jobs_cpu/setup.sh torch installs one"
exit 77
