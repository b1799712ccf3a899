#pragma once
#include <string>

#include "report/run_view.h"
#include "report/table.h"

namespace krigtune::result {

/// Formats the trial table for a terminal with `columns` columns. Columns that are equal in every row become a line
/// above it. Status and reason are left out, because the value shows them. If the parameters do not fit side by side,
/// one column has the differences from the recommended configuration, which is then shown in full above the table.
std::string trial_text(const report::RunView& run, report::Table table, int columns);

}  // namespace krigtune::result
