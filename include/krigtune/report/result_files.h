#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "krigtune/report/run_view.h"

namespace krigtune {

/// A file of the run directory that is made from the journal alone.
struct ResultFile {
  const char* name;
  /// The whole file. Empty: there is nothing to write (no trial is ok, or the session has no such thing).
  std::optional<std::string> (*text)(const RunView& run);
};

/// Every one of them: a writer is one file and one line here.
std::vector<ResultFile> result_files();

/// Writes those that have something to say, each whole or not at all. Returns their names.
std::vector<std::string> write_result_files(const RunView& run);

/// Rewrites the result files after every trial, so that they are true whenever a session is cut off.
class ResultFileWriter final : public Observer {
 public:
  /// `run.history` and `run.best` are taken anew each time. What `run` and `candidates` name must outlive it.
  ResultFileWriter(RunView run, const Candidates& candidates) : run_(std::move(run)), candidates_(candidates) {}

  void resumed(const History& history) override;
  void trial_ended(const Trial& trial, const History& history) override;

  /// Writes them, and again while other processes close trials of the directory meanwhile: whoever of several writes
  /// last, the files hold every closed trial. Returns the recommendation that stands in them.
  std::optional<Recommendation> write(History history) const;

 private:
  RunView run_;
  const Candidates& candidates_;
};

}  // namespace krigtune
