#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "report/run_view.h"

namespace krigtune::deepspeed {

/// The user's DeepSpeed job, from which its results are made.
struct DsUserJob {
  Json config;                                                    ///< the user's ds_config.json
  std::string source;                                             ///< its name in messages
  std::vector<std::string> command;                               ///< the user's, launcher first
  std::vector<std::pair<std::string, std::string>> arg_mappings;  ///< key of ds_config.json, flag
  /// All ranks of the job, including tensor-parallel ones.
  std::int64_t ranks = 1;
};

/// Returns the job that the session tunes, with the user's file as it was when the session began. Empty if the session
/// does not tune a DeepSpeed job. Throws UserError if that text is unknown and the file no longer exists.
std::optional<DsUserJob> ds_user_job(const session::Session& session);

/// Returns the ds_config.json to train with: the user's file with the configuration, without the section "autotuning"
/// and without the settings that trials add for measuring; everything else in the user's file stays.
Json ds_config_of(const DsUserJob& job, const space::Configuration& configuration);

/// Returns the user's command with `config`, that file's path or its text in base64, and the flags that must agree with
/// it.
std::vector<std::string> ds_command_of(const DsUserJob& job, const space::Configuration& configuration,
                                       const std::string& config);

/// Returns the sequences of a step over all ranks with that configuration. Empty if only the script knows them.
std::optional<std::int64_t> ds_batch_of(const DsUserJob& job, const space::Configuration& configuration);

/// Remarks about the best configuration.
struct DsRemarks {
  std::vector<std::string> warnings;  ///< shown first
  std::vector<std::string> notes;     ///< shown after the table
};

/// Returns ds_config_diff.md: the differences in the user's file and flags, and what each change is worth. `best` must
/// belong to that job.
std::string ds_config_diff(const DsUserJob& job, const session::Objective& objective,
                           const search::Recommendation& best, const DsRemarks& remarks);

/// The same for a run directory; empty if it does not tune a DeepSpeed job or has no best configuration.
std::optional<std::string> ds_config_difference(const report::RunView& run);

/// Returns advice for people about the learning rate if the recommended configuration changes the batch; otherwise
/// empty.
std::vector<std::string> batch_advice_lines(const report::RunView& run);
/// The same for programs: an object, or null.
nlohmann::ordered_json batch_advice_json(const report::RunView& run);

}  // namespace krigtune::deepspeed
