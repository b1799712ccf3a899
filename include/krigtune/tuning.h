#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

// Tuning from a program of your own: it asks what to try, runs it, and tells what became of it.
//
//   krigtune::Tuning tuning("session.json", "runs/mine");
//   while (const auto trial = tuning.ask()) {
//     tuning.tell(trial->number, krigtune::TrialResult::ok(measure(trial->configuration)));
//   }
//   const auto best = tuning.best();
//
// The session file is that of `krigtune tune` (docs/session.md) and the directory a run directory like any other:
// `krigtune results`, `predict`, `watch` and `ask` read it at any time. Errors are exceptions: std::runtime_error and
// what derives from it, with what is wrong, where, and what to do in what().
namespace krigtune {

/// The value of one parameter.
using ParameterValue = std::variant<bool, std::int64_t, double, std::string>;
/// Names and values, those of the space in the session's order.
using ParameterValues = std::vector<std::pair<std::string, ParameterValue>>;

/// A trial that waits for its result.
struct AskedTrial {
  int number = 0;
  ParameterValues configuration;
  std::optional<double> predicted_value;               ///< of the objective, in its unit; empty: not known
  std::optional<std::int64_t> predicted_memory_bytes;  ///< peak of a rank
};

/// What became of a trial. Running out of memory and failing are results too: krigtune learns from them.
struct TrialResult {
  enum class Status { kOk, kOutOfMemory, kFailed };
  Status status = Status::kOk;
  double value = 0.0;                                            ///< kOk: the objective, in its unit; finite
  double value_sem = 0.0;                                        ///< kOk: its standard error; 0: not known
  std::optional<std::int64_t> peak_memory_bytes = std::nullopt;  ///< kOk: of the rank that needed most
  std::string last_lines = {};                                   ///< kFailed: what it said at last

  static TrialResult ok(double value) { return {Status::kOk, value}; }
  static TrialResult out_of_memory() { return {Status::kOutOfMemory}; }
  static TrialResult failed(std::string last_lines) {
    return {Status::kFailed, 0.0, 0.0, std::nullopt, std::move(last_lines)};
  }
};

/// The configuration to train with.
struct Best {
  int trial = 0;  ///< its best ok trial
  ParameterValues configuration;
  double value = 0.0;                     ///< mean of its measurements
  double lower_95 = 0.0, upper_95 = 0.0;  ///< of what it achieves, by the model of all trials
  double gain = 1.0;                      ///< how many times better than the baseline, or else the first ok trial
};

/// What is known of a session before anything runs. Counts are of configurations; of a random sample of the space
/// where it is too large to look at, or has real ranges.
struct PlanAnswer {
  std::int64_t looked_at = 0;
  std::int64_t fit = 0, uncertain = 0, too_large = 0;  ///< into the memory of a rank
  ParameterValues fastest;                             ///< as predicted; empty: no times are predicted
  std::optional<double> fastest_step_time_s;
};

/// A session and its run directory. One call at a time; several processes may work on the same directory.
class Tuning {
 public:
  /// Reads the session. The directory is made by the first ask(). `seed`: the same seed asks the same questions.
  Tuning(const std::filesystem::path& session_file, std::filesystem::path directory, std::uint64_t seed = 1);
  ~Tuning();
  Tuning(Tuning&&) noexcept;
  Tuning& operator=(Tuning&&) noexcept;

  /// The next trial, which is in the journal from now on. The session's baseline comes first. Empty: nothing is left to
  /// ask. The session's budget is not asked: who asks decides how often.
  std::optional<AskedTrial> ask();
  /// Closes a trial that ask() or `krigtune ask` gave, for good.
  void tell(int trial, const TrialResult& result);
  /// By all trials of the directory; fits the model. Empty while no trial is ok.
  std::optional<Best> best() const;
  PlanAnswer plan() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace krigtune
