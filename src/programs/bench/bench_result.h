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
  /// Every number of it is the median of that number over the steps: they need not add up to the last digit. Zeros
  /// without samples.
  plan::StepBreakdown median() const;

 private:
  double median_of(const std::function<double(const plan::StepBreakdown&)>& number) const;

  std::vector<plan::StepBreakdown> samples_;
};

/// How a run ended. Exit code, the words of the result, and what to tell a person.
struct BenchEnding {
  int exit_code = 0;
  const char* status = "ok";  ///< ok, oom, failed
  const char* reason = "";
  std::string message;
};

/// One kind of activity in one optimizer step of one rank.
struct ActivityUse {
  std::int64_t count = 0;
  std::int64_t bytes = 0;       ///< collectives: S as nccl-tests counts it, the whole ranges; others: written
  std::int64_t wire_bytes = 0;  ///< collectives: sent by one rank
};

/// What is known before anything runs.
struct PlannedJob {
  TrainingJob job;
  plan::MemoryReport memory;
  Bytes limit;
  plan::WireBytes wire;                                       ///< sent by a rank; scalars left out
  std::int64_t samples = 0;                                   ///< per optimizer step of the whole job
  std::array<ActivityUse, plan::kActivityCount> uses{};       ///< by Activity
  std::array<double, schedule::kPhaseCount> product_flops{};  ///< hardware FLOPs of a rank, by phase

  std::int64_t missing_bytes() const { return memory.peak_bytes > limit.count ? memory.peak_bytes - limit.count : 0; }
};
PlannedJob plan_job(const TrainingJob& job, const plan::StepPlan& plan, std::optional<double> memory_limit_gib);

struct TrainedJob {
  Measurement measurement;
  std::optional<double> silent_step_time_s;  ///< median without communication, where it was asked for
  std::int64_t arena_peak_bytes = 0;
  std::int64_t host_arena_peak_bytes = 0;
  std::string parameters_fnv1a64;  ///< empty: an emulated world, of which one rank is there, or a large model
  std::string lost;                ///< what could not be written: of the trace, for people; empty: nothing
  std::optional<GpuUse> gpu;       ///< rank 0's, during the measured steps; where it can be watched
};

/// How a run that could be planned and was trained to its end has ended.
BenchEnding ending_of(const Measurement& measurement);
/// What is known of the objective's fields while it runs, by the names that they have in the report; `median_s` is the
/// step time so far. Empty where no standard error is at hand.
std::map<std::string, double> provisional_results(const PlannedJob& planned, const StepReport& report);

/// How a run ends before it begins because its memory is missing.
BenchEnding out_of_memory(const PlannedJob& planned);

struct BenchResult {
  const char* program = "krigtune-bench";
  const char* device = "cpu";  ///< cpu, cuda
  BenchEnding ending;
  std::string vector_unit;  ///< plain, avx2 or avx512; empty where the run did not begin
  std::uint64_t seed = 0;
  std::optional<PlannedJob> planned;
  std::optional<TrainedJob> trained;
  std::int64_t process_peak_bytes = 0;

  bool measured() const { return trained && !trained->measurement.diverged; }
  double samples_per_s() const;
  double tokens_per_s() const;
  /// FLOP/s of one rank in three conventions: the model's, causal-exact (model_flops); the model's as in the PaLM
  /// paper, whose attention is not halved by the causal mask (palm_flops); and what the hardware computes: the plan's
  /// matrix products, those that are computed again included.
  double flops_per_s() const;
  double palm_flops_per_s() const;
  double hardware_flops_per_s() const;
  /// nccl-tests' busbw: S / t times (N - 1) / N (twice that for all-reduce), which is what a rank sends over t; 0
  /// without time.
  double bus_bytes_per_s(plan::Activity collective) const;
  /// Step time less that without communication: exposed communication, and what it costs kernels to share memory and
  /// cores with it. Only where it was measured.
  std::optional<double> exposed_by_difference_s() const;

 private:
  double per_rank(double step_flops) const;
};

/// The document that --json prints: every field is always there, null where there is nothing to say.
std::string json_report(const BenchResult& result);
/// For people, in the manner of nccl-tests: "#" lines say what was run, the others what came out.
std::string text_report(const BenchResult& result);

}  // namespace krigtune::bench
