#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "space/parameter.h"

namespace krigtune::space {

/// The names of the parameters that the code mentions. Each is written only here, so that a typing error is a compile
/// error; well_known_parameters() says what they mean.
inline constexpr const char* kZeroStage = "zero_stage";
inline constexpr const char* kMicroBatch = "micro_batch";
inline constexpr const char* kAccumulation = "gradient_accumulation_steps";
inline constexpr const char* kReduceBucket = "reduce_bucket_size";
inline constexpr const char* kAllgatherBucket = "allgather_bucket_size";
inline constexpr const char* kOverlap = "overlap_comm";
inline constexpr const char* kContiguousGradients = "contiguous_gradients";
inline constexpr const char* kTensorParallel = "tensor_parallel";
inline constexpr const char* kPipelineParallel = "pipeline_parallel";
inline constexpr const char* kVirtualPipeline = "virtual_pipeline";
inline constexpr const char* kPipelineSchedule = "pipeline_schedule";
inline constexpr const char* kContextParallel = "context_parallel";
inline constexpr const char* kContextKind = "context_parallel_kind";
inline constexpr const char* kExpertParallel = "expert_parallel";
inline constexpr const char* kExpertTensorParallel = "expert_tensor_parallel";
inline constexpr const char* kMoeDispatch = "moe_dispatch";
inline constexpr const char* kMoeOverlap = "moe_overlap";
inline constexpr const char* kTensorOverlap = "tp_comm_overlap";
inline constexpr const char* kHybridShard = "hybrid_shard";
inline constexpr const char* kSecondaryShard = "secondary_shard";
inline constexpr const char* kSequenceParallel = "sequence_parallel";
inline constexpr const char* kCheckpointing = "activation_checkpointing";
inline constexpr const char* kCheckpointLayers = "activation_checkpointing_layers";
inline constexpr const char* kRecomputeModules = "recompute_modules";
inline constexpr const char* kOffloadOptimizer = "offload_optimizer";
inline constexpr const char* kOffloadParam = "offload_param";
inline constexpr const char* kPrefetch = "stage3_prefetch_bucket_size";
inline constexpr const char* kPersistence = "stage3_param_persistence_threshold";
inline constexpr const char* kMaxLive = "stage3_max_live_parameters";
inline constexpr const char* kMaxReuse = "stage3_max_reuse_distance";
inline constexpr const char* kNcclMaxCtas = "nccl_max_ctas";
inline constexpr const char* kNcclBuffers = "nccl_buffers";

// The batch identity, on integers:
//
//   train_batch_size = micro_batch * dp * gradient_accumulation_steps
//
// All code that counts sequences uses these functions; dp is that of space/parallel_layout.h.

/// Returns the sequences of one optimizer step.
inline std::int64_t sequences_of_step(std::int64_t micro_batch, std::int64_t dp, std::int64_t accumulation_steps) {
  return micro_batch * dp * accumulation_steps;
}

/// Returns the number of micro-steps in a step of `train_batch_size` sequences, or the micro-batch if the number of
/// micro-steps is passed as `micro_batch`. Empty if the other two do not divide the batch. The divisions are one after
/// the other so that nothing overflows.
inline std::optional<std::int64_t> accumulation_steps(std::int64_t train_batch_size, std::int64_t micro_batch,
                                                      std::int64_t dp) {
  if (micro_batch < 1 || dp < 1 || train_batch_size % micro_batch != 0) return std::nullopt;
  const std::int64_t micro_batches = train_batch_size / micro_batch;
  if (micro_batches % dp != 0) return std::nullopt;
  return micro_batches / dp;
}

// The parameters that krigtune knows by name. Everything known about one is in its row of a single table
// (src/space/well_known.cpp), from which documentation, schema, `init`, canonical values, DeepSpeed's keys and flags,
// predictions and rules of thumb are derived.
//
//   if (const WellKnownParameter* known = find_well_known("reduce_bucket_size")) use(known->deepspeed.key);

/// Another name by which frameworks and launchers know a parameter.
struct OtherName {
  const char* name;
  const char* where;  ///< who uses this name: "Megatron-LM"
};

/// What DeepSpeed and the scripts that start it need to know about a parameter.
struct DeepSpeedKnob {
  const char* key = "";          ///< JSON pointer in ds_config.json: "/zero_optimization/stage"; "": not in the file
  const char* second_key = "";   ///< another spelling of the key that DeepSpeed accepts
  const char* old_key = "";      ///< an obsolete switch that DeepSpeed refuses together with the key
  std::int64_t first_stage = 0;  ///< the lowest ZeRO stage that reads it
  std::int64_t largest = std::numeric_limits<std::int64_t>::max();  ///< largest integer that the file may contain
  /// The value that turns the feature off and may therefore be missing in the file.
  std::optional<Value> off = std::nullopt;
  bool is_offload = false;        ///< it chooses where data that can leave the GPU is stored
  bool is_even = false;           ///< DeepSpeed asserts that the value is even
  const char* trainer_flag = "";  ///< flag of a Hugging Face Trainer script: "--gradient_checkpointing"
};

/// What a number of ranks divides, if the parameter is one: the ranks of a job are those of ParallelLayout.
enum class RankSplit {
  kNone,      ///< it is no number of ranks
  kModel,     ///< all ranks: those of a group hold one copy of the model together (tensor, pipeline)
  kSequence,  ///< all ranks: those of a group hold the same parameters, and share each sequence (context)
  kDataRanks  ///< those that hold the same parameters: a group of them shares some, and there are as many replicas of
              ///< the rest as before (expert)
};

/// How predictions treat a parameter.
enum class Modelling {
  kNone,         ///< forecasts ignore it, and krigtune-bench refuses it
  kDefaultOnly,  ///< forecasts ignore it; krigtune-bench accepts its default, which changes nothing
  kExecuted,     ///< forecasts ignore it; krigtune-bench executes it
  kFull,         ///< plan, predicted time and predicted memory depend on its value
};

/// The cost of one word of a parameter.
struct WordCost {
  const char* word;
  double log_speed;         ///< log of the job's relative speed with this word
  double log_memory = 0.0;  ///< log of the memory that the job needs with this word, relative to one without
};

/// The effect of a parameter on a job whose times and memory are not predicted. src/forecast/prior.cpp has the rules
/// for speed and success and their sources, src/search/model/learned_memory.cpp those for memory.
struct RuleOfThumb {
  double log_speed = 0.0;      ///< log speed of the job for each doubling of the value
  double log_memory = 0.0;     ///< log of the needed memory for each doubling, or for each step of 1 where 0 is allowed
  double success_slope = 0.0;  ///< probits of a trial's success, from the smallest to the largest value
  /// Values that are words; words not listed cost nothing. The first one is what `true` means under another name.
  std::vector<WordCost> words = {};

  bool speaks_of_numbers() const { return log_speed != 0.0 || success_slope != 0.0; }
  bool speaks_of_memory() const { return log_memory != 0.0 || (!words.empty() && words.front().log_memory != 0.0); }
};

/// A row of the table. A new parameter states only what differs from these defaults.
struct WellKnownParameter {
  const char* name = "";     ///< one of the constants above if the code mentions it
  const char* unit = "";     ///< "sequences per rank and micro-step", "elements", or "" for a plain choice
  const char* meaning = "";  ///< one line for people
  /// When it has no effect and therefore only one value: in words, and as a condition over parameters and facts ("": it
  /// always has an effect). The words may also describe is_bucket.
  const char* no_effect = "";
  const char* no_effect_if = "";
  bool is_bucket = false;          ///< in elements: all sizes that hold every parameter of the model are equivalent
  Value default_value = false;     ///< the default of DeepSpeed or of krigtune-bench; its kind is the parameter's
  const char* default_range = "";  ///< as in a session: R"({"min": 1, "max": 64, "scale": "log2"})"
  std::int64_t smallest = 0;       ///< smallest integer allowed
  RankSplit splits_ranks = RankSplit::kNone;
  Modelling modelling = Modelling::kNone;
  DeepSpeedKnob deepspeed = {};
  std::vector<OtherName> other_names = {};
  RuleOfThumb rule = {};
};

/// Returns the table, in the order of the documentation.
const std::vector<WellKnownParameter>& well_known_parameters();
/// Returns the row with that name, or nullptr.
const WellKnownParameter* find_well_known(std::string_view name);
/// Returns the well-known name that `name` means, either itself or for another name; "" if there is none.
std::string_view well_known_name(std::string_view name);
/// Returns whether it has no effect on a single data-parallel rank, regardless of the other parameters.
bool needs_other_data_ranks(const WellKnownParameter& known);

/// A fact of the job that constraints may use in addition to the parameters: dp, ranks, nodes, ...
struct KnownFact {
  const char* name;
  std::string meaning;
};
const std::vector<KnownFact>& known_facts();

/// Returns the text of docs/parameters.md.
std::string parameter_reference();

}  // namespace krigtune::space
