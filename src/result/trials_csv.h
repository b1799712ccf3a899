#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "report/run_view.h"

namespace krigtune::result {

/// Writes trials.csv during a session. A closed trial appends one row, so the amount written does not grow with the
/// number of trials. The whole file is rewritten, sorted by trial number, if a trial has a metric without a column, if
/// another process has changed the file, and on request:
///
///   TrialsCsvFile file;
///   file.write(run, true);   // the session begins
///   file.write(run, false);  // a trial was closed: its row
class TrialsCsvFile {
 public:
  /// Ensures that the file has a row for each closed trial. `run` must always refer to the same directory. Throws
  /// EnvironmentError if the file cannot be written.
  void write(const report::RunView& run, bool whole);
  int rewritten() const { return rewritten_; }  ///< how often it was rewritten

 private:
  std::vector<const journal::Trial*> new_trials(const search::History& history) const;
  bool has_columns_for(const std::vector<const journal::Trial*>& trials) const;
  bool is_as_left(const std::filesystem::path& path) const;
  void remember(const std::filesystem::path& path, const search::History& history);

  std::vector<bool> is_written_;  ///< by index in the history
  std::set<std::string> metrics_;
  std::optional<std::uintmax_t> bytes_;  ///< size of the file after the last write; empty: never written
  int rewritten_ = 0;
};

}  // namespace krigtune::result
