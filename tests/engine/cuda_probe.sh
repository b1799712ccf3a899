#!/bin/sh
# cuda_probe.sh PROGRAM: krigtune-bench-cuda --probe answers one line of JSON, with a GPU (exit code 0) and without (77).
if [ ! -x "$1" ]; then
  echo "skipped: krigtune-bench-cuda is not built (cmake says why)"
  exit 77
fi
answer=$("$1" --probe)
code=$?
echo "$answer (exit code $code)"
case "$code $answer" in
  0*'"gpus":0,'*) exit 1 ;;
  "0 {\"gpus\":"*) ;;
  "77 {\"gpus\":0,\"reason\":\"cuda"*) ;;
  *) exit 1 ;;
esac
case "$answer" in
  *'"nccl":2'*'"cublaslt":'*) exit 0 ;;
esac
exit 1
