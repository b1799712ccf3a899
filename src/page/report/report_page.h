#pragma once
#include <string>

#include "page/report/run_facts.h"

namespace krigtune::page {

/// report.html of a run directory as it stands: one self-contained file.
std::string report_page(const ReportSource& source);

}  // namespace krigtune::page
