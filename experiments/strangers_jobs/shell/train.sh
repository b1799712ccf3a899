#!/bin/sh
# A job that is configured by its environment, and redraws one progress bar
# (carriage returns, stderr). Nothing is trained: a formula gives the times.
#   BATCH    images per step (8)      THREADS  that copy to the device (1)
#   AMP      off, fp16 or bf16        STEPS    to train (20)
set -eu
exec awk -v batch="${BATCH:-8}" -v threads="${THREADS:-1}" -v amp="${AMP:-off}" -v steps="${STEPS:-20}" '
  function stop(text) { print "train.sh: " text >"/dev/stderr"; failed = 1; exit 1 }
  function clock(s) { return sprintf("%02d:%02d", int(s / 60), int(s % 60)) }
  function bar(done,    text, i) {
    for (i = 1; i <= 10; ++i) text = text (i <= done * 10 / steps ? "#" : "-")
    return text
  }
  BEGIN {
    if (batch !~ /^[0-9]+$/ || batch < 1) stop("BATCH=" batch " is no number of images")
    if (threads !~ /^[0-9]+$/ || threads < 1) stop("THREADS=" threads " is no number of threads")
    if (amp != "off" && amp != "fp16" && amp != "bf16") stop("AMP=" amp ": off, fp16 or bf16")
    image = amp == "off" ? 0.0042 : amp == "fp16" ? 0.0019 : 0.0017
    if (batch * (amp == "off" ? 2 : 1) > 160) stop("RuntimeError: CUDA error: out of memory")
    copy = 0.006 * batch / threads
    compute = 0.018 + image * batch * (1 + (batch / 200) ^ 2)
    step_s = (copy > compute ? copy : compute) + 0.002 * threads ^ 1.5
    printf("\rTraining:   0%%|%s| 0/%d [00:00<?, ?it/s]", bar(0), steps) >"/dev/stderr"
    for (step = 1; step <= steps; ++step) {
      s = step_s * (step == 1 ? 5 : 1 + 0.01 * ((step * 13) % 5 - 2))
      elapsed += s
      printf("\rTraining: %3d%%|%s| %d/%d [%s<%s, %.2fit/s, loss=%.3f, %.1f img/s]", 100 * step / steps, bar(step), step, steps,
             clock(elapsed), clock((steps - step) * step_s), 1 / s, 5 / (1 + 0.1 * step), batch / s) >"/dev/stderr"
      fflush("/dev/stderr")
    }
    printf("\n") >"/dev/stderr"
    print "saved nothing"
  }
  END { exit failed }' </dev/null
