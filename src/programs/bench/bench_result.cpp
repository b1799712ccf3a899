#include "programs/bench/bench_result.h"

#include <fmt/format.h>

#include <numeric>

#include "core/error.h"
#include "plan/op_traits.h"
#include "programs/bench/step_times.h"

namespace krigtune::bench {

double BreakdownSamples::median_of(const std::function<double(const plan::StepBreakdown&)>& number) const {
  StepTimes numbers;
  for (const plan::StepBreakdown& sample : samples_) numbers.add(number(sample));
  return numbers.median();
}

plan::StepBreakdown BreakdownSamples::median() const {
  plan::StepBreakdown result;
  if (samples_.empty()) return result;
  result.span_s = median_of([](const plan::StepBreakdown& b) { return b.span_s; });
  result.waiting_s = median_of([](const plan::StepBreakdown& b) { return b.waiting_s; });
  result.idle_s = median_of([](const plan::StepBreakdown& b) { return b.idle_s; });
  for (std::size_t p = 0; p < result.compute_s.size(); ++p) {
    result.compute_s[p] = median_of([p](const plan::StepBreakdown& b) { return b.compute_s[p]; });
  }
  for (std::size_t a = 0; a < result.activities.size(); ++a) {
    result.activities[a].time_s = median_of([a](const plan::StepBreakdown& b) { return b.activities[a].time_s; });
    result.activities[a].exposed_s = median_of([a](const plan::StepBreakdown& b) { return b.activities[a].exposed_s; });
  }
  return result;
}

namespace {

void add_use(const plan::Operation& operation, const plan::StepPlan& plan, ActivityUse& use) {
  ++use.count;
  if (!plan::is_collective(operation.kind)) {
    use.bytes += operation.bytes_written;
    return;
  }
  use.wire_bytes += operation.wire_bytes;
  const std::size_t stride = plan::traits_of(operation.kind).group.size();
  for (std::size_t i = stride - 1; i < operation.operands.size(); i += stride) {
    const plan::Range& range = operation.operands[i].range;
    use.bytes += range.elems * schedule::size_bytes(plan.buffers[static_cast<std::size_t>(range.buffer)].type);
  }
}

}  // namespace

PlannedJob plan_job(const TrainingJob& job, const plan::StepPlan& plan, std::optional<double> memory_limit_gib) {
  PlannedJob planned;
  planned.job = job;
  planned.memory = plan::explain(plan);
  planned.limit =
      memory_limit_gib ? from_gib(*memory_limit_gib) : workload::memory_limit_per_rank(job.memory, job.cluster);
  planned.wire = plan::wire_bytes(plan);
  planned.samples = plan.samples();
  for (const plan::Operation& operation : plan.operations) {
    if (plan::is_collective(operation.kind) || operation.stream != schedule::Stream::kCompute) {
      add_use(operation, plan, planned.uses[static_cast<std::size_t>(plan::activity_of(operation))]);
    }
    if (plan::is_product(operation.kind)) {
      planned.product_flops[static_cast<std::size_t>(operation.phase)] += operation.flops;
    }
  }
  return planned;
}

BenchEnding ending_of(const Measurement& measurement) {
  if (!measurement.diverged) return {};
  return {BenchExit::kNumericalFailure, "failed", "bad_result",
          fmt::format("the loss is not a number after step {}", measurement.steps)};
}

BenchEnding out_of_memory(const PlannedJob& planned) {
  return {BenchExit::kPredictedOutOfMemory, "oom", "predicted",
          fmt::format("needs {} per rank and may use {}: {} bytes are missing; nothing was run",
                      to_string(Bytes{planned.memory.peak_bytes}), to_string(planned.limit), planned.missing_bytes())};
}

std::map<std::string, double> provisional_results(const PlannedJob& planned, const StepReport& report) {
  if (!report.provisional_s || !report.provisional_sem_s) return {};
  BenchResult so_far;
  so_far.planned = planned;
  so_far.trained.emplace().measurement.step_time_s = *report.provisional_s;
  return {{"steps", static_cast<double>(report.measured_steps)},
          {"step_time_s", *report.provisional_s},
          {"step_time_sem_s", *report.provisional_sem_s},
          {"samples_per_s", so_far.samples_per_s()},
          {"tokens_per_s", so_far.tokens_per_s()},
          {"flops_per_s", so_far.flops_per_s()}};
}

double BenchResult::samples_per_s() const {
  return static_cast<double>(planned->samples) / trained->measurement.step_time_s;
}

double BenchResult::tokens_per_s() const {
  return samples_per_s() * static_cast<double>(planned->job.workload.model.seq_len);
}

double BenchResult::per_rank(double step_flops) const {
  return step_flops / static_cast<double>(planned->job.cluster.ranks()) / trained->measurement.step_time_s;
}

double BenchResult::flops_per_s() const {
  return per_rank(workload::model_flops(planned->job.workload.model, planned->samples));
}

double BenchResult::palm_flops_per_s() const {
  return per_rank(workload::palm_flops(planned->job.workload.model, planned->samples));
}

double BenchResult::hardware_flops_per_s() const {
  const auto& flops = planned->product_flops;
  return std::accumulate(flops.begin(), flops.end(), 0.0) / trained->measurement.step_time_s;
}

double BenchResult::bus_bytes_per_s(plan::Activity collective) const {
  const auto a = static_cast<std::size_t>(collective);
  const double time_s = measured() ? trained->measurement.breakdown.activities[a].time_s : 0.0;
  return time_s > 0.0 ? static_cast<double>(planned->uses[a].wire_bytes) / time_s : 0.0;
}

std::optional<double> BenchResult::exposed_by_difference_s() const {
  if (!measured() || !trained->silent_step_time_s) return std::nullopt;
  return trained->measurement.step_time_s - *trained->silent_step_time_s;
}

}  // namespace krigtune::bench
