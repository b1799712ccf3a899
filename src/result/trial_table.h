#pragma once
#include "report/run_view.h"
#include "report/table.h"

namespace krigtune::result {

/// Returns the closed trials of a run for people and programs: configuration, result, and comparison with the reference
/// trial. The recommended configuration's trial is marked. Rows are sorted by trial number.
report::Table trial_table(const report::RunView& run);

}  // namespace krigtune::result
