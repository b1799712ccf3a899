#!/bin/sh
# usage: cuda_probe.sh PROGRAM
# krigtune-bench-cuda --probe prints one line of JSON, with a GPU (exit code 0) and without one (77). It names the files
# of cuBLASLt and NCCL, which are opened at run time, or says where it looked for them.
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
  *'"cublaslt_file":"/'*'"nccl":2'*'"nccl_file":"/'*) ;;
  *'"cublaslt_missing":"'* | *'"nccl_missing":"'*) ;;
  *) exit 1 ;;
esac
if command -v ldd >/dev/null && ldd "$1" | grep -E 'nccl|cublas'; then
  echo "the program is linked with a library that it opens at run time"
  exit 1
fi
