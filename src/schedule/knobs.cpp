#include "schedule/knobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "schedule/op_kind.h"
#include "space/parallel_layout.h"
#include "space/well_known.h"

namespace krigtune::schedule {
namespace {

// In the order of the enumerators.
constexpr std::array<const char*, kTermCount> kTermNames = {
    "parameters", "gradients", "optimizer_state", "gathered_parameters", "reduce_buckets", "activations",
    "logits",     "workspace", "inputs"};
constexpr std::array<const char*, kPhaseCount> kPhaseNames = {"forward", "recompute", "backward", "optimizer"};

constexpr std::array<const char*, kModuleCount> kModuleNames = {"core_attn", "layernorm", "mla_up_proj",   "mlp",
                                                                "moe",       "moe_act",   "shared_experts"};

static_assert(kModuleCount == static_cast<int>(Module::kSharedExperts) + 1);
static_assert(kTermCount == static_cast<int>(Term::kInputs) + 1);
static_assert(kPhaseCount == static_cast<int>(Phase::kOptimizer) + 1);

}  // namespace

const char* to_string(Term term) { return kTermNames[static_cast<std::size_t>(term)]; }
const char* to_string(Module module) { return kModuleNames[static_cast<std::size_t>(module)]; }
const char* to_string(Phase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }

namespace {

const space::Value& default_of(const char* name) {
  const space::WellKnownParameter* known = space::find_well_known(name);
  assert(known != nullptr);
  return known->default_value;
}

// Returns the parameters that the schedule models at least to this degree.
std::vector<std::string> parameters_from(space::Modelling least) {
  std::vector<std::string> names;
  for (const space::WellKnownParameter& known : space::well_known_parameters()) {
    if (known.modelling >= least) names.emplace_back(known.name);
  }
  return names;
}

const std::vector<std::string>& known_names() {
  static const std::vector<std::string> kNames = parameters_from(space::Modelling::kDefaultOnly);
  return kNames;
}

// Reads one configuration and remembers the first value that is not modelled.
class KnobReader {
 public:
  KnobReader(const workload::Workload& workload, const workload::ClusterSpec& cluster,
             const space::Configuration& configuration)
      : workload_(workload), cluster_(cluster), configuration_(configuration), layout_(cluster.ranks()) {}

  std::variant<Knobs, NotModelled> read() {
    check_names();
    knobs_.zero_stage = bounded(space::kZeroStage, 0, 3);
    knobs_.micro_batch = bounded(space::kMicroBatch, 1, 1'000'000);
    read_ranks();
    if (!problem_) knobs_.micro_steps = micro_steps();
    check_interleaved_steps();
    read_sizes();
    if (problem_) return *problem_;
    return knobs_;
  }

 private:
  void refuse(std::string what, std::string hint, bool of_this_job = false) {
    if (!problem_) problem_ = {std::move(what), std::move(hint), of_this_job};
  }

  void check_names() {
    const std::vector<std::string>& known = known_names();
    for (const auto& [name, value] : configuration_) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      refuse(fmt::format("the training step does not model the parameter '{}'", name), suggestion(name, known));
    }
    for (const space::WellKnownParameter& knob : space::well_known_parameters()) {
      const space::Value* value =
          knob.modelling == space::Modelling::kDefaultOnly ? configuration_.find(knob.name) : nullptr;
      if (value == nullptr || space::same_value(*value, knob.default_value)) continue;
      refuse(fmt::format("the training step does not model {} = {}", knob.name, space::to_string(*value)),
             fmt::format("only {} is", space::to_string(knob.default_value)));
    }
  }

  const space::Value& value_of(const char* name) const {
    const space::Value* value = configuration_.find(name);
    return value == nullptr ? default_of(name) : *value;
  }

  void refuse_kind(const char* name, const char* expected) {
    refuse(fmt::format("'{}' is {}, where {} was expected", name, space::to_string(value_of(name)), expected),
           "fix its value");
  }

  // Returns `low` if the value is invalid. `of_this_job`: the upper bound is a size of the job.
  std::int64_t bounded(const char* name, std::int64_t low, std::int64_t high, bool of_this_job = false) {
    const std::optional<std::int64_t> value = space::integer_of(value_of(name));
    if (!value) refuse_kind(name, "an integer");
    if (value && *value >= low && *value <= high) return *value;
    if (value) {
      refuse(fmt::format("{} = {} is out of range", name, *value), fmt::format("use {} to {}", low, high),
             of_this_job && *value > high);
    }
    return low;
  }

  bool boolean(const char* name) {
    const bool* value = std::get_if<bool>(&value_of(name));
    if (value == nullptr) refuse_kind(name, "true or false");
    return value != nullptr && *value;
  }

  bool on_host(const char* name) {
    const std::string device = space::to_string(value_of(name));
    if (device != "cpu" && device != "none") {
      refuse(fmt::format("the training step does not model {} = {}", name, device), "only none and cpu are");
    }
    return device == "cpu";
  }

  // Returns the one of `known` that the value names, which are called so by to_string.
  template <class Enum>
  Enum word(const char* name, std::initializer_list<Enum> known, const char* hint) {
    const std::string said = space::to_string(value_of(name));
    for (const Enum one : known) {
      if (said == to_string(one)) return one;
    }
    refuse(fmt::format("{} = {} is not known", name, said), hint);
    return *known.begin();
  }

  Checkpointing checkpointing() {
    return word(space::kCheckpointing, {Checkpointing::kNone, Checkpointing::kSelective, Checkpointing::kFull},
                "use none, selective or full");
  }

  // Empty for the usual ones. Tokens of experts travel beside another micro-batch only if nothing sends them again, and
  // delayed scales of fp8 change between a value and the same one again (Megatron Core, transformer_config.py).
  std::optional<Modules> modules() {
    const std::string said = space::to_string(value_of(space::kRecomputeModules));
    if (knobs_.checkpointing != Checkpointing::kSelective || said == "usual") return std::nullopt;
    Modules modules;
    for (std::size_t begin = 0; begin < said.size();) {
      const std::size_t end = std::min(said.find_first_of("+, ", begin), said.size());
      const std::string one = said.substr(begin, end - begin);
      const auto found = std::find(kModuleNames.begin(), kModuleNames.end(), one);
      if (found != kModuleNames.end()) modules.add(static_cast<Module>(found - kModuleNames.begin()));
      if (found == kModuleNames.end() && !one.empty()) {
        refuse(fmt::format("{} does not know '{}'", space::kRecomputeModules, one),
               suggestion(one, std::vector<std::string>(kModuleNames.begin(), kModuleNames.end())));
      }
      begin = end + 1;
    }
    if (knobs_.overlaps_experts && modules.has(Module::kExperts))
      refuse(fmt::format("{} does not go with the module moe", space::kMoeOverlap), "leave moe out, or use false");
    const bool has_delayed_scales = workload_.training.products == workload::ProductFormat::kFp8Delayed;
    if (has_delayed_scales && (modules.has(Module::kNorms) || modules.has(Module::kExpertActivation)))
      refuse("layernorm and moe_act do not go with delayed scales of fp8", "use another precision, or other modules");
    return modules;
  }

  void check_divides(const char* name, std::int64_t parts, std::int64_t whole, const char* what) {
    if (whole % parts == 0) return;
    refuse(fmt::format("{} = {} does not divide {} {}", name, parts, whole, what), "choose another size", true);
  }

  NcclKnobs::Buffers nccl_buffers() {
    using Buffers = NcclKnobs::Buffers;
    return word(space::kNcclBuffers,
                {Buffers::kPlain, Buffers::kRegistered, Buffers::kSymmetric, Buffers::kCopyEngines},
                "use plain, registered, symmetric or copy_engines");
  }

  TokenDispatch dispatch() {
    return word(space::kMoeDispatch, {TokenDispatch::kAllToAll, TokenDispatch::kAllGather, TokenDispatch::kOncePerNode},
                "use alltoall, allgather or flex");
  }

  // Returns whether so many ranks can have heads of their own. Frameworks but Megatron give several ranks the same keys
  // and values where there are fewer heads of these (Megatron's: Transformer Engine, attention/dot_product_attention/
  // context_parallel.py; DeepSpeed's: runtime/sequence_parallel/ulysses_sp.py).
  bool can_share_heads(std::int64_t ways) const {
    const std::int64_t of_keys = workload_.model.kv_heads / knobs_.tensor_ranks;
    if (of_keys == 0) return false;  // without attention nothing divides them
    const bool may_repeat = workload_.framework != workload::Framework::kMegatron && ways % of_keys == 0;
    return workload_.model.heads / knobs_.tensor_ranks % ways == 0 && (of_keys % ways == 0 || may_repeat);
  }

  // Sets how ranks that share a sequence attend to each other's tokens. With both ways the groups that exchange heads
  // are as large as a node and the heads allow.
  void read_context_kind() {
    const std::int64_t sharing = knobs_.context_ranks;
    const auto kind =
        word(space::kContextKind,
             {ContextKind::kRing, ContextKind::kAllGather, ContextKind::kAllToAll, ContextKind::kAllToAllAndRing},
             "use ring, allgather, alltoall or alltoall+ring");
    if (sharing == 1 || problem_) return;
    knobs_.context_kind = kind;
    if (kind == ContextKind::kAllToAll) {
      knobs_.head_ranks = sharing;
      if (can_share_heads(sharing)) return;
      refuse(fmt::format("{} = alltoall gives each of {} ranks some of the heads of a tensor rank, {} ({} of keys)",
                         space::kContextKind, sharing, workload_.model.heads / knobs_.tensor_ranks,
                         workload_.model.kv_heads / knobs_.tensor_ranks),
             "use a context_parallel that divides them, or ring", true);
    }
    if (kind != ContextKind::kAllToAllAndRing) return;
    const std::int64_t of_node = std::max<std::int64_t>(1, cluster_.domain() / knobs_.tensor_ranks);
    for (std::int64_t ways = std::min(sharing, of_node); ways > 1; --ways) {
      if (sharing % ways != 0 || !can_share_heads(ways)) continue;
      knobs_.head_ranks = ways;
      return;
    }
  }

  // Sets the ranks that share the experts. Those of the tensor group are among them if they have whole experts.
  void read_experts() {
    const std::int64_t tensor = knobs_.tensor_ranks;
    const std::int64_t ways = bounded(space::kExpertTensorParallel, 0, cluster_.ranks());
    if (ways > 1 && ways != tensor) {
      refuse(fmt::format("{} = {} is neither 1 nor {} = {}", space::kExpertTensorParallel, ways, space::kTensorParallel,
                         tensor),
             "use one of these", true);
    }
    knobs_.whole_experts = ways == 1 && tensor > 1;
    knobs_.dispatch = dispatch();
    knobs_.expert_ranks = bounded(space::kExpertParallel, 1, cluster_.ranks());
    knobs_.overlaps_experts = knobs_.expert_ranks > 1 && boolean(space::kMoeOverlap);
    check_divides(space::kExpertParallel, knobs_.expert_ranks, workload_.model.experts.count, "experts");
    check_divides(space::kExpertParallel, knobs_.expert_ranks, knobs_.expert_holders(),
                  knobs_.whole_experts ? "ranks of a pipeline stage" : "ranks beside tensor and pipeline parallelism");
    if (knobs_.whole_experts && !knobs_.sequence_parallel) {
      refuse(fmt::format("{} = 1 needs {} with several tensor ranks", space::kExpertTensorParallel,
                         space::kSequenceParallel),
             "set it to true, or leave expert_tensor_parallel out");
    }
  }

  // Ranks that share a sequence share what a data rank shards (Megatron Core, parallel_state.py: intra-partial groups;
  // torchtitan, distributed/parallel_dims.py). DeepSpeed has MiCS and hpZ at stage 3 only (runtime/engine.py).
  void read_shards() {
    const bool is_deepspeed =
        workload_.framework == workload::Framework::kDeepSpeed || workload_.dialect == workload::Dialect::kDeepSpeed;
    constexpr std::int64_t kMostRanks = 1'000'000;
    const std::int64_t ways = bounded(space::kHybridShard, 0, kMostRanks);
    const std::int64_t secondary = bounded(space::kSecondaryShard, 1, kMostRanks);
    if (layout_.data() == 1) return;
    if (ways > 0 && knobs_.zero_stage >= (is_deepspeed ? 3 : 1)) {
      check_divides(space::kHybridShard, ways, layout_.data(), "data-parallel ranks");
      if (!problem_) knobs_.copies = layout_.data() / ways;
      if (!problem_ && knobs_.ranks_of_expert() % knobs_.copies != 0) {
        refuse(fmt::format("{} = {} makes {} copies, which do not divide the {} ranks of an expert",
                           space::kHybridShard, ways, knobs_.copies, knobs_.ranks_of_expert()),
               "use a larger one, or fewer expert_parallel ranks", true);
      }
    }
    if (secondary == 1 || knobs_.zero_stage < 3) return;
    check_divides(space::kSecondaryShard, secondary, knobs_.shard_ranks(), "ranks that share the parameters");
    knobs_.secondary_ranks = secondary;
  }

  // Returns the ranks in each group of a kind of parallelism, and divides the others by them.
  std::int64_t split(const char* name, std::int64_t most, const char* what, bool of_this_job = false) {
    const std::int64_t ways = bounded(name, 1, most, of_this_job);
    check_divides(name, ways, layout_.left_for(name), what);
    return layout_.split(name, ways) ? ways : 1;
  }

  // Sets all numbers of ranks and checks what they must divide.
  void read_ranks() {
    const workload::ModelSpec& model = workload_.model;
    constexpr const char* kBesideModel = "ranks beside tensor and pipeline parallelism";
    knobs_.tensor_ranks = split(space::kTensorParallel, cluster_.ranks(), "ranks", true);
    check_mixers_divide(model);
    check_mlp_divides(model);
    knobs_.pipeline_ranks = split(space::kPipelineParallel, model.layers,
                                  knobs_.tensor_ranks == 1 ? "ranks" : "ranks beside tensor_parallel", true);
    knobs_.pipeline_schedule = pipeline_schedule();
    knobs_.virtual_stages = virtual_stages();
    knobs_.context_ranks = split(space::kContextParallel, cluster_.ranks(), kBesideModel);
    read_context_kind();
    knobs_.data_ranks = layout_.holders();
    knobs_.sequence_parallel = knobs_.tensor_ranks > 1 && boolean(space::kSequenceParallel);
    knobs_.overlaps_tensor = knobs_.sequence_parallel && boolean(space::kTensorOverlap);
    if (predicts_expert_ranks(workload_)) read_experts();
    read_shards();
    if (knobs_.sequence_parallel) {
      check_divides(space::kTensorParallel, knobs_.tensor_ranks, model.seq_len, "tokens of a sequence");
    }
  }

  PipelineSchedule pipeline_schedule() {
    using Schedule = PipelineSchedule;
    const Schedule schedule =
        word(space::kPipelineSchedule,
             {Schedule::kOneForwardOneBackward, Schedule::kGpipe, Schedule::kZeroBubbleH1, Schedule::kZeroBubbleH2,
              Schedule::kZeroBubbleV, Schedule::kVHalf, Schedule::kVMin, Schedule::kDualPipeV},
             "use 1f1b, gpipe, zb-h1, zb-h2, zb-v, v-half, v-min or dualpipe-v");
    return knobs_.pipeline_ranks == 1 ? Schedule::kOneForwardOneBackward : schedule;
  }

  // Up to two stages may have a layer less, in place of the embedding and the head (Megatron-LM:
  // --account-for-embedding-in-pipeline-split and --account-for-loss-in-pipeline-split).
  std::int64_t virtual_stages() {
    constexpr std::int64_t kShortStages = 2;
    const std::int64_t most =
        std::max<std::int64_t>(1, (workload_.model.layers + kShortStages) / knobs_.pipeline_ranks);
    const std::int64_t stages = bounded(space::kVirtualPipeline, 1, most, true);
    const PipelineSchedule schedule = knobs_.pipeline_schedule;
    const bool may_be_interleaved =
        schedule == PipelineSchedule::kOneForwardOneBackward || schedule == PipelineSchedule::kZeroBubbleH1;
    if (stages > 1 && !may_be_interleaved) {
      refuse(fmt::format("{} = {} does not go with {} = {}", space::kVirtualPipeline, stages, space::kPipelineSchedule,
                         to_string(schedule)),
             "leave it out, or use 1f1b or zb-h1");
    }
    if (!is_vee(schedule)) return stages;
    if (most < 2) {
      refuse(fmt::format("{} = {} needs two stages a rank, and {} layers are too few for {} ranks",
                         space::kPipelineSchedule, to_string(schedule), workload_.model.layers, knobs_.pipeline_ranks),
             "use fewer pipeline ranks, or another schedule", true);
    }
    return 2;
  }

  // Micro-steps pass the stages of a rank in groups, of at least as many as there are ranks: Megatron-LM refuses all
  // other numbers than multiples of its ranks (core/pipeline_parallel/schedules.py), PyTorch those that make no equal
  // groups (torch/distributed/pipelining/schedules.py, ScheduleInterleaved1F1B).
  void check_interleaved_steps() {
    if (problem_ || knobs_.virtual_stages == 1 || knobs_.pipeline_ranks == 1) return;
    const std::int64_t ranks = knobs_.pipeline_ranks;
    const std::int64_t steps = knobs_.micro_steps;
    // PyTorch refuses less (ScheduleDualPipeV). How it cuts a local batch of torchtitan in micro-steps is not said
    // here.
    const bool is_said = workload_.framework != workload::Framework::kFsdp;
    if (knobs_.pipeline_schedule == PipelineSchedule::kDualPipeV && is_said && steps < 2 * ranks) {
      refuse(fmt::format("{} = {} needs two micro-steps for each of {} = {} ranks, and there are {}",
                         space::kPipelineSchedule, to_string(knobs_.pipeline_schedule), space::kPipelineParallel, ranks,
                         steps),
             "choose a smaller micro_batch, fewer pipeline ranks, or zb-v", true);
      return;
    }
    if (is_vee(knobs_.pipeline_schedule)) return;
    const bool is_megatron = workload_.framework == workload::Framework::kMegatron;
    if (is_megatron ? steps % ranks == 0 : steps % std::max<std::int64_t>(1, steps / ranks) == 0) return;
    refuse(fmt::format("{} = {} needs a multiple of {} = {} micro-steps, and there are {}", space::kVirtualPipeline,
                       knobs_.virtual_stages, space::kPipelineParallel, ranks, steps),
           "choose another micro_batch, or 1", true);
  }

  void check_mixers_divide(const workload::ModelSpec& model) {
    using workload::Mixer;
    const auto check = [&](Mixer mixer, std::int64_t parts, const char* what) {
      if (model.layers_with(mixer) > 0) check_divides(space::kTensorParallel, knobs_.tensor_ranks, parts, what);
    };
    check(Mixer::kAttention, model.heads, "heads");
    check(Mixer::kAttention, model.kv_heads, "kv_heads");
    check(Mixer::kMamba, model.mamba.heads, "heads of Mamba-2");
    check(Mixer::kMamba, model.mamba.groups, "groups of Mamba-2");
    check(Mixer::kDelta, model.delta.key_heads, "heads of keys of linear attention");
  }

  void check_mlp_divides(const workload::ModelSpec& model) {
    const workload::ExpertSpec& experts = model.experts;
    const std::int64_t shared = experts.shared_ffn_hidden;  // 0 without experts
    if (model.dense_layers() > 0)
      check_divides(space::kTensorParallel, knobs_.tensor_ranks, model.ffn_hidden, "columns of the MLP");
    check_divides(space::kTensorParallel, knobs_.tensor_ranks, shared, "columns of the shared expert");
    const bool is_split = configuration_.integer(space::kExpertTensorParallel, 0) != 1;
    if (is_split)
      check_divides(space::kTensorParallel, knobs_.tensor_ranks, experts.ffn_hidden, "columns of an expert");
  }

  std::int64_t micro_steps() {
    constexpr std::int64_t kMost = 100'000;
    const bool given = configuration_.has(space::kAccumulation);
    const std::int64_t steps = bounded(space::kAccumulation, 1, kMost);
    if (!workload_.train_batch_size) return steps;
    const std::int64_t batch = *workload_.train_batch_size;
    const auto derived = space::accumulation_steps(batch, knobs_.micro_batch, layout_.data());
    if (!derived || (given && *derived != steps)) {
      refuse(
          fmt::format("train_batch_size {} is not micro_batch * ranks * gradient_accumulation_steps ({} a "
                      "micro-step{})",
                      batch, knobs_.micro_batch * layout_.data(), given ? fmt::format(", {} micro-steps", steps) : ""),
          "batch not divisible: choose another micro_batch");
    }
    return derived.value_or(1);
  }

  void read_sizes() {
    constexpr std::int64_t kMostElems = std::numeric_limits<std::int64_t>::max() / 64;
    constexpr std::int64_t kMostCtas = 64;  // MAXCHANNELS of NCCL
    knobs_.reduce_bucket_elems = bounded(space::kReduceBucket, 1, kMostElems);
    knobs_.allgather_bucket_elems = bounded(space::kAllgatherBucket, 1, kMostElems);
    knobs_.overlap_comm = boolean(space::kOverlap);
    knobs_.checkpointing = checkpointing();
    knobs_.modules = modules();
    knobs_.checkpoint_layers = bounded(space::kCheckpointLayers, 1, kMostElems);
    if (knobs_.virtual_stages > 1 && knobs_.pipeline_ranks > 1) {  // no group reaches over the end of a stage
      const std::int64_t stages = knobs_.pipeline_ranks * knobs_.virtual_stages;
      knobs_.checkpoint_layers = std::min(knobs_.checkpoint_layers, (workload_.model.layers + stages - 1) / stages);
    }
    knobs_.offload_optimizer = on_host(space::kOffloadOptimizer);
    knobs_.offload_parameters = on_host(space::kOffloadParam) && knobs_.zero_stage == 3;
    knobs_.prefetch_elems = bounded(space::kPrefetch, 0, kMostElems);
    knobs_.persistence_elems = bounded(space::kPersistence, 0, kMostElems);
    knobs_.max_live_elems = bounded(space::kMaxLive, 0, kMostElems);
    knobs_.max_reuse_elems = bounded(space::kMaxReuse, 0, kMostElems);
    knobs_.nccl = {nccl_buffers(), bounded(space::kNcclMaxCtas, 0, kMostCtas)};
  }

  const workload::Workload& workload_;
  const workload::ClusterSpec& cluster_;
  const space::Configuration& configuration_;
  space::ParallelLayout layout_;
  Knobs knobs_;
  std::optional<NotModelled> problem_;
};

// Beyond the first limit the plan's byte counts would exceed 64 bits; beyond the second its list of operations would be
// far too long.
void check_extent(const workload::Workload& workload, const workload::ClusterSpec& cluster, const Knobs& knobs) {
  constexpr double kMostElems = 1e17;
  constexpr double kMostBlocks = 10'000;
  const workload::ModelSpec& model = workload.model;
  const auto real = [](std::int64_t count) { return static_cast<double>(count); };
  const double rows = real(knobs.micro_batch) * real(model.seq_len);
  const double width =
      32.0 * real(model.hidden) + 8.0 * real(model.ffn_hidden) + 16.0 * real(model.query_width()) +
      8.0 * real(model.output_width()) + 16.0 * (real(model.mamba.in_width()) + real(model.delta.in_width())) +
      real(model.experts.per_token) * (8.0 * real(model.hidden) + 8.0 * real(model.experts.ffn_hidden)) +
      8.0 * real(model.heads * model.seq_len);
  const double elems =
      rows * (real(model.layers) * width + 8.0 * real(model.vocab)) +
      16.0 * (real(workload::parameter_count(model)) + real(cluster.ranks()) * real(model.layers) * 256.0);
  if (!(elems <= kMostElems)) {
    throw UserError("the training step is too large to be planned: about " + fmt::format("{:.0e}", elems) + " numbers",
                    "choose smaller sizes of the model, or a smaller micro_batch");
  }
  if (real(knobs.micro_steps) * real(model.layers) > kMostBlocks) {
    throw UserError(fmt::format("the training step is too long to be planned: {} micro-steps of {} layers",
                                knobs.micro_steps, model.layers),
                    "choose a smaller train_batch_size, or a larger micro_batch");
  }
}

}  // namespace

DType compute_type(workload::Precision precision) {
  switch (precision) {
    case workload::Precision::kFp32:
      return DType::kFp32;
    case workload::Precision::kFp16:
      return DType::kFp16;
    case workload::Precision::kBf16:
      return DType::kBf16;
  }
  assert(false);
  return DType::kFp32;
}

std::variant<Knobs, NotModelled> knobs_of(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                                          const space::Configuration& configuration) {
  return KnobReader(workload, cluster, configuration).read();
}

Knobs read_knobs(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                 const space::Configuration& configuration) {
  return modelled(knobs_of(workload, cluster, configuration));
}

void refuse_nccl_knobs(const NcclKnobs& knobs, const char* why) {
  if (knobs.is_default()) return;
  throw UserError(fmt::format("{} and {} change nothing here, because {}: only GPUs exchange by NCCL",
                              space::kNcclMaxCtas, space::kNcclBuffers, why),
                  "leave them out");
}

bool predicts_expert_ranks(const workload::Workload& workload) {
  using workload::Framework;
  return workload.model.has_experts() &&
         (workload.framework == Framework::kMegatron || workload.framework == Framework::kNanotron);
}

void refuse(const NotModelled& problem) { throw UserError(problem.what, problem.hint); }

void check_planned(const workload::Workload& workload, const workload::ClusterSpec& cluster, const Knobs& knobs) {
  for (const auto& [name, ways] :
       {std::pair(space::kPipelineParallel, knobs.pipeline_ranks),
        std::pair(space::kVirtualPipeline, knobs.virtual_stages),
        std::pair(space::kContextParallel, knobs.context_ranks), std::pair(space::kExpertParallel, knobs.expert_ranks),
        std::pair(space::kSecondaryShard, knobs.secondary_ranks)}) {
    if (ways == 1) continue;
    throw UserError(fmt::format("{} = {} is predicted, but krigtune-bench does not execute it", name, ways),
                    "write 1; the runners command, deepspeed and replay take more");
  }
  if (knobs.copies > 1) {
    throw UserError(fmt::format("{} = {} is predicted, but krigtune-bench does not execute it", space::kHybridShard,
                                knobs.shard_ranks() / knobs.context_ranks),
                    "write 0; the runners command, deepspeed and replay take more");
  }
  const bool is_executed = workload.framework == workload::Framework::kKrigtune;
  if (is_executed && workload.model.qk_norm == workload::QkNorm::kFull && knobs.tensor_ranks > 1) {
    throw UserError(fmt::format("krigtune-bench does not execute {} = {} where all queries share a norm",
                                space::kTensorParallel, knobs.tensor_ranks),
                    "write 1; the runners command, deepspeed and replay take more");
  }
  if (knobs.modules && knobs.zero_stage == 3) {
    throw UserError(fmt::format("krigtune-bench does not execute {} at stage 3", space::kRecomputeModules),
                    "write \"usual\"; the runners command, deepspeed and replay take more");
  }
  check_extent(workload, cluster, knobs);
}

void check_model(const workload::Workload& workload) {
  const workload::ModelSpec& model = workload.model;
  const auto refuse = [](const std::string& what, const std::string& hint) {
    throw UserError("the training step does not model " + what, hint);
  };
  if (model.head_dim == 0 && !model.has_latents() && model.hidden % model.heads != 0)
    refuse("hidden sizes that heads do not divide", "make hidden a multiple of heads, or give head_dim");
  if (model.kv_heads < 1 || model.heads % model.kv_heads != 0)
    refuse("heads that kv_heads do not divide", "make heads a multiple of kv_heads");
  const std::int64_t rotated = model.has_latents() ? model.latent.rope_dim : model.head_width();
  if (model.positions == workload::Positions::kRotary && rotated % 2 != 0)
    refuse("rotary positions in heads of odd width", "make the width of a head even");
  if (model.seq_len < 2 || model.hidden < 16 || model.vocab < 2) {
    refuse("so small a model", "use hidden >= 16, seq_len >= 2, vocab >= 2");
  }
}

const std::vector<std::string>& planned_parameters() {
  static const std::vector<std::string> kNames = parameters_from(space::Modelling::kFull);
  return kNames;
}

void check_knobs(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                 const space::Configuration& configuration) {
  check_model(workload);
  check_planned(workload, cluster, read_knobs(workload, cluster, configuration));
}

}  // namespace krigtune::schedule
