#pragma once
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jobs/command/command.h"
#include "space/configuration.h"
#include "trial/executor.h"

// The user's command, everything after "--": run as given but for the word that names the DeepSpeed configuration and
// the flags that must say the same as that file.
namespace krigtune::deepspeed {

/// A command that names a DeepSpeed configuration.
struct DsCommand : jobs::Command {
  std::string config;                     ///< the configuration as the user names it: a path
  std::vector<std::size_t> config_words;  ///< the words that hold it, alone or behind '='
  bool takes_trainer_flags = false;       ///< a script of the Hugging Face Trainer: `--deepspeed FILE` and its flags
};

/// Understands `--deepspeed_config X`, `--deepspeed_config=X`, `--deepspeed X`, `--deepspeed=X` among the script's
/// words and `--deepspeed_config_file X` (or with '=') of `accelerate launch`. `--deepspeed` at the end, before another
/// flag, or beside `--deepspeed_config` is a switch.
/// Throws UserError: no words, no configuration named, two different ones, one that is no file by its look (base64 or
/// JSON text), and `--autotuning` of `deepspeed`, which would start the stock tuner in every trial.
DsCommand read_ds_command(const std::vector<std::string>& argv);

/// A flag of the script that says what a parameter says.
struct FlagMapping {
  std::string name;       ///< the parameter
  std::string flag;       ///< "--per_device_train_batch_size"
  bool appended = false;  ///< the script takes it: it is added where it is absent
};

/// `arg_mappings`: the user's, {key of ds_config.json, flag}, of the section "autotuning" or the session. They come
/// first and are appended where absent, as DeepSpeed does. The key is a path ("zero_optimization.stage"), its last part
/// ("stage") or a parameter's name; blanks around either are cut. Then the built-in ones, for names without one:
/// micro_batch and gradient_accumulation_steps (--per_device_train_batch_size, --gradient_accumulation_steps) and
/// activation_checkpointing (--gradient_checkpointing), rewritten where present, appended only for a script of the
/// Trainer. Throws UserError for a flag without dashes and a key named twice.
std::vector<FlagMapping> flag_mappings(const DsCommand& command,
                                       const std::vector<std::pair<std::string, std::string>>& arg_mappings);

/// What the command says now through mapped flags: the user's own configuration where the file says "auto". A switch
/// that is absent says "none"; any other absent flag says nothing. Throws UserError where a flag lacks its value.
space::Configuration values_of_flags(const DsCommand& command, const std::vector<FlagMapping>& mappings);

/// Where the file leaves the batch to the script ("auto"), its flags say the batch of a rank. It stays, or samples/s of
/// different batches would be compared: of micro_batch and gradient_accumulation_steps the one that `configuration`
/// lacks follows. Else `configuration` as it is. `user`: the user's ds_config.json. Throws UserError where the batch
/// cannot be divided.
space::Configuration at_the_flags_batch(space::Configuration configuration, const DsCommand& command,
                                        const std::vector<FlagMapping>& mappings, const nlohmann::ordered_json& user,
                                        std::int64_t ranks, const std::string& source);

/// Sequences of an optimizer step over all ranks with that configuration, tensor-parallel ones counted once: by the
/// file, the flags and the configuration. Empty: the script alone knows it. Throws as with_batch() does.
std::optional<std::int64_t> batch_of(const space::Configuration& configuration, const DsCommand& command,
                                     const std::vector<FlagMapping>& mappings, const nlohmann::ordered_json& user,
                                     std::int64_t ranks, const std::string& source);

/// The command with `config` (a path; base64 only on request) in place of the user's, and with each mapped flag at the
/// value that `values` has under its name: `--flag v` and `--flag=v` keep their form, every occurrence is changed, an
/// absent one goes to the end if it is `appended`. activation_checkpointing is a switch: its flag is taken away for
/// "none" and stands for "full", which the Trainer and a plain store_true both understand. Names that `values` lacks
/// change nothing; nothing else changes. Dashes and underscores within a flag are the same.
/// `values` should come from with_batch() (ds_config.h), so that file and flags agree.
/// Throws UserError for activation_checkpointing "selective" where a flag is mapped: it can only say yes or no.
std::vector<std::string> rewritten(const DsCommand& command, const std::string& config,
                                   const space::Configuration& values, const std::vector<FlagMapping>& mappings);

/// `argv`, which is the command but for its script's words, started at a place: at its port (--master_port of deepspeed
/// and torchrun, --main_process_port of accelerate) and, by deepspeed, on its GPUs of this machine (--include, in place
/// of --num_gpus, --num_nodes and --exclude). A port of 0 and no GPUs leave it as it is, and so do other launchers:
/// they read MASTER_PORT and CUDA_VISIBLE_DEVICES.
std::vector<std::string> started_at(std::vector<std::string> argv, const DsCommand& command,
                                    const trial::PlaceFacts& place);

}  // namespace krigtune::deepspeed
