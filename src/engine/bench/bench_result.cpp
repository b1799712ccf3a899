#include "bench/bench_result.h"

#include <fmt/format.h>

#include "bench/exit_codes.h"

namespace krigtune {

BenchEnding ending_of(const Measurement& measurement) {
  if (!measurement.diverged) return {};
  return {kNumericalFailure, "failed", "bad_result",
          fmt::format("the loss is no number after step {}", measurement.steps)};
}

BenchEnding out_of_memory(const PlannedJob& planned) {
  return {kPredictedOutOfMemory, "oom", "predicted",
          fmt::format("needs {} a rank and may use {}: {} bytes are missing; nothing was run",
                      to_string(Bytes{planned.memory.peak_bytes}), to_string(planned.limit), planned.missing_bytes())};
}

double BenchResult::samples_per_s() const {
  return static_cast<double>(planned->samples) / trained->measurement.step_time_s;
}

double BenchResult::tokens_per_s() const {
  return samples_per_s() * static_cast<double>(planned->job.workload.model.seq_len);
}

double BenchResult::flops_per_s() const {
  const double step_flops = model_flops(planned->job.workload.model, planned->samples);
  return step_flops / static_cast<double>(planned->job.cluster.ranks()) / trained->measurement.step_time_s;
}

}  // namespace krigtune
