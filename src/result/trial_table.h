#pragma once
#include "report/run_view.h"
#include "report/table.h"

namespace krigtune::result {

/// Returns the closed trials of a run for people and programs: configuration, result, and comparison with the reference
/// trial. The recommended configuration's trial is marked. Rows are sorted by trial number.
report::Table trial_table(const report::RunView& run);

/// Returns "" if gains are relative to the baseline, as people expect; otherwise what they are relative to, and why.
std::string reference_note(const session::Session& session, const answer::Answer& answer);

}  // namespace krigtune::result
