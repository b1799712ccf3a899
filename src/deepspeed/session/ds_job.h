#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deepspeed/job/ds_autotuning.h"
#include "deepspeed/job/ds_config.h"
#include "deepspeed/session/deepspeed_session.h"

// The user's DeepSpeed job as its file, command and machine say it.
namespace krigtune::deepspeed {

struct DsJob {
  explicit DsJob(const DsSessionInputs& inputs);

  const DsTunable* find(std::string_view name) const;  ///< nullptr: the file does not have it
  /// The file lists it, or leaves it to others ("auto").
  bool is_opened(std::string_view name) const;
  /// What the file fixes, and does not open by opening nothing at all.
  bool is_kept(std::string_view name) const;
  /// Whether the script would follow a change: the file says it, or a flag of the command can.
  bool can_change(std::string_view name) const;
  /// A flag of the command says it, or can be added.
  bool has_flag(std::string_view name) const;
  /// What the user's own configuration has; empty: neither file nor flags say it.
  std::optional<space::Value> own(std::string_view name) const;
  std::optional<std::int64_t> own_count(std::string_view name) const;
  std::int64_t own_count_or(std::string_view name, std::int64_t fallback) const;  ///< 0 is a count here
  bool has(DsFeature feature) const;  ///< of the installed version; of a current one where it is not known
  std::int64_t replicas() const { return cluster.ranks() / tensor; }  ///< data-parallel ranks of the user's own job

  const DsSessionInputs& inputs;
  std::string source;
  std::vector<DsTunable> tunables;
  DsAutotuning autotuning;
  std::vector<FlagMapping> mappings;
  space::Configuration flags;         ///< what mapped flags say now
  workload::ClusterSpec cluster;      ///< with the command's own ranks
  std::int64_t tensor = 1;            ///< tensor-parallel ranks of the user's own job
  bool opens_nothing = false;         ///< neither list nor "auto" in the file
  std::optional<std::int64_t> batch;  ///< sequences of a step, to be kept
  Json workload;                      ///< the session's block; null: none
  std::optional<std::int64_t> num_params;
  std::optional<std::int64_t> hidden;
  std::vector<std::string> remarks;
};

/// Sets workload, num_params and hidden; call it once the batch is known.
void read_ds_model(DsJob& job);

/// Bytes of parameters, gradients and AdamW's states on one rank, at least.
double model_state_bytes(const DsJob& job, std::int64_t stage);

/// What a rank holds at least at that stage: those, the least reduce bucket and, where measured, the activations of one
/// sequence.
double least_bytes(const DsJob& job, std::int64_t stage);

/// Whether the script's blocks recompute their activations, which no file says and memory depends on most.
enum class Recomputation {
  kUnknown,
  kByFlag,  ///< a flag of the command says it, and can be searched
  kNone,    ///< as the measured activations show
  kFull,    ///< likewise
};
Recomputation recomputation_of(const DsJob& job);

/// "model" of a workload without "seq_len": the usual shape of a GPT of so many parameters; null: it is too small.
Json usual_shape(std::int64_t num_params, std::int64_t vocab);

/// Whether a node's memory holds what the optimizer's states and their step need, and DeepSpeed makes the optimizer.
bool may_offload(const DsJob& job);

/// A list or a range, as in a session, of a knob that the file leaves open or does not have; null: none is of use.
Json sensible_values(const DsJob& job, const std::string& name);

/// Space, constraints and baseline of the session.
void add_ds_space(DsJob& job, Json& session);

/// Candidates of micro_batch and gradient_accumulation_steps and what binds them; `tensor`: values of tensor_parallel.
struct DsBatchSpace {
  Json micro_batch;   ///< as in a session; null: not in the space
  Json accumulation;  ///< likewise; null: derived, or the file's
  std::vector<std::string> constraints;
  space::Configuration own;  ///< the baseline's
};
DsBatchSpace ds_batch_space(DsJob& job, const std::vector<std::int64_t>& tensor);

}  // namespace krigtune::deepspeed
