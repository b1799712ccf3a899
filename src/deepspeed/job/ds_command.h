#pragma once
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "deepspeed/job/ds_config.h"
#include "jobs/command/command.h"
#include "space/configuration.h"
#include "trial/executor.h"

// The user's command, everything after "--". It is run as given except for the word that names the DeepSpeed
// configuration and the flags that must agree with that file.
namespace krigtune::deepspeed {

/// A command that names a DeepSpeed configuration.
struct DsCommand : jobs::Command {
  std::string config;                     ///< the configuration as the user names it: a path
  std::vector<std::size_t> config_words;  ///< the words that contain it, alone or after '='
  /// Probably the Hugging Face Trainer reads the file and fills in "auto": `--deepspeed FILE` and one of its flags.
  bool is_trainers = false;
  /// Surely a script of the Trainer, to which its other flags can be added: one of them is spelt as the Trainer does.
  bool takes_trainer_flags = false;
  bool is_accelerates = false;      ///< accelerate launch is given the configuration, not the script
  std::int64_t sequence_ranks = 1;  ///< ranks that share a sequence (Ulysses), if accelerate launch is told so
};

/// Recognises `--deepspeed_config X`, `--deepspeed_config=X`, `--deepspeed X`, `--deepspeed=X` among the script's
/// words, and `--deepspeed_config_file X` (or with '=') of `accelerate launch`, which is added if the file of its
/// `--config_file` names it. `--deepspeed` is a switch at the end,
/// before another flag, or together with `--deepspeed_config`. Variables before the command (`A=1 deepspeed ...`) get
/// `env` in front, because no shell runs it. Throws UserError for an empty command, no configuration
/// or two different ones, a configuration that is obviously not a file (base64 or JSON text), and `--autotuning` of
/// `deepspeed`, which would start the stock tuner in every trial.
DsCommand read_ds_command(const std::vector<std::string>& argv);

/// A flag of the script that has the same meaning as a parameter.
struct FlagMapping {
  std::string name;       ///< the parameter
  std::string flag;       ///< "--per_device_train_batch_size"
  bool appended = false;  ///< the script accepts it, so it is added if absent
};

/// Returns all mappings. The user's `arg_mappings`, {key of ds_config.json, flag} from the section "autotuning" or the
/// session, come first and are appended if absent, as in DeepSpeed. The key is a path ("zero_optimization.stage"), its
/// last part ("stage") or a parameter's name; surrounding blanks are removed. Parameters without such a mapping get the
/// built-in ones: micro_batch and gradient_accumulation_steps (--per_device_train_batch_size,
/// --gradient_accumulation_steps) and activation_checkpointing (--gradient_checkpointing). These are rewritten if
/// present, and appended only for a script of the Trainer. Throws UserError for a flag without dashes and for a
/// duplicate key.
std::vector<FlagMapping> flag_mappings(const DsCommand& command,
                                       const std::vector<std::pair<std::string, std::string>>& arg_mappings);

/// Returns the values that the command states through mapped flags: the user's own configuration where the file says
/// "auto". An absent switch means "none"; other absent flags are ignored. Throws UserError if a flag lacks its value.
space::Configuration values_of_flags(const DsCommand& command, const std::vector<FlagMapping>& mappings);

/// Keeps the batch of a rank that the flags state if the file leaves it to the script ("auto"); otherwise samples/s of
/// different batches would be compared. If `configuration` has only one of micro_batch and gradient_accumulation_steps,
/// the other follows. In all other cases `configuration` is returned unchanged. `user`: the user's ds_config.json.
/// Throws UserError if the batch cannot be divided.
space::Configuration at_the_flags_batch(space::Configuration configuration, const DsCommand& command,
                                        const std::vector<FlagMapping>& mappings, const nlohmann::ordered_json& user,
                                        const DsRanks& ranks, const std::string& source);

/// Returns the sequences of an optimizer step over all ranks (tensor-parallel ones counted once) from the file, the
/// flags and the configuration. Empty if only the script knows it. Throws like with_batch().
std::optional<std::int64_t> batch_of(const space::Configuration& configuration, const DsCommand& command,
                                     const std::vector<FlagMapping>& mappings, const nlohmann::ordered_json& user,
                                     const DsRanks& ranks, const std::string& source);

/// Returns the command with `config` (a path; base64 only on request) instead of the user's, and with each mapped flag
/// at its value in `values`. `--flag v` and `--flag=v` keep their form, every occurrence is changed, and an absent flag
/// is added at the end if it is `appended`. activation_checkpointing is a switch: its flag is removed for "none" and
/// present for "full", which both the Trainer and a plain store_true understand. Nothing else changes; flags whose
/// parameter is not in `values` stay. Dashes and underscores inside a flag are equivalent. `values` should come from
/// with_batch() (ds_config.h), so that file and flags agree. Throws UserError for activation_checkpointing "selective"
/// if a flag is mapped, because a switch can only say yes or no.
std::vector<std::string> rewritten(const DsCommand& command, const std::string& config,
                                   const space::Configuration& values, const std::vector<FlagMapping>& mappings);

/// Returns `argv` (the command except for its script's words) started at a place: with its port (--master_port of
/// deepspeed and torchrun, --main_process_port of accelerate) and, for deepspeed, on its GPUs of this machine
/// (--include, which replaces --num_gpus, --num_nodes and --exclude). A port of 0 and an empty list of GPUs change
/// nothing. Other launchers are not changed: they read MASTER_PORT and CUDA_VISIBLE_DEVICES.
std::vector<std::string> started_at(std::vector<std::string> argv, const DsCommand& command,
                                    const trial::PlaceFacts& place);

}  // namespace krigtune::deepspeed
