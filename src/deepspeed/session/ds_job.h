#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deepspeed/job/ds_autotuning.h"
#include "deepspeed/job/ds_config.h"
#include "deepspeed/session/deepspeed_session.h"
#include "jobs/recipe/training_facts.h"

// The user's DeepSpeed job as described by its file, command and machine.
namespace krigtune::deepspeed {

/// Settings that matter to predictions and that the plan does not know.
struct Unmodelled {
  std::vector<std::string> named;  ///< with what they change: "zero_quantized_weights (less traffic)"
  std::string lighter;             ///< the first that takes less memory than a plan says; "" if none does
};

/// What the flags of the script say and predictions do not know.
struct CommandGaps {
  std::vector<std::string> named;    ///< with the effect: "adapters (LoRA): much less memory"
  std::vector<std::string> of_time;  ///< those that change time alone
  bool freezes = false;              ///< most weights are not trained
  jobs::TrainingFacts trained;       ///< what predictions do know
};

struct DsJob {
  explicit DsJob(const DsSessionInputs& inputs);

  const DsTunable* find(std::string_view name) const;  ///< nullptr if the file does not have it
  /// Returns whether the file lists values for it or leaves it open ("auto").
  bool is_opened(std::string_view name) const;
  /// Returns whether the file fixes it, unless the file leaves nothing open at all.
  bool is_kept(std::string_view name) const;
  /// Returns whether the script would follow a change, because the file sets it or a flag of the command can.
  bool can_change(std::string_view name) const;
  /// Returns whether a flag of the command states it or can be added.
  bool has_flag(std::string_view name) const;
  /// Returns the value in the user's own configuration; empty if neither file nor flags state it.
  std::optional<space::Value> own(std::string_view name) const;
  /// Returns whether that is a size that the reader of the file makes of the model's width, which is not known.
  bool depends_on_width(std::string_view name) const;
  std::optional<std::int64_t> own_count(std::string_view name) const;
  bool fills_in_sizes() const;  ///< whoever reads the file replaces "auto" sizes: the Trainer, Accelerate
  std::int64_t own_count_or(std::string_view name, std::int64_t fallback) const;  ///< 0 is a valid count here
  bool has(DsFeature feature) const;  ///< for the installed version; if unknown, for a current one
  DsRanks ranks() const;              ///< all of the cluster
  /// Returns the groups of ranks that get sequences of their own in the user's own job.
  std::int64_t replicas() const { return replicas_at(tensor).value_or(1); }
  /// Returns these groups if `ways` tensor-parallel ranks share a replica. Empty if they do not divide the ranks.
  std::optional<std::int64_t> replicas_at(std::int64_t ways) const;

  const DsSessionInputs& inputs;
  std::string source;
  std::vector<DsTunable> tunables;
  DsAutotuning autotuning;
  std::vector<FlagMapping> mappings;
  space::Configuration flags;         ///< present values of the mapped flags
  workload::ClusterSpec cluster;      ///< with the ranks that the command states
  std::int64_t sequence = 1;          ///< ranks that share a sequence (Ulysses): of the file, or of the command
  std::int64_t tensor = 1;            ///< tensor-parallel ranks of the user's own job
  bool opens_nothing = false;         ///< neither list nor "auto" in the file
  CommandGaps gaps;                   ///< what the command says and predictions do not know
  Unmodelled unmodelled;              ///< settings that the plan does not know
  std::optional<std::int64_t> batch;  ///< sequences per step, to be kept
  Json workload;                      ///< the session's block; null if there is none
  std::optional<std::int64_t> num_params;
  std::optional<std::int64_t> hidden;
  std::vector<std::string> remarks;
};

/// Returns the value of the last of the script's flags with one of these names (separated by blanks, with underscores
/// for dashes); "" for a flag without a value.
std::optional<std::string> flag_text(const DsJob& job, std::string_view names);

/// Returns "bf16", "fp16" or "fp32".
std::string precision_of(const DsJob& job);

Unmodelled unmodelled_settings(const DsJob& job);
/// The job's inputs must have a command, and its `sequence` must be known.
CommandGaps gaps_of_command(const DsJob& job);

/// Returns the parameters that say how ranks share sequences: each gets all tokens of some heads (Ulysses).
space::Configuration shared_sequences(const DsJob& job);

/// Sets workload, num_params and hidden; call it when the batch is known.
void read_ds_model(DsJob& job);

/// Returns a lower bound for the bytes of parameters, gradients and AdamW's states on one rank; of parameters alone,
/// with 4 bits each, if most of them are frozen or another setting takes less memory.
double model_state_bytes(const DsJob& job, std::int64_t stage);

/// Returns a lower bound for a rank's memory at that stage: model states, the smallest reduce bucket and, if measured,
/// the activations of one sequence.
double least_bytes(const DsJob& job, std::int64_t stage);

/// Whether the script's blocks recompute their activations. No file states this, but memory depends on it most.
enum class Recomputation {
  kUnknown,
  kByFlag,  ///< a flag of the command states it, and it can be searched
  kNone,    ///< according to the measured activations
  kFull,    ///< according to the measured activations
};
Recomputation recomputation_of(const DsJob& job);

/// Returns the "model" of a workload without "seq_len": a GPT of the usual shape with this many parameters; null if it
/// is too small.
Json usual_shape(std::int64_t num_params, std::int64_t vocab);

/// Returns whether a node's memory can hold the optimizer's states and their step, and DeepSpeed creates the optimizer.
bool may_offload(const DsJob& job);

/// Returns a list or a range, as in a session, for a knob that is open or absent in the file; null if none is useful.
Json sensible_values(const DsJob& job, const std::string& name);

/// Writes space, constraints and baseline of the session.
void add_ds_space(DsJob& job, Json& session);

/// Values of micro_batch and gradient_accumulation_steps, and their constraints; `tensor`: values of tensor_parallel.
struct DsBatchSpace {
  Json micro_batch;   ///< as in a session; null: not in the space
  Json accumulation;  ///< as in a session; null: derived, or taken from the file
  std::vector<std::string> constraints;
  space::Configuration own;  ///< the baseline's
};
DsBatchSpace ds_batch_space(DsJob& job, const std::vector<std::int64_t>& tensor);

}  // namespace krigtune::deepspeed
