#include "bench/bench_result.h"

namespace krigtune {

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
