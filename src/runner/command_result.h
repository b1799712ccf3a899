#pragma once
#include <string>

#include "trial/outcome.h"

// The result file of a command trial.
namespace krigtune::runner {

/// A result as the program writes it: {"throughput": 12.3, "peak_memory_bytes": 1.2e10, "status": "ok"}; "value_sem",
/// "reason" and any number of further metrics are welcome. Anything else (no JSON, no such metric, NaN, a value that is
/// not positive where the metric is a known one) is Failed with reason bad_result and what is wrong.
trial::Outcome read_command_result(const std::string& text, const std::string& metric);

/// A result file, read.
struct CommandResult {
  trial::Outcome outcome;
  bool names_failure = false;  ///< its status is oom or failed: that counts more than exit codes and output
};
CommandResult interpret_result(const std::string& text, const std::string& metric);

}  // namespace krigtune::runner
