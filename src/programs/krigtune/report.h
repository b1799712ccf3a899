#pragma once
#include <filesystem>
#include <string>

#include "core/clock.h"
#include "programs/krigtune/log.h"
#include "report/run_view.h"
#include "result/result_files.h"
#include "run/prepared.h"

namespace krigtune::cli {

inline constexpr const char* kReportFile = "report.html";  ///< of a run directory

/// "2026-08-23 10:00": when a page is made.
std::string minute_of(const Clock& clock);

/// Writes report.html while a session runs: after a trial, where the last page is ten seconds old or more, and so
/// seldom that pages take no more than a twentieth of the time. A page that cannot be made is a warning: trials go on.
class ReportWriter final : public run::Observer {
 public:
  /// `start`: as for the ResultFileWriter, whose recommendation the page shows. All must outlive it.
  ReportWriter(const report::RunView& start, const run::Prepared& prepared, const result::ResultFileWriter& results,
               const Clock& clock, Log& log)
      : start_(start), prepared_(prepared), results_(results), clock_(clock), log_(log) {}

  void trial_ended(const journal::Trial& trial, const search::History& history) override;
  /// The last page. `state`: why the session ended.
  void write(const search::History& history, const std::string& state);

 private:
  const report::RunView& start_;
  const run::Prepared& prepared_;
  const result::ResultFileWriter& results_;
  const Clock& clock_;
  Log& log_;
  double next_s_ = 0.0;  ///< not before that
};

}  // namespace krigtune::cli
