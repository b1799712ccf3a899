#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "space/parameter.h"

namespace krigtune::space {

/// Names of the parameters that code mentions by name: each stands here once, so that a slip of the pen is an error of
/// the compiler. What they mean stands in well_known_parameters().
inline constexpr const char* kZeroStage = "zero_stage";
inline constexpr const char* kMicroBatch = "micro_batch";
inline constexpr const char* kAccumulation = "gradient_accumulation_steps";
inline constexpr const char* kReduceBucket = "reduce_bucket_size";
inline constexpr const char* kAllgatherBucket = "allgather_bucket_size";
inline constexpr const char* kOverlap = "overlap_comm";
inline constexpr const char* kContiguousGradients = "contiguous_gradients";
inline constexpr const char* kTensorParallel = "tensor_parallel";
inline constexpr const char* kPipelineParallel = "pipeline_parallel";
inline constexpr const char* kSequenceParallel = "sequence_parallel";
inline constexpr const char* kCheckpointing = "activation_checkpointing";
inline constexpr const char* kCheckpointLayers = "activation_checkpointing_layers";
inline constexpr const char* kOffloadOptimizer = "offload_optimizer";
inline constexpr const char* kOffloadParam = "offload_param";
inline constexpr const char* kPrefetch = "stage3_prefetch_bucket_size";
inline constexpr const char* kPersistence = "stage3_param_persistence_threshold";
inline constexpr const char* kMaxLive = "stage3_max_live_parameters";
inline constexpr const char* kMaxReuse = "stage3_max_reuse_distance";

// The batch identity, on integers:
//
//   train_batch_size = micro_batch * dp * gradient_accumulation_steps
//   dp = ranks / (tensor_parallel * pipeline_parallel)
//
// Whoever counts ranks or sequences uses these functions. Conditions of a session read the same names as real numbers,
// which need not divide: Vocabulary writes the two lines for one configuration, Binder (lattice_count.cpp) for bounds
// over many.

/// Replicas of the model, each with a micro-batch of its own. Empty: the ranks do not split into whole ones.
inline std::optional<std::int64_t> data_parallel_ranks(std::int64_t ranks, std::int64_t tensor_parallel,
                                                       std::int64_t pipeline_parallel) {
  for (const std::int64_t ways : {tensor_parallel, pipeline_parallel}) {
    if (ways < 1 || ranks % ways != 0) return std::nullopt;
    ranks /= ways;
  }
  return ranks;
}

/// Sequences of an optimizer step.
inline std::int64_t sequences_of_step(std::int64_t micro_batch, std::int64_t dp, std::int64_t accumulation_steps) {
  return micro_batch * dp * accumulation_steps;
}

/// The micro-steps of a step of so many sequences; with steps in the place of micro_batch, the micro-batch. Empty: the
/// product of the other two does not divide them. It divides in turn, so that nothing overflows.
inline std::optional<std::int64_t> accumulation_steps(std::int64_t train_batch_size, std::int64_t micro_batch,
                                                      std::int64_t dp) {
  if (micro_batch < 1 || dp < 1 || train_batch_size % micro_batch != 0) return std::nullopt;
  const std::int64_t micro_batches = train_batch_size / micro_batch;
  if (micro_batches % dp != 0) return std::nullopt;
  return micro_batches / dp;
}

// The parameters that krigtune knows by name. All that is known of one stands in its row of the one table
// (src/space/well_known.cpp): documentation, schema, `init`, canonical values, the keys of DeepSpeed's file and the
// flags of its scripts, predictions and rules of thumb read it there.
//
//   if (const WellKnownParameter* known = find_well_known("reduce_bucket_size")) use(known->deepspeed.key);

/// Another name under which frameworks and launchers know a parameter.
struct OtherName {
  const char* name;
  const char* where;  ///< who calls it so: "Megatron-LM"
};

/// What DeepSpeed and the scripts that start it need to know of a parameter.
struct DeepSpeedKnob {
  const char* key = "";          ///< JSON pointer in ds_config.json: "/zero_optimization/stage"; "": not in the file
  const char* second_key = "";   ///< a second spelling that DeepSpeed takes in the key's place
  const char* old_key = "";      ///< a switch of old that DeepSpeed refuses beside the key
  std::int64_t first_stage = 0;  ///< the lowest ZeRO stage that reads it
  std::int64_t largest = std::numeric_limits<std::int64_t>::max();  ///< integer that a file may have
  std::optional<Value> off = std::nullopt;  ///< the value that asks for nothing, so that it need not be in the file
  bool is_offload = false;                  ///< it says where something lives that can be moved off the GPU
  bool is_even = false;                     ///< DeepSpeed asserts it
  const char* trainer_flag = "";            ///< of a script of the Hugging Face Trainer: "--gradient_checkpointing"
};

/// What predictions make of a parameter.
enum class Modelling {
  kNone,         ///< nothing: forecasts leave it out, and krigtune-bench refuses it
  kDefaultOnly,  ///< forecasts leave it out; krigtune-bench takes its default, at which it changes nothing
  kFull,         ///< plan, predicted time and predicted memory follow its value
};

/// What a word of a parameter costs.
struct WordCost {
  const char* word;
  double log_speed;  ///< of the job with that word
};

/// What a parameter does to a job whose times nobody predicts. The rules in which the numbers stand, and where these
/// come from: src/forecast/prior.cpp.
struct RuleOfThumb {
  double log_speed = 0.0;            ///< of the job, for each doubling of the value
  double success_slope = 0.0;        ///< of a trial's success in probits, from the smallest to the largest value
  bool splits_model = false;         ///< the value is a number of ranks that share one copy of the model
  std::vector<WordCost> words = {};  ///< values that are words; others cost nothing

  bool speaks_of_numbers() const { return log_speed != 0.0 || success_slope != 0.0; }
};

/// A row of the table. A new parameter says what differs from the defaults here.
struct WellKnownParameter {
  const char* name = "";     ///< one of the constants above where code mentions it
  const char* unit = "";     ///< "sequences per rank and micro-step", "elements", or "" for a plain choice
  const char* meaning = "";  ///< one line for people
  /// Where it changes nothing and so has one value, in words, and as a condition over parameters and facts ("": it has
  /// an effect everywhere). The words may say more: what is_bucket does.
  const char* no_effect = "";
  const char* no_effect_if = "";
  bool is_bucket = false;          ///< in elements: all sizes that hold every parameter of the model are one
  Value default_value = false;     ///< DeepSpeed's own default, or krigtune-bench's; its kind is the parameter's
  const char* default_range = "";  ///< as in a session: R"({"min": 1, "max": 64, "scale": "log2"})"
  std::int64_t smallest = 0;       ///< integer that it may be
  Modelling modelling = Modelling::kNone;
  DeepSpeedKnob deepspeed = {};
  std::vector<OtherName> other_names = {};
  RuleOfThumb rule = {};
};

/// In the order of the documentation.
const std::vector<WellKnownParameter>& well_known_parameters();
/// nullptr: none of that name.
const WellKnownParameter* find_well_known(std::string_view name);
/// The well-known name that `name` means, itself one or another name; "": none.
std::string_view well_known_name(std::string_view name);
/// Whether it changes nothing on one data-parallel rank, whatever the other parameters are.
bool needs_other_data_ranks(const WellKnownParameter& known);

/// Facts of the job that constraints may use beside the parameters: dp, ranks, nodes, ...
struct KnownFact {
  const char* name;
  const char* meaning;
};
const std::vector<KnownFact>& known_facts();

/// docs/parameters.md
std::string parameter_reference();

}  // namespace krigtune::space
