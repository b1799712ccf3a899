#pragma once
#include <string>

#include "page/report/run_facts.h"

namespace krigtune::page {

/// Returns report.html for the present state of a run directory: one self-contained file.
std::string report_page(const ReportSource& source);

}  // namespace krigtune::page
