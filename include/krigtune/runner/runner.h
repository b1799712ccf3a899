#pragma once
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "krigtune/core/clock.h"
#include "krigtune/runner/outcome.h"
#include "krigtune/space/space.h"
#include "krigtune/workload/workload.h"

namespace krigtune {

/// Runs one configuration to its end. Thread-compatible; one call at a time.
class Runner {
 public:
  virtual ~Runner() = default;
  /// `trial_dir` exists; a runner without files leaves it empty. A trial that fails is an Outcome, not an exception.
  virtual Outcome run(const Configuration& configuration, const std::filesystem::path& trial_dir) = 0;
};

enum class RunnerKind { kBench, kReplay };

/// The session's block "runner", resolved.
struct RunnerSpec {
  RunnerKind kind = RunnerKind::kBench;
  // bench
  double warmup_s = 2.0;
  double measure_s = 10.0;
  double timeout_s = 300.0;
  std::optional<double> memory_limit_gib;  ///< passed to krigtune-bench; empty: the session's own limit
  // replay
  std::filesystem::path table;                               ///< absolute
  std::vector<std::pair<std::string, std::string>> where;    ///< column, value as text
  std::vector<std::pair<std::string, std::string>> columns;  ///< parameter, column
  std::string value_column;
  std::string status_column;  ///< empty: every row is ok
  enum class Repeats { kBest, kMedian, kCycle } repeats = Repeats::kBest;
};

/// Relative paths are relative to `base_dir`. Throws UserError with the JSON pointer.
RunnerSpec read_runner(const nlohmann::ordered_json& json, const std::string& source, const std::string& pointer,
                       const std::filesystem::path& base_dir);
nlohmann::ordered_json to_json(const RunnerSpec& spec);

}  // namespace krigtune
