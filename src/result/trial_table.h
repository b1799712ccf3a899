#pragma once
#include "report/run_view.h"
#include "report/table.h"

namespace krigtune::result {

/// The closed trials of a run for people and programs: what was tried, what came of it, how it compares with the
/// reference trial. The recommended configuration's trial is marked. Rows by trial number.
report::Table trial_table(const report::RunView& run);

/// "" where gains are relative to trial 0, as people expect; else what they are relative to, and why.
std::string reference_note(const session::Session& session, const search::History& history);

/// The measured trial of another configuration that comes next after the recommended one.
struct RunnerUp {
  journal::Trial trial;
  double value = 0.0;
  bool within_noise = false;  ///< its value lies within the 95 % interval of the recommended configuration
};
std::optional<RunnerUp> runner_up(const report::RunView& run);

}  // namespace krigtune::result
