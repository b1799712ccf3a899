#pragma once
#include <string>

#include "core/json.h"

// The option --metric: a regular expression for a printed number, or the name of what the program reports itself.
namespace krigtune::jobs {

/// Returns whether the option names what a program reports of its steps (Python's krigtune.StepReporter) instead of
/// being a regular expression: "throughput", "tokens_per_second" or "latency". A regular expression has a group.
bool is_reported_metric(const std::string& metric);

/// Throws UserError unless it is such a name or a regular expression with one group, the number.
void check_metric(const std::string& metric);

/// Replaces what a command runner measures by what the program reports, a JSON object for each step.
void measure_reported_steps(Json& runner);

}  // namespace krigtune::jobs
