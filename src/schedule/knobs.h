#pragma once
#include <compare>
#include <cstdint>
#include <optional>
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

/// The purpose of a buffer: the terms by which memory is explained.
enum class Term : std::uint8_t {
  kParameters,          ///< whole, or this rank's shard (stage 3)
  kGradients,           ///< kept during the step: whole (stages 0, 1) or this rank's shard
  kOptimizerState,      ///< moments and fp32 master parameters: whole (stage 0) or this rank's shard
  kGatheredParameters,  ///< stage 3, and quantised ones: parameters while they are computed with
  kReduceBuckets,       ///< gradients until their bucket has been reduced
  kActivations,         ///< kept from forward to backward
  kLogits,
  kWorkspace,  ///< gradients of activations, recomputed activations, and scratch
  kInputs,     ///< tokens, loss, control
};
inline constexpr int kTermCount = 9;
const char* to_string(Term term);

/// The memory in which a buffer lies. On CPU ranks both are memory of this machine, but they are counted separately.
enum class Place : std::uint8_t { kDevice, kHost };
inline constexpr int kPlaceCount = 2;

/// Buffers, and every rank's part of a tensor, begin at multiples of this.
inline constexpr std::int64_t kAlignmentBytes = 64;

/// kSelective does not keep activations that are cheap to recompute for their size: the core of eager attention
/// (Korthikanti et al. 2022), and with flash attention the outputs of norms and of the MLP's activation. kFull keeps
/// only the input of every few layers (Chen et al. 2016).
enum class Checkpointing { kNone, kSelective, kFull };
const char* to_string(Checkpointing checkpointing);  ///< a value of activation_checkpointing

/// A part of a layer that kSelective may compute again: the core of attention, the norms that are modules of their own
/// (before latent attention and before experts), the products that make heads of latents, with the norms of these, a
/// dense MLP with its norm, all that a layer of experts does with its input, the experts' activation alone, and the
/// experts that every token passes (Megatron Core, transformer/transformer_config.py: recompute_modules).
enum class Module : std::uint8_t {
  kCoreAttention,
  kNorms,
  kLatentUp,
  kMlp,
  kExperts,
  kExpertActivation,
  kSharedExperts
};
inline constexpr int kModuleCount = 7;
const char* to_string(Module module);  ///< a word of recompute_modules
/// Returns whether what reads the module's output gets it again, too. The output of the others stays where it is read.
inline bool discards_output(Module module) {
  return module == Module::kNorms || module == Module::kLatentUp || module == Module::kExpertActivation;
}

/// A set of modules.
class Modules {
 public:
  bool has(Module module) const { return (bits_ >> static_cast<unsigned>(module) & 1U) != 0; }
  void add(Module module) { bits_ |= 1U << static_cast<unsigned>(module); }
  std::string text() const;  ///< "layernorm+moe_act"
  friend auto operator<=>(const Modules&, const Modules&) = default;

 private:
  unsigned bits_ = 0;
};

/// Returns the type of parameters, gradients and activations; statistics, masters and moments are fp32.
DType compute_type(workload::Precision precision);

/// How NCCL exchanges tensors between GPUs. These knobs change no operation of a plan, only how its collectives run.
struct NcclKnobs {
  /// kPlain: through buffers of NCCL. kRegistered: ncclCommRegister (NCCL 2.19). kSymmetric: a window at the same
  /// place in all ranks, ncclCommWindowRegister (NCCL 2.27). kCopyEngines: the same with NCCL_CTA_POLICY_ZERO (NCCL
  /// 2.28), with which all-gathers within a node occupy no multiprocessor.
  enum class Buffers : std::uint8_t { kPlain, kRegistered, kSymmetric, kCopyEngines };
  Buffers buffers = Buffers::kPlain;
  std::int64_t max_ctas = 0;  ///< most thread blocks of a collective; 0: NCCL decides

  bool is_default() const { return buffers == Buffers::kPlain && max_ctas == 0; }
  friend auto operator<=>(const NcclKnobs&, const NcclKnobs&) = default;
};
const char* to_string(NcclKnobs::Buffers buffers);  ///< a value of nccl_buffers
/// Throws UserError if they are not the defaults. For ranks without NCCL; `why`: "the ranks run on processors".
void refuse_nccl_knobs(const NcclKnobs& knobs, const char* why);

/// How tokens reach the ranks of their experts and return. kAllToAll: every pair of ranks exchanges them. kAllGather:
/// every rank receives all tokens. kOncePerNode: a token goes once to each node that has some of its experts, and from
/// there to each rank that has (DeepEP, HybridEP: arXiv:2603.07685, section 4).
enum class TokenDispatch : std::uint8_t { kAllToAll, kAllGather, kOncePerNode };
const char* to_string(TokenDispatch dispatch);  ///< a value of moe_dispatch

/// How ranks that share a sequence attend to each other's tokens. kRing: keys and values go round while attention
/// computes (Liu et al. 2023, arXiv:2310.01889). kAllGather: every rank gathers all of them before it attends.
/// kAllToAll: tokens are exchanged for heads, so that each rank attends with all tokens of some heads (Jacobs et al.
/// 2023, "DeepSpeed Ulysses", arXiv:2309.14509). kAllToAllAndRing: the third within groups of neighbours, and the first
/// between these (Fang and Zhao 2024, "USP", arXiv:2405.07719).
enum class ContextKind : std::uint8_t { kRing, kAllGather, kAllToAll, kAllToAllAndRing };
const char* to_string(ContextKind kind);  ///< a value of context_parallel_kind

/// In which order pipeline ranks work. kOneForwardOneBackward: PipeDream-flush, interleaved if a rank has several
/// stages (Narayanan et al. 2021). kGpipe: all forwards, then all backwards (Huang et al. 2019). The others make
/// gradients of weights apart from those of inputs, and later (Qi et al. 2024, "Zero bubble pipeline parallelism",
/// arXiv:2401.10241): kZeroBubbleH1 keeps as many passes as 1F1B, and kZeroBubbleH2 up to twice as many. Those from
/// kZeroBubbleV on have two stages on each rank, the first and the last of the model on the first rank. kVHalf and
/// kVMin keep about a half and a third of what kZeroBubbleV keeps (Qi et al. 2024, "Pipeline parallelism with
/// controllable memory", arXiv:2405.15362). kDualPipeV pairs a forward pass with a backward pass of another micro-step
/// (DeepSeek's DualPipe, cut in half; torch.distributed.pipelining).
enum class PipelineSchedule : std::uint8_t {
  kOneForwardOneBackward,
  kGpipe,
  kZeroBubbleH1,
  kZeroBubbleH2,
  kZeroBubbleV,
  kVHalf,
  kVMin,
  kDualPipeV
};
const char* to_string(PipelineSchedule schedule);  ///< a value of pipeline_schedule
/// Returns whether gradients of weights are made apart from those of inputs.
inline bool splits_backward(PipelineSchedule schedule) {
  return schedule != PipelineSchedule::kOneForwardOneBackward && schedule != PipelineSchedule::kGpipe;
}
/// Returns whether a micro-step passes all ranks forth and back again, so that each has two stages.
inline bool is_vee(PipelineSchedule schedule) { return schedule >= PipelineSchedule::kZeroBubbleV; }

/// The knobs that the schedule reads from a configuration; read_knobs sets all of them.
struct Knobs {
  std::int64_t data_ranks = 1;  ///< that hold the same parameters and reduce their gradients together
  std::int64_t copies = 1;      ///< groups of neighbouring data ranks, each of which holds all that the stage shards
  /// Of the data ranks, neighbours that share a second copy of the sharded parameters, from which the backward pass
  /// gathers them (secondary_shard); 1: there is none.
  std::int64_t secondary_ranks = 1;
  std::int64_t tensor_ranks = 1;
  std::int64_t context_ranks = 1;  ///< of the data ranks, that share each sequence; build_plan refuses more than one
  ContextKind context_kind = {};   ///< always kRing with one of them
  std::int64_t head_ranks = 1;     ///< of these, neighbours that exchange tokens for heads; 1: none do
  std::int64_t expert_ranks = 1;   ///< of the data ranks, that share the experts; 1 without experts
  /// Each tensor rank has whole experts, for its own tokens (expert_tensor_parallel = 1): the data and the tensor ranks
  /// share the experts, in expert_ranks parts. False with one tensor rank.
  bool whole_experts = false;
  TokenDispatch dispatch = TokenDispatch::kAllToAll;
  bool overlaps_experts = false;    ///< tokens travel to experts and back while another micro-batch is computed
  bool overlaps_tensor = false;     ///< linear layers exchange tokens piece by piece; needs sequence_parallel
  std::int64_t pipeline_ranks = 1;  ///< pipeline stages; cost/ models several, build_plan refuses more than one
  std::int64_t virtual_stages = 1;  ///< of each pipeline rank (interleaved 1F1B), without effect if there is only one
  PipelineSchedule pipeline_schedule = {};  ///< always 1F1B with one pipeline rank
  bool sequence_parallel = false;           ///< always false with one tensor rank
  std::int64_t zero_stage = 0;
  std::int64_t micro_batch = 1;  ///< sequences of a micro-step that a rank computes, alone or with context_ranks
  std::int64_t micro_steps = 1;
  std::int64_t reduce_bucket_elems = 0;
  std::int64_t allgather_bucket_elems = 0;
  bool overlap_comm = false;
  Checkpointing checkpointing = Checkpointing::kNone;
  std::optional<Modules> modules;      ///< that kSelective computes again; empty: the usual ones, as it says
  std::int64_t checkpoint_layers = 1;  ///< between two checkpoints, with kFull
  bool offload_optimizer = false;      ///< to host memory
  bool offload_parameters = false;     ///< to host memory; always false below stage 3
  // Stage 3, all in elements:
  std::int64_t prefetch_elems = 0;     ///< gathered ahead of their use
  std::int64_t persistence_elems = 0;  ///< tensors up to this size stay whole on every rank
  std::int64_t max_live_elems = 0;     ///< prefetching gathers no more than this
  /// Parameters that are used again within this distance are kept (dialect deepspeed)
  std::int64_t max_reuse_elems = 0;
  NcclKnobs nccl = {};

  /// Returns the tensor ranks over which each expert is split.
  std::int64_t parts_of_expert() const { return whole_experts ? 1 : tensor_ranks; }
  /// Returns the ranks that share what experts have, in expert_ranks parts.
  std::int64_t expert_holders() const { return data_ranks * (whole_experts ? tensor_ranks : 1); }
  /// Returns the ranks that have the same experts.
  std::int64_t ranks_of_expert() const { return expert_holders() / expert_ranks; }
  /// Returns the data ranks that share what the stage shards.
  std::int64_t shard_ranks() const { return data_ranks / copies; }
  /// Returns the ranks that share what the stage shards of an expert.
  std::int64_t shards_of_expert() const { return ranks_of_expert() / copies; }
  /// Returns the sequences of a step, of all ranks.
  std::int64_t sequences() const { return micro_batch * micro_steps * (data_ranks / context_ranks); }

  friend auto operator<=>(const Knobs&, const Knobs&) = default;
};

/// A part of a configuration that the schedule does not model, and what to write instead.
struct NotModelled {
  std::string what, hint;
  bool of_this_job =
      false;  ///< the value suits other models or clusters: too many ranks, or a size that they do not divide
};
[[noreturn]] void refuse(const NotModelled& problem);  ///< throws the problem as a UserError
/// Returns the result if it is modelled; otherwise throws UserError.
template <class T>
T modelled(std::variant<T, NotModelled> known) {
  if (const NotModelled* problem = std::get_if<NotModelled>(&known)) refuse(*problem);
  return std::get<T>(std::move(known));
}

/// Returns whether experts that are spread over ranks are modelled: those of Megatron and nanotron, which shard
/// optimizer states alone. Elsewhere expert_parallel changes no prediction.
bool predicts_expert_ranks(const workload::Workload& workload);

/// Returns the knobs of a configuration, or its first problem: values out of range, unknown knobs, sizes that the ranks
/// do not divide, or a violated batch identity train_batch_size = micro_batch * data ranks *
/// gradient_accumulation_steps.
std::variant<Knobs, NotModelled> knobs_of(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                                          const space::Configuration& configuration);
/// Returns the knobs of a configuration; throws UserError if it is not modelled.
Knobs read_knobs(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                 const space::Configuration& configuration);

/// Throws UserError for configurations that cost/ models but that cannot be planned operation by operation: pipeline
/// parallelism, and steps with more operations or larger numbers than a plan supports.
void check_planned(const workload::Workload& workload, const workload::ClusterSpec& cluster, const Knobs& knobs);

/// Throws UserError for models that the schedule does not cover.
void check_model(const workload::Workload& workload);

/// Returns the names of the parameters that change a plan, including pipeline_parallel (a plan supports only 1).
const std::vector<std::string>& planned_parameters();
/// Throws UserError under the same conditions as build_plan, at a fraction of its cost.
void check_knobs(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                 const space::Configuration& configuration);

}  // namespace krigtune::schedule
