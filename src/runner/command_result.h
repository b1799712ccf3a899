#pragma once
#include <string>

#include "trial/outcome.h"

// The result file of a command trial.
namespace krigtune::runner {

/// Reads a result written by the program: {"throughput": 12.3, "peak_memory_bytes": 1.2e10, "status": "ok"};
/// "value_sem", "reason" and further metrics are optional. Anything else (invalid JSON, a missing metric, NaN, a value
/// of a known metric that is not positive) is Failed with reason bad_result and an explanation.
trial::Outcome read_command_result(const std::string& text, const std::string& metric);

/// A parsed result file.
struct CommandResult {
  trial::Outcome outcome;
  bool names_failure = false;  ///< its status is oom or failed, which takes precedence over exit codes and output
};
CommandResult interpret_result(const std::string& text, const std::string& metric);

}  // namespace krigtune::runner
