#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "space/configuration.h"
#include "workload/workload.h"

namespace krigtune::schedule {

enum class DType : std::uint8_t { kFp32, kBf16, kFp16, kInt32, kUint8 };
inline constexpr std::int64_t size_bytes(DType type) {
  return type == DType::kUint8 ? 1 : type == DType::kBf16 || type == DType::kFp16 ? 2 : 4;
}

/// What a buffer is for: the terms in which memory is explained.
enum class Term : std::uint8_t {
  kParameters,          ///< whole, or this rank's shard (stage 3)
  kGradients,           ///< kept over the step: whole (stages 0, 1) or this rank's shard
  kOptimizerState,      ///< moments and fp32 master parameters: whole (stage 0) or this rank's shard
  kGatheredParameters,  ///< stage 3: parameters while they are computed with
  kReduceBuckets,       ///< gradients until their bucket has been reduced
  kActivations,         ///< kept from forward to backward
  kLogits,
  kWorkspace,  ///< gradients of activations, what is computed again, and scratch
  kInputs,     ///< tokens, loss, control
};
inline constexpr int kTermCount = 9;
const char* to_string(Term term);

/// Which memory a buffer lies in. On CPU ranks both are this machine's, but they are counted apart.
enum class Place : std::uint8_t { kDevice, kHost };
inline constexpr int kPlaceCount = 2;

/// Buffers begin at multiples of it, and so does every rank's part of a tensor.
inline constexpr std::int64_t kAlignmentBytes = 64;

/// kSelective: what is cheap to compute again for its bytes is not kept: the core of eager attention (Korthikanti et
/// al. 2022), with flash attention the outputs of norms and of the MLP's activation. kFull: of every few layers only
/// the input is kept (Chen et al. 2016).
enum class Checkpointing { kNone, kSelective, kFull };
const char* to_string(Checkpointing checkpointing);  ///< as activation_checkpointing has it

/// The type of parameters, gradients and activations; statistics, masters and moments are fp32.
DType compute_type(workload::Precision precision);

/// What the schedule reads from a configuration; read_knobs sets all of them.
struct Knobs {
  std::int64_t data_ranks = 1;
  std::int64_t tensor_ranks = 1;
  std::int64_t pipeline_ranks = 1;  ///< stages; modelled by cost/, build_plan refuses more than one
  bool sequence_parallel = false;   ///< false on one tensor rank
  std::int64_t zero_stage = 0;
  std::int64_t micro_batch = 1;  ///< sequences per data-parallel rank and micro-step
  std::int64_t micro_steps = 1;
  std::int64_t reduce_bucket_elems = 0;
  std::int64_t allgather_bucket_elems = 0;
  bool overlap_comm = false;
  Checkpointing checkpointing = Checkpointing::kNone;
  std::int64_t checkpoint_layers = 1;  ///< between two checkpoints, with kFull
  bool offload_optimizer = false;      ///< to host memory
  bool offload_parameters = false;     ///< likewise; false below stage 3
  // Stage 3, all in elements.
  std::int64_t prefetch_elems = 0;     ///< gathered ahead of their use
  std::int64_t persistence_elems = 0;  ///< tensors up to this size stay whole on every rank
  std::int64_t max_live_elems = 0;     ///< gathered at most by prefetching
  std::int64_t max_reuse_elems = 0;    ///< what is used again within this distance is kept (dialect deepspeed)
};

/// What of a configuration the schedule does not model, and what to write instead.
struct NotModelled {
  std::string what, hint;
};
[[noreturn]] void refuse(const NotModelled& problem);  ///< throws it as a UserError
/// What is modelled; throws UserError where it is not.
template <class T>
T modelled(std::variant<T, NotModelled> known) {
  if (const NotModelled* problem = std::get_if<NotModelled>(&known)) refuse(*problem);
  return std::get<T>(std::move(known));
}

/// The knobs of a configuration, or the first thing in it that is not modelled: values out of range, knobs that the
/// schedule does not know, ranks that do not divide what they share, and where the batch identity
/// train_batch_size = micro_batch * data ranks * gradient_accumulation_steps does not hold.
std::variant<Knobs, NotModelled> knobs_of(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                                          const space::Configuration& configuration);
/// The knobs of a configuration; throws UserError for what is not modelled.
Knobs read_knobs(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                 const space::Configuration& configuration);

/// Throws UserError for what is modelled (cost/) and not planned operation by operation: pipeline parallelism, and
/// steps of more operations and numbers than a plan can hold.
void check_planned(const workload::Workload& workload, const workload::ClusterSpec& cluster, const Knobs& knobs);

/// Throws UserError for models that the schedule does not cover.
void check_model(const workload::Workload& workload);

/// Names of the parameters that change a plan, pipeline_parallel (of which a plan takes 1 only) among them.
const std::vector<std::string>& planned_parameters();
/// Throws UserError as build_plan does, for a fraction of its cost.
void check_knobs(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                 const space::Configuration& configuration);

}  // namespace krigtune::schedule
