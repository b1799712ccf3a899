#include "krigtune/schedule/knobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <string>

#include "krigtune/core/error.h"
#include "krigtune/core/text.h"
#include "krigtune/space/parameter_names.h"
#include "krigtune/space/well_known.h"

namespace krigtune {
namespace {

// The names that read_knobs reads.

const Value& default_of(const char* name) {
  const WellKnownParameter* known = find_well_known(name);
  assert(known != nullptr);
  return known->default_value;
}

// Knobs that are understood where they change nothing.
struct NeutralKnob {
  const char* name;
  Value neutral;
};

const std::vector<NeutralKnob>& neutral_knobs() {
  static const std::vector<NeutralKnob> kKnobs = {
      {"contiguous_gradients", true},
      {"round_robin_gradients", false},
  };
  return kKnobs;
}

void check_names(const Configuration& configuration) {
  std::vector<std::string> known = planned_parameters();
  for (const NeutralKnob& knob : neutral_knobs()) known.emplace_back(knob.name);
  for (const auto& [name, value] : configuration) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw UserError(fmt::format("the training step does not model the parameter '{}'", name),
                      suggestion(name, known));
    }
  }
  for (const NeutralKnob& knob : neutral_knobs()) {
    const Value* value = configuration.find(knob.name);
    if (value != nullptr && !same_value(*value, knob.neutral)) {
      throw UserError(fmt::format("the training step does not model {} = {}", knob.name, to_string(*value)),
                      fmt::format("only {} is", to_string(knob.neutral)));
    }
  }
}

std::int64_t bounded(const Configuration& configuration, const char* name, std::int64_t low, std::int64_t high) {
  const std::int64_t value = configuration.integer(name, std::get<std::int64_t>(default_of(name)));
  if (value < low || value > high) {
    throw UserError(fmt::format("{} = {} is out of range", name, value), fmt::format("use {} to {}", low, high));
  }
  return value;
}

bool boolean(const Configuration& configuration, const char* name) {
  return configuration.boolean(name, std::get<bool>(default_of(name)));
}

std::string word(const Configuration& configuration, const char* name) {
  const Value* value = configuration.find(name);
  return to_string(value == nullptr ? default_of(name) : *value);
}

bool on_host(const Configuration& configuration, const char* name) {
  const std::string device = word(configuration, name);
  if (device == "cpu" || device == "none") return device == "cpu";
  throw UserError(fmt::format("the training step does not model {} = {}", name, device), "only none and cpu are");
}

Checkpointing checkpointing(const Configuration& configuration) {
  const std::string name = word(configuration, kCheckpointing);
  for (const Checkpointing known : {Checkpointing::kNone, Checkpointing::kSelective, Checkpointing::kFull}) {
    if (name == to_string(known)) return known;
  }
  throw UserError(fmt::format("{} = {} is not known", kCheckpointing, name), "use none, selective or full");
}

void check_divides(const char* name, std::int64_t parts, std::int64_t whole, const char* what) {
  if (whole % parts == 0) return;
  throw UserError(fmt::format("{} = {} does not divide {} {}", name, parts, whole, what), "choose another size");
}

// Sets everything of the ranks, and what they must divide.
void read_ranks(const Workload& workload, const ClusterSpec& cluster, const Configuration& configuration,
                Knobs& knobs) {
  const ModelSpec& model = workload.model;
  knobs.tensor_ranks = bounded(configuration, kTensorParallel, 1, cluster.ranks());
  check_divides(kTensorParallel, knobs.tensor_ranks, cluster.ranks(), "ranks");
  check_divides(kTensorParallel, knobs.tensor_ranks, model.heads, "heads");
  check_divides(kTensorParallel, knobs.tensor_ranks, model.kv_heads, "kv_heads");
  check_divides(kTensorParallel, knobs.tensor_ranks, model.ffn_hidden, "columns of the MLP");
  knobs.pipeline_ranks = bounded(configuration, kPipelineParallel, 1, workload.model.layers);
  check_divides(kPipelineParallel, knobs.pipeline_ranks, cluster.ranks() / knobs.tensor_ranks,
                "ranks beside tensor_parallel");
  knobs.data_ranks = cluster.ranks() / (knobs.tensor_ranks * knobs.pipeline_ranks);
  knobs.sequence_parallel = knobs.tensor_ranks > 1 && boolean(configuration, kSequenceParallel);
  if (knobs.sequence_parallel)
    check_divides(kTensorParallel, knobs.tensor_ranks, model.seq_len, "tokens of a sequence");
}

std::int64_t micro_steps(const Workload& workload, std::int64_t sequences_per_micro_step,
                         const Configuration& configuration) {
  constexpr std::int64_t kMost = 100'000;
  const bool given = configuration.has(kAccumulation);
  const std::int64_t steps = bounded(configuration, kAccumulation, 1, kMost);
  if (!workload.train_batch_size) return steps;
  const std::int64_t batch = *workload.train_batch_size;
  const bool fits = given ? batch == sequences_per_micro_step * steps : batch % sequences_per_micro_step == 0;
  if (!fits) {
    throw UserError(fmt::format("train_batch_size {} is not micro_batch * ranks * gradient_accumulation_steps ({} a "
                                "micro-step{})",
                                batch, sequences_per_micro_step, given ? fmt::format(", {} micro-steps", steps) : ""),
                    "batch not divisible: choose another micro_batch");
  }
  return batch / sequences_per_micro_step;
}

// Beyond the first the plan's counts of bytes would leave 64 bits, beyond the second its list of operations would have
// no end.
void check_extent(const Workload& workload, const ClusterSpec& cluster, const Knobs& knobs) {
  constexpr double kMostElems = 1e17;
  constexpr double kMostBlocks = 10'000;
  const ModelSpec& model = workload.model;
  const auto real = [](std::int64_t count) { return static_cast<double>(count); };
  const double rows = real(knobs.micro_batch) * real(model.seq_len);
  const double width =
      32.0 * real(model.hidden) + 8.0 * real(model.ffn_hidden) + 8.0 * real(model.heads * model.seq_len);
  const double elems = rows * (real(model.layers) * width + 8.0 * real(model.vocab)) +
                       16.0 * (real(parameter_count(model)) + real(cluster.ranks()) * real(model.layers) * 256.0);
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

const char* to_string(Checkpointing checkpointing) {
  switch (checkpointing) {
    case Checkpointing::kNone:
      return "none";
    case Checkpointing::kSelective:
      return "selective";
    case Checkpointing::kFull:
      return "full";
  }
  assert(false);
  return "";
}

DType compute_type(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return DType::kFp32;
    case Precision::kFp16:
      return DType::kFp16;
    case Precision::kBf16:
      return DType::kBf16;
  }
  assert(false);
  return DType::kFp32;
}

Knobs read_knobs(const Workload& workload, const ClusterSpec& cluster, const Configuration& configuration) {
  constexpr std::int64_t kMostElems = std::numeric_limits<std::int64_t>::max() / 64;
  check_names(configuration);
  Knobs knobs;
  knobs.zero_stage = bounded(configuration, kZeroStage, 0, 3);
  knobs.micro_batch = bounded(configuration, kMicroBatch, 1, 1'000'000);
  read_ranks(workload, cluster, configuration, knobs);
  knobs.micro_steps = micro_steps(workload, knobs.micro_batch * knobs.data_ranks, configuration);
  knobs.reduce_bucket_elems = bounded(configuration, kReduceBucket, 1, kMostElems);
  knobs.allgather_bucket_elems = bounded(configuration, kAllgatherBucket, 1, kMostElems);
  knobs.overlap_comm = boolean(configuration, kOverlap);
  knobs.checkpointing = checkpointing(configuration);
  knobs.checkpoint_layers = bounded(configuration, kCheckpointLayers, 1, kMostElems);
  knobs.offload_optimizer = on_host(configuration, kOffloadOptimizer);
  knobs.offload_parameters = on_host(configuration, kOffloadParam) && knobs.zero_stage == 3;
  knobs.prefetch_elems = bounded(configuration, kPrefetch, 0, kMostElems);
  knobs.persistence_elems = bounded(configuration, kPersistence, 0, kMostElems);
  knobs.max_live_elems = bounded(configuration, kMaxLive, 0, kMostElems);
  knobs.max_reuse_elems = bounded(configuration, kMaxReuse, 0, kMostElems);
  return knobs;
}

void check_planned(const Workload& workload, const ClusterSpec& cluster, const Knobs& knobs) {
  if (knobs.pipeline_ranks > 1) {
    throw UserError(fmt::format("{} = {} is predicted, but krigtune-bench does not execute it", kPipelineParallel,
                                knobs.pipeline_ranks),
                    "write 1; the runners command, deepspeed and replay take more");
  }
  check_extent(workload, cluster, knobs);
}

void check_model(const Workload& workload) {
  const ModelSpec& model = workload.model;
  const auto refuse = [](const std::string& what, const std::string& hint) {
    throw UserError("the training step does not model " + what, hint);
  };
  if (model.hidden % model.heads != 0)
    refuse("hidden sizes that heads do not divide", "make hidden a multiple of heads");
  if (model.kv_heads < 1 || model.heads % model.kv_heads != 0)
    refuse("heads that kv_heads do not divide", "make heads a multiple of kv_heads");
  if (model.positions == Positions::kRotary && model.hidden / model.heads % 2 != 0)
    refuse("rotary positions in heads of odd width", "make hidden / heads even");
  if (model.seq_len < 2 || model.hidden < 16 || model.vocab < 2) {
    refuse("so small a model", "use hidden >= 16, seq_len >= 2, vocab >= 2");
  }
}

const std::vector<std::string>& planned_parameters() {
  static const std::vector<std::string> kNames{
      kZeroStage,      kMicroBatch,       kAccumulation,     kReduceBucket,  kAllgatherBucket,  kOverlap,
      kTensorParallel, kPipelineParallel, kSequenceParallel, kCheckpointing, kCheckpointLayers, kOffloadOptimizer,
      kOffloadParam,   kPrefetch,         kPersistence,      kMaxLive,       kMaxReuse};
  return kNames;
}

void check_knobs(const Workload& workload, const ClusterSpec& cluster, const Configuration& configuration) {
  check_model(workload);
  check_planned(workload, cluster, read_knobs(workload, cluster, configuration));
}

}  // namespace krigtune
