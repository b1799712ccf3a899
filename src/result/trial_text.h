#pragma once
#include <string>

#include "report/run_view.h"
#include "report/table.h"

namespace krigtune::result {

/// The trial table for people on a terminal of so many columns: columns that say the same in every row become a line
/// above it, status and reason go (the value says them), and where the parameters do not fit side by side one column
/// says what differs from the recommended configuration, which is then above the table in full.
std::string trial_text(const report::RunView& run, report::Table table, int columns);

}  // namespace krigtune::result
