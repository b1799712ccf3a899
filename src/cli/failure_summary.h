#pragma once
#include "krigtune/report/run_view.h"
#include "log.h"

namespace krigtune {

/// Says why no trial is ok: the reasons by count, the first failing trial's log with its last lines, and what to try.
void explain_failure(const RunView& run, Log& log);

}  // namespace krigtune
