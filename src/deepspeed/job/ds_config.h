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
// it. space/well_known.h defines the key of each parameter. `source` names the file in errors.

/// Reads the file as DeepSpeed does, with keys in the user's order: comments (#, //, /* */) and trailing commas are
/// accepted, hjson's texts without quotes are not. Trials and results get strict JSON, which the Hugging Face Trainer
/// reads, too. Throws UserError for anything else, a duplicate key, and a root or a "zero_optimization" that is not an
/// object.
nlohmann::ordered_json load_ds_config(const std::filesystem::path& file);
nlohmann::ordered_json read_ds_config(std::string_view text, const std::string& source);

/// How the file sets a tunable key.
enum class DsSetting {
  kFixed,  ///< one value
  kAuto,   ///< "auto": the reader of the file chooses; DeepSpeed itself does not know the word
  kList,   ///< values to choose from, as for DeepSpeed's autotuner; also "all" for zero_optimization.stage
};

struct DsTunable {
  /// A well-known parameter's name or, for a key that krigtune does not know, its path:
  /// "zero_optimization.sub_group_size".
  std::string name;
  std::string pointer;  ///< JSON pointer of the key in the user's spelling
  DsSetting setting = DsSetting::kFixed;
  std::vector<space::Value> values;  ///< kFixed: one; kList: distinct, in the user's order; kAuto: empty
};

/// Returns every well-known knob in the file, in the file's order, and every other list in it, except keys whose value
/// is always a list: everything in "optimizer", "scheduler" and "autotuning" (DeepSpeed does not tune the first), and
/// lists of compiler passes, elasticity, curricula, compression, sparse attention and module names; and except a list
/// of a single word under a key that krigtune does not know. A key with the value null counts as absent. Throws
/// UserError with the JSON pointer for a value of the wrong kind, an empty list, lists in or beside lists, cpu_offload
/// and cpu_offload_param (obsolete names), and "train_batch_size" as a list, because it must stay constant.
std::vector<DsTunable> tunables_of(const nlohmann::ordered_json& config, const std::string& source);

/// The ranks of a job. Most jobs are described by their number.
struct DsRanks {
  DsRanks(std::int64_t of_job, std::int64_t of_command = 1) : all(of_job), sharing(of_command) {}

  std::int64_t all = 1;
  std::int64_t sharing = 1;  ///< that share a sequence because the command says so (DsCommand::sequence_ranks)
};

/// Returns how many ranks share a sequence: the file's sequence_parallel_size, else what the command says, which is 1
/// for most. Throws UserError if the file's is no whole number from 1 on, or if both are there and differ.
std::int64_t sequence_ranks_of(const nlohmann::ordered_json& config, const DsRanks& ranks, const std::string& source);

/// Returns the ranks that DeepSpeed counts for the batch: all, divided by those that share a sequence
/// (runtime/config.py). Throws UserError if they cannot be divided.
std::int64_t counted_ranks(const nlohmann::ordered_json& config, const DsRanks& ranks, const std::string& source);

/// Returns the sequences of an optimizer step over all ranks if the file states or implies them (micro-batch and
/// accumulation as numbers, the latter 1 if absent). Empty for "auto", lists, or missing keys. Throws UserError if the
/// three contradict each other. `ranks`: all ranks of the job. DeepSpeed without an mpu counts tensor-parallel ranks as
/// if each had its own batch (deepspeedai/DeepSpeed#7298); here they count once, so the result is the file's number /
/// tensor_parallel.autotp_size.
std::optional<std::int64_t> train_batch_size_of(const nlohmann::ordered_json& config, const DsRanks& ranks,
                                                const std::string& source);

/// Returns the configuration with micro_batch and gradient_accumulation_steps as with_values() writes them. A missing
/// one follows from the other and the file's train_batch_size (tensor-parallel ranks counted once); otherwise it is the
/// file's own value, and otherwise 1 for the accumulation. A value that is "auto" in the file and missing in the
/// configuration stays missing. Throws UserError if the batch cannot be divided.
space::Configuration with_batch(const nlohmann::ordered_json& user, const space::Configuration& configuration,
                                const DsRanks& ranks, const std::string& source);

enum class DsUse {
  kTrial,   ///< train_batch_size is omitted: DeepSpeed derives it, however it counts ranks
  kResult,  ///< train_batch_size follows from micro-batch, accumulation and ranks
};

/// Returns the user's file with the configuration written into it:
/// - Keys keep their order and their spelling. A new key goes to the end of its section, a new section to the end.
/// - Names are those of tunables_of(user) and of the well-known parameters. Others may be flags of the command and are
///   ignored. Keys that the configuration does not name stay as they are, including "auto".
/// - A list that the configuration does not name becomes its first value.
/// - A knob is not added if DeepSpeed does not read it at the configuration's stage (buckets and overlap_comm at 0,
///   stage3_* below 3), or if its value requests nothing (no offload, tensor parallelism over one rank). If the file
///   already has it, it gets the chosen value, with two exceptions: stage3_* below 3 stays, and offload that the stage
///   does not support is turned off if the stage was chosen here.
/// - allgather_bucket_size becomes even, as DeepSpeed asserts; a new offload block pins its memory.
/// - Micro-batch and accumulation are those of with_batch(). While one of them is "auto", train_batch_size does not
///   change. In a result "auto" stays too; with tensor parallelism, which versions count differently, it is left out.
/// - "autotuning" is left out: a trial gets its own from ds_trial.h, and a result has none.
///
/// Throws UserError like with_batch() and tunables_of().
nlohmann::ordered_json with_values(const nlohmann::ordered_json& user, const space::Configuration& configuration,
                                   DsUse use, const DsRanks& ranks, const std::string& source);

/// Formats the file for the disk: indented by two, with a final line break.
std::string ds_config_text(const nlohmann::ordered_json& config);

/// Formats the file as a word of a command: compact text in URL-safe base64. deepspeed.initialize and the Hugging Face
/// Trainer accept it instead of a path (since 0.7.6).
std::string ds_config_base64(const nlohmann::ordered_json& config);

// Functions on the file's knobs that ds_config.cpp and ds_command.cpp share:

/// Returns the spellings of a key in ds_config.json if it has two names; the table's own name is first.
std::vector<std::string> spellings_of(const space::WellKnownParameter& knob);

/// Returns the tunable of that name, or nullptr if the file does not have it.
const DsTunable* find_tunable(const std::vector<DsTunable>& tunables, const std::string& name);

/// Returns the number that the file gives a knob: fixed, or the first of a list. Empty if "auto" or absent.
std::optional<std::int64_t> number_in_file(const std::vector<DsTunable>& tunables, const std::string& name);

/// Returns train_batch_size if it is a number. Throws UserError for a list and for anything except a number or "auto".
std::optional<std::int64_t> written_train_batch_size(const Json& config, const std::string& source);

}  // namespace krigtune::deepspeed
