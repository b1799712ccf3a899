#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

// Tuning from your own program: ask for a configuration, run it, and report the result.
//
//   krigtune::Tuning tuning("session.json", "runs/mine");
//   while (const auto trial = tuning.ask()) {
//     tuning.tell(trial->number, krigtune::TrialResult::ok(measure(trial->configuration)));
//   }
//   const auto best = tuning.best();
//
// The session file has the format of `krigtune tune` (docs/session.md), and the directory is an ordinary run directory:
// `krigtune results`, `predict`, `watch` and `ask` can read it at any time. Errors are thrown as std::runtime_error or
// a class derived from it; what() says what is wrong, where, and what to do.
namespace krigtune {

/// The value of one parameter.
using ParameterValue = std::variant<bool, std::int64_t, double, std::string>;
/// One configuration: the parameters of the space with their values, in the session's order.
using ParameterValues = std::vector<std::pair<std::string, ParameterValue>>;

/// A trial that is waiting for its result.
struct AskedTrial {
  int number = 0;
  ParameterValues configuration;
  std::optional<double> predicted_value;               ///< prediction of the objective, in its unit; empty if unknown
  std::optional<std::int64_t> predicted_memory_bytes;  ///< predicted peak memory of one rank; empty if unknown
};

/// The result of a trial. Running out of memory and failing are results too: krigtune learns from them.
struct TrialResult {
  enum class Status { kOk, kOutOfMemory, kFailed };
  Status status = Status::kOk;
  double value = 0.0;                                            ///< kOk: the objective, in its unit; finite
  double value_sem = 0.0;                                        ///< kOk: standard error of `value`; 0 if unknown
  std::optional<std::int64_t> peak_memory_bytes = std::nullopt;  ///< kOk: peak of the rank that needed the most memory
  std::string last_lines = {};                                   ///< kFailed: the last lines of the trial's output
  /// kOk: further numbers by the names of their metrics. A session with several objectives needs one for each but the
  /// first; `peak_memory_bytes` counts as the metric of that name.
  std::map<std::string, double> metrics = {};

  static TrialResult ok(double value) { return {Status::kOk, value}; }
  static TrialResult out_of_memory() { return {Status::kOutOfMemory}; }
  static TrialResult failed(std::string last_lines) {
    return {Status::kFailed, 0.0, 0.0, std::nullopt, std::move(last_lines)};
  }
};

/// The configuration to train with.
struct Best {
  int trial = 0;  ///< the best trial of this configuration that succeeded
  ParameterValues configuration;
  double value = 0.0;                     ///< mean of its measurements
  double lower_95 = 0.0, upper_95 = 0.0;  ///< 95 % interval of its true value, by the model of all trials
  /// how many times better than the baseline, or than the first successful trial if the baseline has no value
  double gain = 1.0;
  std::vector<std::string> remarks;  ///< sentences that belong to the result: that the machine's speed has changed, ...
};

/// What is known about a session before any trial runs. The counts are numbers of configurations. If the space has
/// continuous parameters or is too large to list, they refer to a random sample of it.
struct PlanAnswer {
  std::int64_t looked_at = 0;
  std::int64_t fit = 0, uncertain = 0, too_large = 0;  ///< whether they fit into the memory of one rank
  /// the fastest configuration by prediction; empty if no times are predicted
  ParameterValues fastest;
  std::optional<double> fastest_step_time_s;
};

/// A session and its run directory. Make one call at a time; several processes may share the same directory.
class Tuning {
 public:
  /// Reads the session; throws if it is invalid. The first ask() creates the directory. The same seed and the same
  /// results lead to the same configurations.
  Tuning(const std::filesystem::path& session_file, std::filesystem::path directory, std::uint64_t seed = 1);
  ~Tuning();
  Tuning(Tuning&&) noexcept;
  Tuning& operator=(Tuning&&) noexcept;

  /// Returns the next trial, which is recorded in the journal from then on, or nothing if no configuration remains. The
  /// first trial is the session's baseline. The session's budget is ignored: the caller decides how often to ask.
  std::optional<AskedTrial> ask();
  /// Records the final result of a trial that ask() or `krigtune ask` returned.
  void tell(int trial, const TrialResult& result);
  /// Fits the model to all trials of the directory and returns the recommended configuration. Empty while no trial has
  /// succeeded.
  std::optional<Best> best() const;
  PlanAnswer plan() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace krigtune
