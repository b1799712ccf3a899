#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "report/run_view.h"

namespace krigtune::result {

// One writer per source file; result_files.cpp is their registry.
std::optional<std::string> trials_csv(const report::RunView& run);
std::optional<std::string> best_json(const report::RunView& run);
/// Returns the contents of best.json; null while no trial has succeeded.
Json best_document(const report::RunView& run);
/// Returns a trial with its configuration and result. While it has no result its status is "running", or "waiting" if
/// it is in Optuna's queue.
Json trial_json(const journal::Trial& trial, const session::Objective& objective);
std::optional<std::string> ds_config_optimal(const report::RunView& run);
/// The same beside the command of the run; empty for a command whose recipe belongs to another framework.
std::optional<std::string> ds_config_beside_command(const report::RunView& run);
std::optional<std::string> config_optimal(const report::RunView& run);
std::optional<std::string> cmd_optimal(const report::RunView& run);
/// Writes the files that the command of cmd_optimal reads, made from templates and changed configuration files, beside
/// it. Returns their names.
std::vector<std::string> write_optimal_job_files(const report::RunView& run);

inline constexpr const char* kConfigFile = "config_optimal.json";
inline constexpr const char* kDsConfigOptimal = "ds_config_optimal.json";

}  // namespace krigtune::result
