#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "krigtune/runner/outcome.h"
#include "krigtune/space/space.h"

namespace krigtune {

/// What was known of a trial when it was asked.
struct Proposal {
  Configuration configuration;
  std::string strategy;  ///< "baseline", "bayes", ...
  std::optional<double> predicted_value;
  std::optional<Bytes> predicted_memory;
  double suggest_s = 0.0;
  std::vector<double> hyperparameters;  ///< of the model that proposed it; empty: none
};

/// One trial of a run directory.
struct Trial {
  int number = 0;
  Proposal proposal;
  std::optional<Outcome> outcome;  ///< empty: running
  double wall_s = 0.0;
  std::string started_at;  ///< naive local time, microseconds
};

/// The append-only record of a run directory, in Optuna's JournalStorage format: one study, one JSON object a line,
/// appended under a lock and fsynced. A torn last line is cut off before the next append; nothing else is ever changed.
class Journal {
 public:
  /// Opens or creates. `metric` and `maximize` are written when created, and checked otherwise (UserError).
  /// `space` gives the distributions; values outside it widen theirs. One writer at a time.
  Journal(std::filesystem::path file, const Space& space, std::string metric, bool maximize);
  ~Journal();

  const std::vector<Trial>& trials() const;
  /// Records that trial `trials().size()` begins. Returns its number. `started_us`: microseconds since 1970 UTC.
  int begin(const Proposal& proposal, std::int64_t started_us);
  /// Closes it. For Measured, metrics[metric] is the value.
  void end(int trial, const Outcome& outcome, double wall_s, std::int64_t ended_us);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The trials of a journal, without opening it for writing: for results and predict while a session runs.
std::vector<Trial> read_journal(const std::filesystem::path& file);

}  // namespace krigtune
