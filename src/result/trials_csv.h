#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "report/run_view.h"

namespace krigtune::result {

/// trials.csv while a session runs. A trial that is closed is one row appended, so that what is written does not grow
/// with what was tried; the whole file is written anew, rows by number, where a trial has a metric that no column is
/// there for, where somebody else has changed the file, and when the caller wants it:
///
///   TrialsCsvFile file;
///   file.write(run, true);   // the session begins
///   file.write(run, false);  // a trial was closed: its row
class TrialsCsvFile {
 public:
  /// Makes the file have a row for each closed trial. `run` is of one directory always. Throws EnvironmentError when
  /// the disk refuses.
  void write(const report::RunView& run, bool whole);
  int rewritten() const { return rewritten_; }  ///< how often it was written anew

 private:
  std::vector<const journal::Trial*> new_trials(const search::History& history) const;
  bool has_columns_for(const std::vector<const journal::Trial*>& trials) const;
  bool is_as_left(const std::filesystem::path& path) const;
  void remember(const std::filesystem::path& path, const search::History& history);

  std::vector<bool> is_written_;  ///< by place in the history
  std::set<std::string> metrics_;
  std::optional<std::uintmax_t> bytes_;  ///< of the file as it was left; empty: never written
  int rewritten_ = 0;
};

}  // namespace krigtune::result
