#pragma once
#include "report/run_view.h"
#include "report/table.h"

namespace krigtune::result {

/// Returns the closed trials of a run for people and programs: configuration, result, and comparison with the reference
/// trial. The recommended configuration's trial is marked. Rows are sorted by trial number.
report::Table trial_table(const report::RunView& run);

/// Returns "" if gains are relative to trial 0, as people expect; otherwise what they are relative to, and why.
std::string reference_note(const session::Session& session, const search::History& history);

/// The best measured trial whose configuration is not the recommended one.
struct RunnerUp {
  journal::Trial trial;
  double value = 0.0;
  bool within_noise = false;  ///< its value is inside the 95 % interval of the recommended configuration
};
std::optional<RunnerUp> runner_up(const report::RunView& run);

}  // namespace krigtune::result
