#!/bin/sh
# gpu_rates.sh PROGRAM: gpu_rates on small sizes writes its five tables, every time in them above 0. That kernels.csv has a
# row for each kernel that is bound by memory the program sees to itself (expect_all_kernels).
export LC_ALL=C  # awk: numbers with a point
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" --small "$work" || exit 1
"$1" --small --hopper-attention "$work" || exit 1
for table in kernels:4 attention:6 attention_hopper:6 gemm:12 pacing:3; do
  file=$work/${table%:*}.csv
  awk -F, -v least="${table#*:}" '
    NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "time_us" || $i == "held_us") time = i; fields = NF; next }
    NF != fields || !($time > 0) || /nan|inf/ { print FILENAME ": " $0; bad = 1 }
    END { exit bad || !time || NR - 1 < least }' "$file" || exit 1
done
