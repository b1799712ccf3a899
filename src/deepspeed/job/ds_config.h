#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "space/configuration.h"
#include "space/well_known.h"

namespace krigtune::deepspeed {

// The user's ds_config.json: what it fixes, what it leaves open, and the same file with a configuration written into
// it. Which parameter stands under which key says space/well_known.h alone. `source` names the file in errors.

/// The file as DeepSpeed and the Hugging Face Trainer both read it, keys in the user's order. Throws UserError for what
/// is no strict JSON (comments and trailing commas, which DeepSpeed alone takes), a key that stands twice, another root
/// than an object, and a "zero_optimization" that is none.
nlohmann::ordered_json load_ds_config(const std::filesystem::path& file);
nlohmann::ordered_json read_ds_config(std::string_view text, const std::string& source);

/// What the file says of a key that can be tuned.
enum class DsSetting {
  kFixed,  ///< one value
  kAuto,   ///< "auto": whoever reads the file chooses; DeepSpeed itself does not know the word
  kList,   ///< values to choose from, as DeepSpeed's autotuner writes them; "all" of zero_optimization.stage too
};

struct DsTunable {
  /// A well-known parameter's, or of a key that krigtune does not know its path: "zero_optimization.sub_group_size".
  std::string name;
  std::string pointer;  ///< JSON pointer of the key as the user spells it
  DsSetting setting = DsSetting::kFixed;
  std::vector<space::Value> values;  ///< kFixed: one; kList: distinct, in the user's order; kAuto: none
};

/// Every well-known knob that the file has, in the file's order, and every other list in it, but for those that are
/// lists by nature: all of "optimizer", "scheduler" and "autotuning" (DeepSpeed leaves the first alone), and those of
/// elasticity, curricula, compression, sparse attention, module names. A key whose value is null counts as absent.
/// Throws UserError with the JSON pointer for a value of the wrong kind, an empty list, lists in or beside lists,
/// cpu_offload and cpu_offload_param (old names), and "train_batch_size" as a list: it is what stays.
std::vector<DsTunable> tunables_of(const nlohmann::ordered_json& config, const std::string& source);

/// Sequences of an optimizer step over all ranks, where the file says or implies it (micro-batch and accumulation as
/// numbers, the latter 1 when absent). Empty: "auto", lists, or nothing. Throws where the three contradict each other.
/// `ranks`: all ranks of the job. DeepSpeed without an mpu counts tensor-parallel ones as if each had a batch of its
/// own (deepspeedai/DeepSpeed#7298); here they count once, so the result is the file's number /
/// tensor_parallel.autotp_size.
std::optional<std::int64_t> train_batch_size_of(const nlohmann::ordered_json& config, std::int64_t ranks,
                                                const std::string& source);

/// The configuration with micro_batch and gradient_accumulation_steps as with_values() writes them. What is missing
/// follows from the other one and the train_batch_size that the file names (tensor-parallel ranks counted once), else
/// it is the file's own value, else 1 for the accumulation. What is "auto" in the file and missing in the configuration
/// stays missing. Throws UserError where the batch cannot be divided.
space::Configuration with_batch(const nlohmann::ordered_json& user, const space::Configuration& configuration,
                                std::int64_t ranks, const std::string& source);

enum class DsUse {
  kTrial,   ///< train_batch_size is left out: DeepSpeed derives it, however it counts ranks
  kResult,  ///< train_batch_size is what micro-batch, accumulation and ranks make it
};

/// The user's file with the configuration written into it:
/// - keys keep their order and their spelling; a new one goes to the end of its section, a new section to the end;
/// - names are those of tunables_of(user) and of the well-known parameters; others are not the file's (they may be
///   flags of the command) and are passed over; what the configuration does not name stays as it is, "auto" too;
/// - a list that the configuration does not name becomes its first value;
/// - a knob that DeepSpeed does not read at the configuration's stage (buckets and overlap_comm at 0, stage3_* below 3)
///   or that asks for nothing (an offload that is none, tensor parallelism over one rank) is not added; where the file
///   has it already it takes the chosen value, but for stage3_* below 3, which stay, and for offload that the stage
///   does not have, which is turned off if the stage was chosen here;
/// - allgather_bucket_size is even, as DeepSpeed asserts; a new offload block pins its memory;
/// - micro-batch and accumulation as with_batch(); while one of them is "auto" train_batch_size stays as it is;
///   in a result "auto" stays too, and with tensor parallelism, which versions count differently, it is left out;
/// - "autotuning" is left out: a trial's own comes from ds_trial.h, a result has none.
/// Throws UserError as with_batch() and tunables_of() do.
nlohmann::ordered_json with_values(const nlohmann::ordered_json& user, const space::Configuration& configuration,
                                   DsUse use, std::int64_t ranks, const std::string& source);

/// As it is written to disk: indented by two, with a line break at the end.
std::string ds_config_text(const nlohmann::ordered_json& config);

/// As a word of a command: the compact text in base64 of the URL alphabet. deepspeed.initialize and the Hugging Face
/// Trainer take it in place of a path (0.7.6 on).
std::string ds_config_base64(const nlohmann::ordered_json& config);

// What else the parts of ds_config.cpp and ds_command.cpp ask of the file's knobs.

/// How a key of ds_config.json is spelt where there are two names for it; the table's own first.
std::vector<std::string> spellings_of(const space::WellKnownParameter& knob);

/// The one of that name; nullptr: the file does not have it.
const DsTunable* find_tunable(const std::vector<DsTunable>& tunables, const std::string& name);

/// The number that the file gives a knob: fixed, or the first of a list. Empty: "auto" or absent.
std::optional<std::int64_t> number_in_file(const std::vector<DsTunable>& tunables, const std::string& name);

/// train_batch_size where it is a number. Throws UserError for a list and for what is neither number nor "auto".
std::optional<std::int64_t> written_train_batch_size(const Json& config, const std::string& source);

}  // namespace krigtune::deepspeed
