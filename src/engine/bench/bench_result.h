#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "bench/job.h"
#include "bench/measure.h"
#include "krigtune/plan/memory.h"

namespace krigtune {

/// How a run ended. Exit code, the words of the result, and what to tell a person.
struct BenchEnding {
  int exit_code = 0;
  const char* status = "ok";  ///< ok, oom, failed
  const char* reason = "";
  std::string message;
};

/// One kind of collective in one optimizer step of one rank.
struct CollectiveUse {
  const char* name = "";
  std::int64_t count = 0;
  std::int64_t bytes = 0;       ///< S as nccl-tests counts it: the whole ranges
  std::int64_t wire_bytes = 0;  ///< sent by one rank
  double time_s = 0.0;          ///< median over steps; 0: not measured

  /// nccl-tests' busbw: S / t times (N - 1) / N (twice that for all-reduce), which is what a rank sends over t.
  double bus_bytes_per_s() const { return time_s > 0.0 ? static_cast<double>(wire_bytes) / time_s : 0.0; }
};

/// What is known before anything runs.
struct PlannedJob {
  TrainingJob job;
  MemoryReport memory;
  Bytes limit;
  std::int64_t samples = 0;  ///< per optimizer step of the whole job
  std::array<CollectiveUse, 3> collectives;

  std::int64_t missing_bytes() const { return memory.peak_bytes > limit.count ? memory.peak_bytes - limit.count : 0; }
};

struct TrainedJob {
  Measurement measurement;
  std::int64_t arena_peak_bytes = 0;
  std::string parameters_fnv1a64;
};

/// How a run that could be planned and was trained to its end has ended.
BenchEnding ending_of(const Measurement& measurement);
/// How a run ends before it begins because its memory is missing.
BenchEnding out_of_memory(const PlannedJob& planned);

struct BenchResult {
  const char* program = "krigtune-bench";
  const char* device = "cpu";  ///< cpu, cuda
  BenchEnding ending;
  std::uint64_t seed = 0;
  std::optional<PlannedJob> planned;
  std::optional<TrainedJob> trained;
  std::int64_t process_peak_bytes = 0;

  bool measured() const { return trained && !trained->measurement.diverged; }
  double samples_per_s() const;
  double tokens_per_s() const;
  /// Model FLOP/s of one rank, causal-exact.
  double flops_per_s() const;
};

/// The document that --json prints: every field is always there, null where there is nothing to say.
std::string json_report(const BenchResult& result);
/// For people, in the manner of nccl-tests: "#" lines say what was run, the others what came out.
std::string text_report(const BenchResult& result);

}  // namespace krigtune
