#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/memory.h"
#include "plan/step_breakdown.h"
#include "programs/bench/gpu_watch.h"
#include "programs/bench/measure.h"
#include "programs/bench/options.h"

namespace krigtune::bench {

/// The breakdowns of many steps.
class BreakdownSamples {
 public:
  void add(const plan::StepBreakdown& breakdown) { samples_.push_back(breakdown); }
  /// Returns a breakdown in which every number is the median of that number over the steps, so they need not add up
  /// exactly. All are zero without samples.
  plan::StepBreakdown median() const;

 private:
  double median_of(const std::function<double(const plan::StepBreakdown&)>& number) const;

  std::vector<plan::StepBreakdown> samples_;
};

/// How a run ended: the exit code, the status words of the result, and a message for people.
struct BenchEnding {
  int exit_code = 0;
  const char* status = "ok";  ///< ok, oom, failed
  const char* reason = "";
  std::string message;
};

/// One kind of activity in one optimizer step of one rank.
struct ActivityUse {
  std::int64_t count = 0;
  std::int64_t bytes = 0;       ///< collectives: S as nccl-tests counts it, the whole ranges; others: bytes written
  std::int64_t wire_bytes = 0;  ///< collectives: sent by one rank
};

/// What is known before anything runs.
struct PlannedJob {
  TrainingJob job;
  plan::MemoryReport memory;
  Bytes limit;
  plan::WireBytes wire;                                       ///< sent by one rank, without scalars
  std::int64_t samples = 0;                                   ///< per optimizer step of the whole job
  std::array<ActivityUse, plan::kActivityCount> uses{};       ///< by Activity
  std::array<double, schedule::kPhaseCount> product_flops{};  ///< hardware FLOPs of a rank, by phase

  std::int64_t missing_bytes() const { return memory.peak_bytes > limit.count ? memory.peak_bytes - limit.count : 0; }
};
PlannedJob plan_job(const TrainingJob& job, const plan::StepPlan& plan, std::optional<double> memory_limit_gib);

struct TrainedJob {
  Measurement measurement;
  std::optional<double> silent_step_time_s;  ///< median without communication, if requested
  std::int64_t arena_peak_bytes = 0;
  std::int64_t host_arena_peak_bytes = 0;
  std::string parameters_fnv1a64;  ///< empty for an emulated world, which has only one rank, and for a large model
  std::string lost;                ///< what could not be written to the trace, for people; empty: nothing
  std::optional<engine::GpuMemoryUse> gpu_memory;  ///< of rank 0
  std::vector<engine::PacedCollective> pacing;     ///< of an emulated network on a GPU
  std::vector<std::string> notes;                  ///< for people: which requests were not met
  std::optional<GpuUse> gpu;                       ///< rank 0's GPU during the measured steps, if it can be watched
};

/// Returns the ending of a run that was planned and trained to its end.
BenchEnding ending_of(const Measurement& measurement);
/// Returns the provisional values of fields that can be objectives, by their names in the report; `median_s` is the
/// step time so far. Empty as long as there is no standard error.
std::map<std::string, double> provisional_results(const PlannedJob& planned, const StepReport& report);

/// Returns the ending of a run that does not begin because memory is missing.
BenchEnding out_of_memory(const PlannedJob& planned);

struct BenchResult {
  const char* program = "krigtune-bench";
  const char* device = "cpu";  ///< cpu, cuda
  BenchEnding ending;
  std::string vector_unit;  ///< plain, avx2 or avx512; empty if the run did not begin
  std::uint64_t seed = 0;
  std::optional<PlannedJob> planned;
  std::optional<TrainedJob> trained;
  std::int64_t process_peak_bytes = 0;

  bool measured() const { return trained && !trained->measurement.diverged; }
  double samples_per_s() const;
  double tokens_per_s() const;
  /// FLOP/s of one rank in three conventions. flops_per_s counts the model's FLOPs with exact causal attention
  /// (model_flops). palm_flops_per_s counts them as the PaLM paper does, which does not halve attention for the causal
  /// mask (palm_flops). hardware_flops_per_s counts the plan's matrix products, including those that are computed
  /// again.
  double flops_per_s() const;
  double palm_flops_per_s() const;
  double hardware_flops_per_s() const;
  /// The busbw of nccl-tests: S / t times (N - 1) / N (twice that for all-reduce), which is what a rank sends during t.
  /// 0 if no time was measured.
  double bus_bytes_per_s(plan::Activity collective) const;
  /// Step time minus the step time without communication: the exposed communication, and the slowdown of kernels that
  /// share memory and cores with it. Empty if it was not measured.
  std::optional<double> exposed_by_difference_s() const;

 private:
  double per_rank(double step_flops) const;
};

/// Returns the document that --json prints. Every field is always present; unknown values are null.
std::string json_report(const BenchResult& result);
/// Returns a report for people in the style of nccl-tests: lines with "#" describe the run, the others the results.
std::string text_report(const BenchResult& result);

}  // namespace krigtune::bench
