#pragma once
#include <filesystem>
#include <string>

#include "core/clock.h"
#include "programs/krigtune/log.h"
#include "report/compared_curves.h"
#include "report/run_view.h"
#include "result/result_files.h"
#include "run/prepared.h"

namespace krigtune::cli {

inline constexpr const char* kReportFile = "report.html";  ///< in a run directory

/// Returns the time at which a page is made: "2026-08-23 10:00".
std::string minute_of(const Clock& clock);

/// Writes the page of a run to `file`. `state`: "The session is running", or why it ended. `compared`: results of
/// krigtune compare to show beside the trials.
void write_page(const report::RunView& run, const run::Prepared& prepared, const std::string& state, const Clock& clock,
                const std::filesystem::path& file, report::ComparedCurves compared);
/// Returns whether somebody runs trials in the directory now, as the page says it.
std::string running_state(const std::filesystem::path& directory);

/// Writes report.html while a session runs: after a trial, if the last page is at least ten seconds old, and so seldom
/// that pages take at most a twentieth of the time. If a page cannot be made, it prints a warning and trials continue.
class ReportWriter final : public run::Observer {
 public:
  /// `start`: as for the ResultFileWriter, whose recommendation the page shows. All arguments must outlive it.
  ReportWriter(const report::RunView& start, const run::Prepared& prepared, const result::ResultFileWriter& results,
               const Clock& clock, Log& log)
      : start_(start), prepared_(prepared), results_(results), clock_(clock), log_(log) {}

  void trial_ended(const journal::Trial& trial, const search::History& history) override;
  /// Writes the last page. `state`: why the session ended.
  void write(const search::History& history, const std::string& state);

 private:
  const report::RunView& start_;
  const run::Prepared& prepared_;
  const result::ResultFileWriter& results_;
  const Clock& clock_;
  Log& log_;
  double next_s_ = 0.0;  ///< when the next page may be written
};

}  // namespace krigtune::cli
