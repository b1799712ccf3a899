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

/// The user's own DeepSpeed job, as its results are made of it.
struct DsUserJob {
  Json config;                                                    ///< the user's ds_config.json
  std::string source;                                             ///< its name, for messages and for people
  std::vector<std::string> command;                               ///< the user's, launcher first
  std::vector<std::pair<std::string, std::string>> arg_mappings;  ///< key of ds_config.json, flag
  std::int64_t ranks = 1;                                         ///< all of the job, tensor-parallel ones too
};

/// The job that the session tunes, with the user's file as the session began with it. Empty: it tunes no DeepSpeed job.
/// Throws UserError where nobody knows that and the file is gone.
std::optional<DsUserJob> ds_user_job(const session::Session& session);

/// ds_config.json to train with: the user's file with the configuration in it. Clean: what trials add for measuring is
/// not in it, nor is the section "autotuning"; what the user's file says otherwise stays.
Json ds_config_of(const DsUserJob& job, const space::Configuration& configuration);

/// The user's command with `config`, that file's path or its text in base64, and the flags that must say the same.
std::vector<std::string> ds_command_of(const DsUserJob& job, const space::Configuration& configuration,
                                       const std::string& config);

/// Sequences of a step over all ranks with that configuration. Empty: the script alone knows.
std::optional<std::int64_t> ds_batch_of(const DsUserJob& job, const space::Configuration& configuration);

/// What else people must know of the best.
struct DsRemarks {
  std::vector<std::string> warnings;  ///< before anything else
  std::vector<std::string> notes;     ///< behind the table
};

/// ds_config_diff.md: what is different in the user's file and flags, and what each change is worth. `best` is of that
/// job.
std::string ds_config_diff(const DsUserJob& job, const session::Objective& objective,
                           const search::Recommendation& best, const DsRemarks& remarks);

/// The same of a run directory; empty where it tunes no DeepSpeed job or has no best.
std::optional<std::string> ds_config_difference(const report::RunView& run);

/// What to do about the learning rate where the recommended configuration's batch is not today's: lines for people.
/// Empty where it is the same.
std::vector<std::string> batch_advice_lines(const report::RunView& run);
/// The same for programs: an object, or null.
nlohmann::ordered_json batch_advice_json(const report::RunView& run);

}  // namespace krigtune::deepspeed
