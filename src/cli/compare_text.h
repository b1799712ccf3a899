#pragma once
#include "command.h"
#include "krigtune/core/json.h"
#include "krigtune/tuner/compare.h"

namespace krigtune {

/// The results for people: the table, who needs how many times fewer trials, and the chart.
void print_comparison(const Context& context, const Session& session, const Comparison& comparison,
                      const CompareOptions& options);

Json comparison_json(const Session& session, const Comparison& comparison, const CompareOptions& options);

}  // namespace krigtune
