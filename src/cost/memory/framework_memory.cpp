// Memory of frameworks: the plan's account of activations, gathered parameters and gradients on their way, with the
// framework's own states, buffers and logits:
//
//   needed = context + fragmentation * max over the moments of a step (states + activations + logits + transients)
//
// - DeepSpeed (0.19, runtime/zero): 2 P for parameters, 12 P / N for the optimizer. Gradients appear as backward
//   computes them. Packed buckets have the knob's size, whatever the model's size. The step casts and copies 8 P / N
//   (stage 0: 4 P) when there are no activations.
// - FSDP: fp32 shards, gradients and moments take 16 P / N, and two units are gathered in 16 bits.
// - Megatron: 16-bit parameters and permanent fp32 gradients, 18 P or 6 P + 12 P / N; in fp16 gradients are kept in
// fp16
//   and cast for the update, 20 P or 4 P + 16 P / N (its docs, "Distributed optimizer"). Megatron-FSDP shards the
//   gradients too (stage 2), or all (stage 3). Transformer Engine's fused weight gradients keep a 16-bit buffer for
//   each distinct shape of a linear layer.
// - Nanotron: 6 P + 12 P / N.
#include "cost/memory/framework_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "cost/memory/memory_profile.h"
#include "cost/memory/memory_timeline.h"
#include "cost/pipeline.h"

namespace krigtune::cost {
namespace {

std::int64_t rounded(double bytes) { return static_cast<std::int64_t>(std::llround(bytes)); }

void assume(MomentBytes& bytes, double activations, double logits = 1.0) {
  for (const auto& [term, factor] :
       {std::pair{schedule::Term::kActivations, activations}, std::pair{schedule::Term::kWorkspace, activations},
        std::pair{schedule::Term::kLogits, logits}}) {
    bytes.add(term, rounded(factor * static_cast<double>(bytes[term])) - bytes[term]);
  }
}

void assume(ProfiledPart& part, double activations, double logits) {
  for (auto* moments : {&part.moments, &part.carried}) {
    for (MomentBytes& bytes : *moments) assume(bytes, activations, logits);
  }
  assume(part.start, activations, logits);
  part.find_peak();
}

// A pipeline stage, or the whole model if there are none.
struct Stage {
  schedule::StageParts parts;
  InFlight in_flight = {};
  std::int64_t index = 0;
};

// Returns so many layers, without embedding and head.
schedule::StageParts stage_parts(const workload::ModelSpec& model, std::int64_t begin, std::int64_t layers) {
  return {layers, false, false, model.other_layers_in(begin, begin + layers)};
}

// A forward pass that is merged with the backward pass of another micro-batch keeps its activations beside them.
InFlight merged(InFlight kept, const schedule::Knobs& knobs) {
  if (knobs.overlaps_experts) kept.passes = std::min(kept.passes + 1, knobs.micro_steps * kept.stages_of_rank);
  return kept;
}

// `rank`: of the pipeline.
Stage stage_of(const MemoryProfile& profile, const schedule::Knobs& knobs, const schedule::StageParts& parts,
               std::int64_t rank) {
  const auto kept = static_cast<double>(profile.kept_by(parts, schedule::layers_of_group(parts, knobs)).total);
  const auto for_weights = static_cast<double>(profile.kept_for_weights(parts).total);
  const double share = kept > 0.0 ? for_weights / kept : 0.0;
  return {parts, merged(in_flight(rank, knobs.micro_steps, pipeline_shape(knobs), share), knobs), rank};
}

// Returns the first stage, neither the first nor the last one of the pipeline, that has more layers of the last kind
// (those with experts) than the first one has, and no fewer than the others; empty if there is none. `first`, `last`:
// layers of these two.
std::optional<Stage> stage_of_most_experts(const MemoryProfile& profile, const workload::ModelSpec& model,
                                           const schedule::Knobs& knobs, std::int64_t first, std::int64_t last) {
  const std::int64_t stages = knobs.pipeline_ranks;
  if (model.kinds().size() < 2 || stages < 3) return std::nullopt;
  // All but the last one have equal numbers of layers, with the remainder in the first ones.
  const std::int64_t each = (model.layers - last) / (stages - 1);
  const std::int64_t more = (model.layers - last) % (stages - 1);
  std::optional<Stage> found;
  std::int64_t most = stage_parts(model, 0, first).layers_of(schedule::Unit::kBlock);
  std::int64_t begin = each + (more > 0 ? 1 : 0);
  for (std::int64_t stage = 1; stage + 1 < stages; ++stage) {
    const std::int64_t own = each + (stage < more ? 1 : 0);
    const schedule::StageParts parts = stage_parts(model, begin, own);
    begin += own;
    if (parts.layers_of(schedule::Unit::kBlock) <= most) continue;
    most = parts.layers_of(schedule::Unit::kBlock);
    found = stage_of(profile, knobs, parts, stage);
  }
  return found;
}

// A rank with several stages (interleaved 1F1B) keeps more micro-batches in part: with v stages on each of p ranks,
// the first rank keeps p v + p - 1 passes of one stage, thus 1 + (p - 1) / (p v) times the activations of plain 1F1B
// (Korthikanti et al. 2022, "Reducing activation recomputation in large transformer models", section 4.2.3).
// With zb-v every rank keeps 2 p passes.
std::vector<Stage> interleaved_ranks(const MemoryProfile& profile, const workload::ModelSpec& model,
                                     const schedule::Knobs& knobs) {
  const std::int64_t ranks = knobs.pipeline_ranks;
  const std::vector<schedule::StageParts> parts = parts_of_ranks(
      model, interleaved_layers(model.layers, ranks * knobs.virtual_stages, model.mtp.layers), pipeline_shape(knobs));
  const schedule::StageParts& first = parts.front();
  std::vector<Stage> result;
  for (const std::int64_t rank : {std::int64_t{0}, std::int64_t{1}, ranks - 1}) {
    const schedule::StageParts& own = parts[static_cast<std::size_t>(rank)];
    const auto others = [](const schedule::StageParts& of) { return of.layers - of.layers_of(schedule::Unit::kBlock); };
    const bool has_more = own.layers > first.layers || others(own) < others(first);
    if (rank == 1 && (ranks == 2 || !has_more)) continue;  // less than the first one keeps
    result.push_back(stage_of(profile, knobs, own, rank));
  }
  return result;
}

// Returns the first and the last stage: the one that keeps the most micro-batches, and the one with the head. Where the
// first one has layers without experts, another one may need more, which is returned too.
std::vector<Stage> stages_of(const MemoryProfile& profile, const workload::Workload& workload,
                             const schedule::Knobs& knobs) {
  const std::int64_t layers = workload.model.layers;
  const std::int64_t stages = knobs.pipeline_ranks;
  const auto others_in = [&](std::int64_t begin, std::int64_t count) {
    return workload.model.other_layers_in(begin, begin + count);
  };
  if (stages == 1) return {{{layers, true, true, others_in(0, layers)}, merged({}, knobs)}};
  if (knobs.virtual_stages > 1) return interleaved_ranks(profile, workload.model, knobs);
  std::int64_t first = (layers + stages - 1) / stages;
  std::int64_t last = layers / stages;
  if (const std::int64_t further = workload.model.mtp.layers; further > 0) {
    const std::vector<std::int64_t> all = interleaved_layers(layers, stages, further);
    first = all.front();
    last = all.back();
  }
  if (workload.framework == workload::Framework::kNanotron) {
    // Distributed by parameters, with the head as an equivalent number of layers (PipelineBlock cost in
    // nanotron/models/llama.py).
    std::int64_t layer_elems = 0;
    for (const schedule::UnitTensor& tensor : profile.model.tensors) {
      if (tensor.unit == schedule::Unit::kBlock) layer_elems += tensor.elems;
    }
    const double head = static_cast<double>(profile.model.tensors.front().elems) / static_cast<double>(layer_elems);
    const double share = (static_cast<double>(layers) + head) / static_cast<double>(stages);
    first = std::min(layers, static_cast<std::int64_t>(std::ceil(share)));
    last = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::lround(share - head)));
  }
  std::vector<Stage> result = {stage_of(profile, knobs, {first, true, false, others_in(0, first)}, 0)};
  if (const auto most = stage_of_most_experts(profile, workload.model, knobs, first, last)) result.push_back(*most);
  result.push_back(stage_of(profile, knobs, {last, false, true, others_in(layers - last, last)}, stages - 1));
  return result;
}

// Returns the setting of the closest schedule of gathering and reducing.
schedule::Setting setting_of(const workload::Workload& workload, const schedule::Knobs& knobs,
                             const schedule::StageTensors& tensors) {
  const FrameworkTraits& traits = traits_of(workload.framework);
  schedule::Setting setting{tensors, knobs, {}};
  setting.knobs.zero_stage = std::min(knobs.zero_stage, traits.most_zero_stage);
  if (setting.knobs.zero_stage >= traits.units_from_stage) {
    setting.knobs.overlap_comm = true;
    setting.knobs.prefetch_elems = 0;
    setting.knobs.persistence_elems = 0;
    setting.knobs.max_live_elems = tensors.trained_padded() + tensors.frozen_padded();
    setting.knobs.reduce_bucket_elems = 0;
    for (const schedule::Unit block : schedule::kBlocks) {
      const std::int64_t first = tensors.parts().layers_of(block) > 0 ? tensors.parts().first_of(block) : 0;
      std::int64_t elems = 0;
      for (const int t : tensors.unit(static_cast<std::size_t>(first) + 1)) elems += tensors.elems(t);
      setting.knobs.reduce_bucket_elems = std::max(setting.knobs.reduce_bucket_elems, elems);
    }
  }
  setting.policy = schedule::make_policy(in_framework_dialect(workload), setting.knobs);
  setting.policy.grows_gradients = traits.grows_gradients && !setting.policy.shards_gradients;
  setting.policy.whole_packed_buckets = traits.whole_packed_buckets;
  return setting;
}

StateBytes states_as_krigtunes(const schedule::StageTensors& tensors, const workload::Workload& workload,
                               const schedule::Knobs& knobs) {
  return state_bytes({tensors, knobs, schedule::make_policy(workload, knobs)});
}

// Bytes of one value that the optimizer updates.
double master_bytes(const workload::Workload& workload) {
  const bool as_model = workload.training.states == workload::OptimizerStates::kAsModel;
  return as_model ? static_cast<double>(schedule::size_bytes(schedule::compute_type(workload.precision))) : 4.0;
}

// Bytes of the moments of one value, and of its second one alone.
struct MomentSizes {
  double all = 0.0;
  double second = 0.0;
};

MomentSizes moment_sizes(const workload::Workload& workload) {
  constexpr double kEightBits = 1.0 + 4.0 / 256.0;  // with the constants of blocks, see workload/optimizer.h
  const workload::OptimizerTraits& optimizer = workload::traits_of(workload.optimizer);
  const workload::TrainingSpec& training = workload.training;
  const bool as_model = training.states == workload::OptimizerStates::kAsModel;
  const auto size = [&](workload::StateType type) {
    if (optimizer.in_8_bits) return kEightBits;
    return as_model ? master_bytes(workload) : static_cast<double>(workload::size_bytes(type));
  };
  MomentSizes sizes;
  if (optimizer.moments > 0) sizes.all += size(training.state_types.first_moment);
  if (optimizer.moments > 1) sizes.second = size(training.state_types.second_moment);
  sizes.all += sizes.second;
  return sizes;
}

// The share of a rank's trained elements that have no second moment.
double share_without_second(const schedule::StageTensors& model, const workload::Workload& workload) {
  if (!workload::traits_of(workload.optimizer).orthogonalizes || model.trained_elems() == 0) return 0.0;
  return static_cast<double>(model.trained_matrix_elems()) / static_cast<double>(model.trained_elems());
}

// The optimizer updates a copy of the 16-bit weights.
bool has_masters(const workload::Workload& workload) {
  return workload.precision != workload::Precision::kFp32 &&
         workload.training.states != workload::OptimizerStates::kAsModel;
}

MomentBytes deepspeed_states(const schedule::StageTensors& model, const workload::Workload& workload,
                             const schedule::Knobs& knobs) {
  StateBytes states = states_as_krigtunes(model, workload, knobs);
  // Below stage 2 gradients are counted as they grow; above, an accumulated and an averaged copy of the own part.
  if (knobs.zero_stage < 2) {
    states.device.add(schedule::Term::kGradients, -states.device[schedule::Term::kGradients]);
  } else if (knobs.zero_stage == 2 && knobs.micro_steps > 1) {
    states.device.add(schedule::Term::kGradients, states.device[schedule::Term::kGradients]);
  }
  return states.device;
}

// Frozen weights have the model's type.
double frozen_bytes(const schedule::StageTensors& model, const workload::Workload& workload) {
  const std::int64_t type_bytes = schedule::size_bytes(schedule::compute_type(workload.precision));
  return static_cast<double>(model.frozen_padded() * type_bytes);
}

MomentBytes sharded_states(const schedule::StageTensors& model, const workload::Workload& workload,
                           const schedule::Knobs& knobs) {
  MomentBytes states;
  const auto p = static_cast<double>(model.trained_padded());
  const auto n = static_cast<double>(knobs.shard_ranks());
  const double gathered = knobs.zero_stage >= 3 || !has_masters(workload) ? 0.0 : 2.0;
  const double own = master_bytes(workload);
  states.add(schedule::Term::kParameters,
             rounded((own * p + frozen_bytes(model, workload)) / (knobs.zero_stage >= 3 ? n : 1.0) + gathered * p));
  states.add(schedule::Term::kGradients, rounded(own * p / (knobs.zero_stage >= 2 ? n : 1.0)));
  const MomentSizes moments = moment_sizes(workload);
  const double each = moments.all - moments.second * share_without_second(model, workload);
  states.add(schedule::Term::kOptimizerState, rounded(each * p / (knobs.zero_stage >= 1 ? n : 1.0)));
  return states;
}

// The trained elements of a rank's shard. What is sharded of an expert is shared by the ranks that have it, which are
// fewer.
double own_elems(const schedule::StageTensors& model, const schedule::Knobs& knobs) {
  const auto experts = static_cast<double>(model.trained_expert_elems());
  return (static_cast<double>(model.trained_elems()) - experts) / static_cast<double>(knobs.shard_ranks()) +
         experts / static_cast<double>(knobs.shards_of_expert());
}

MomentBytes states_with_kept_gradients(const schedule::StageTensors& model, const workload::Workload& workload,
                                       const schedule::Knobs& knobs) {
  MomentBytes states;
  const auto p = static_cast<double>(model.trained_elems());
  const auto n = static_cast<double>(knobs.shard_ranks());
  const std::int64_t stage = std::min(knobs.zero_stage, traits_of(workload.framework).most_zero_stage);
  const auto own = [&](std::int64_t from_stage) { return stage >= from_stage ? own_elems(model, knobs) : p; };
  const double frozen = frozen_bytes(model, workload) / (stage >= 3 ? n : 1.0);
  const bool fp32 = workload.precision == workload::Precision::kFp32;
  states.add(schedule::Term::kParameters, rounded((fp32 ? 4.0 : 2.0) * own(3) + frozen));
  const workload::StateTypes& types = workload.training.state_types;
  const MomentSizes moments = moment_sizes(workload);
  const double masters = has_masters(workload) ? static_cast<double>(workload::size_bytes(types.masters)) : 0.0;
  // Matrices have no second moment with Muon; nearly all of the others belong to no expert.
  const double seconds = workload::traits_of(workload.optimizer).orthogonalizes
                             ? (p - static_cast<double>(model.trained_matrix_elems())) / (stage >= 1 ? n : 1.0)
                             : own(1);
  states.add(schedule::Term::kGradients,
             rounded(static_cast<double>(workload::size_bytes(workload::kept_gradients(workload))) * own(2)));
  states.add(schedule::Term::kOptimizerState,
             rounded((moments.all - moments.second + masters) * own(1) + moments.second * seconds));
  return states;
}

MomentBytes states_of(const schedule::StageTensors& model, const workload::Workload& workload,
                      const schedule::Knobs& knobs) {
  switch (workload.framework) {
    case workload::Framework::kKrigtune:
      return states_as_krigtunes(model, workload, knobs).device;
    case workload::Framework::kDeepSpeed:
      return deepspeed_states(model, workload, knobs);
    case workload::Framework::kFsdp:
      return sharded_states(model, workload, knobs);
    case workload::Framework::kMegatron:
    case workload::Framework::kNanotron:
      return states_with_kept_gradients(model, workload, knobs);
  }
  return {};
}

// Megatron's optimizer casts gradients that are kept in fewer bits to fp32, except its precision-aware one.
std::int64_t fp32_gradients_of_update(const schedule::StageTensors& model, const workload::Workload& workload,
                                      const schedule::Knobs& knobs) {
  const bool is_precision_aware = workload.training.state_types.first_moment != workload::StateType::kFp32;
  if (workload::size_bytes(workload::kept_gradients(workload)) == 4 || is_precision_aware) return 0;
  return rounded(4.0 * (knobs.zero_stage >= 1 ? own_elems(model, knobs) : static_cast<double>(model.trained_elems())));
}

// Returns the bytes of the step itself in addition to the states: DeepSpeed's averaged gradients, flattened, and cast
// to the type of the values that are updated.
std::int64_t step_bytes(const schedule::StageTensors& model, const workload::Workload& workload,
                        const schedule::Knobs& knobs) {
  if (workload.framework == workload::Framework::kMegatron) return fp32_gradients_of_update(model, workload, knobs);
  if (workload.framework != workload::Framework::kDeepSpeed || knobs.offload_optimizer) return 0;
  constexpr double kSubGroupElems = 1e9;  // sub_group_size of stage 3
  const auto p = static_cast<double>(model.trained_padded());
  const auto own = p / static_cast<double>(knobs.shard_ranks());
  if (workload.precision == workload::Precision::kFp32) return rounded(knobs.zero_stage == 0 ? 4.0 * p : 8.0 * own);
  const double cast = has_masters(workload) ? 4.0 : 0.0;
  if (knobs.zero_stage == 0) return rounded((2.0 + cast) * p);
  return rounded(knobs.zero_stage == 3 ? std::max(2.0, cast) * std::min(own, kSubGroupElems) : (4.0 + cast) * own);
}

// One 16-bit buffer for each distinct shape of a linear layer, for Transformer Engine's fused weight gradients.
std::int64_t fused_gradient_bytes(const MemoryProfile& profile, const workload::Workload& workload,
                                  const schedule::StageParts& stage) {
  if (workload.framework != workload::Framework::kMegatron) return 0;
  std::set<std::int64_t> sizes;
  for (const schedule::UnitTensor& tensor : profile.model.tensors) {
    const std::int64_t matrix_elems = tensor.elems / tensor.matrices;
    const bool is_matrix = tensor.trained && matrix_elems > 8 * workload.model.hidden;
    const bool counts = schedule::is_block(tensor.unit) ? stage.layers_of(tensor.unit) > 0
                                                        : tensor.unit == schedule::Unit::kHead && stage.head;
    if (is_matrix && counts) sizes.insert(matrix_elems);
  }
  std::int64_t elems = 0;
  for (const std::int64_t size : sizes) elems += size;
  return 2 * elems;
}

// Copies of the blocks' matrices for products in fewer bits, by rows and by columns, that stay beside the model's own
// (Transformer Engine; arXiv:2603.07685, section 5). Sharded weights are copied while they are gathered.
std::int64_t narrow_copies_bytes(const MemoryProfile& profile, const workload::Workload& workload,
                                 const schedule::Knobs& knobs, const schedule::StageParts& stage) {
  const workload::TrainingSpec& training = workload.training;
  if (!training.has_narrow_products() || knobs.zero_stage >= 3) return 0;
  std::int64_t elems = 0;
  for (const schedule::UnitTensor& tensor : profile.model.tensors) {
    const bool is_matrix = tensor.elems / tensor.matrices > 8 * workload.model.hidden;
    if (schedule::is_block(tensor.unit) && is_matrix) elems += stage.layers_of(tensor.unit) * tensor.elems;
    if (tensor.of_mtp && is_matrix && stage.head) elems += tensor.elems;
  }
  const std::int64_t halves = training.products == workload::ProductFormat::kNvFp4 ? 2 : 4;  // bytes, two copies
  return elems * halves / 2;
}

}  // namespace

MemoryAssumptions assumptions_of(const FrameworkTraits& traits, const schedule::Knobs& knobs, MemoryOutlook outlook,
                                 const MemoryCalibration& calibration) {
  constexpr double kCommunicator = 0.3e9;  // of each group beyond the first
  const int groups = (knobs.data_ranks > 1) + (knobs.tensor_ranks > 1) + (knobs.pipeline_ranks > 1) +
                     (knobs.context_ranks > 1) + (knobs.expert_ranks > 1) + (knobs.copies > 1) +
                     (knobs.secondary_ranks > 1);
  const double logits = calibration.logits_bytes > 0.0 ? calibration.logits_bytes : traits.logits_bytes;
  MemoryAssumptions assumed;
  switch (outlook) {
    case MemoryOutlook::kExpected:
      assumed.activation_factor = traits.activation_factor * calibration.activations;
      assumed.logits_bytes = logits;
      assumed.context_bytes =
          traits.context_bytes + kCommunicator * std::max(0, groups - 1) + calibration.overhead_bytes;
      assumed.fragmentation = traits.fragmentation;
      return assumed;
    case MemoryOutlook::kConservative:
      assumed.activation_factor = 1.3 * traits.activation_factor * calibration.activations;
      assumed.logits_bytes = std::max(12.0, logits);
      assumed.context_bytes = 2e9 + kCommunicator * std::max(0, groups - 1) + calibration.overhead_bytes;
      assumed.fragmentation = std::max(1.1, traits.fragmentation);
      return assumed;
  }
  return assumed;
}

MemoryProfile assumed_profile(MemoryProfile profile, const MemoryAssumptions& assumed, std::int64_t type_bytes) {
  const double activations = assumed.activation_factor;
  const double logits = assumed.logits_bytes / static_cast<double>(type_bytes);
  if (activations == 1.0 && logits == 1.0) return profile;
  for (ProfiledPart* part :
       {&profile.embed_forward, &profile.head_forward, &profile.head_backward, &profile.embed_backward}) {
    assume(*part, activations, logits);
  }
  assume(profile.embedding_kept, activations);
  for (BlockProfile& block : profile.blocks) {
    for (auto* parts : {&block.forward, &block.recompute, &block.backward}) {
      for (ProfiledPart& part : *parts) assume(part, activations, logits);
    }
    for (MomentBytes* kept : {&block.group_kept, &block.layer_kept, &block.for_weights}) assume(*kept, activations);
  }
  assume(profile.embedding_for_weights, activations);
  assume(profile.head_for_weights, activations, logits);
  return profile;
}

FrameworkPeak framework_peak(TensorsCache& cache, const MemoryProfile& profile, const workload::Workload& workload,
                             const schedule::Knobs& knobs) {
  FrameworkPeak worst;
  for (const Stage& stage : stages_of(profile, workload, knobs)) {
    const schedule::StageTensors& model = cache.of(knobs, stage.parts);
    MomentBytes states = states_of(model, workload, knobs);
    states.add(schedule::Term::kParameters, narrow_copies_bytes(profile, workload, knobs, stage.parts));
    const bool has_stores = workload.framework == workload::Framework::kKrigtune ||
                            workload.framework == workload::Framework::kDeepSpeed;  // which contain it
    if (!has_stores)
      states.add(schedule::Term::kParameters, secondary_bytes({model, knobs, schedule::make_policy(workload, knobs)}));
    const StepPeak peak = step_peak(profile, setting_of(workload, knobs, model), stage.in_flight);
    FrameworkPeak needed;
    needed.bytes = states;
    if (knobs.zero_stage == 1 && model.trained_elems() > 0)
      needed.gradients_left = own_elems(model, knobs) / static_cast<double>(model.trained_elems());
    needed.bytes += peak.bytes;
    needed.bytes.add(schedule::Term::kReduceBuckets, fused_gradient_bytes(profile, workload, stage.parts));
    const std::int64_t step = step_bytes(model, workload, knobs);
    MomentBytes of_step = states;
    of_step.add(schedule::Term::kGradients, step);
    worst.moments.insert(worst.moments.end(), {needed.bytes, of_step});
    const bool at_step = of_step.total > needed.bytes.total;
    if (at_step) needed.bytes = of_step;
    if (needed.bytes.total <= worst.bytes.total) continue;
    needed.moments = std::move(worst.moments);
    worst = std::move(needed);
    worst.at = at_step ? "optimizer" : peak_text(peak, knobs.micro_steps);
    if (knobs.pipeline_ranks > 1) {
      const bool has_ends = stage.parts.head && stage.parts.embedding;
      worst.at += has_ends                ? ", first and last stage"
                  : stage.parts.head      ? ", last stage"
                  : stage.parts.embedding ? ", first stage"
                                          : fmt::format(", stage {} of {}", stage.index + 1, knobs.pipeline_ranks);
    }
  }
  return worst;
}

std::int64_t host_bytes_of_rank(TensorsCache& cache, const workload::Workload& workload, const schedule::Knobs& knobs) {
  if (!knobs.offload_optimizer && !knobs.offload_parameters) return 0;
  const std::int64_t layers = (workload.model.layers + knobs.pipeline_ranks - 1) / knobs.pipeline_ranks;
  // The last layers have the most experts.
  const workload::OtherLayers others =
      workload.model.other_layers_in(workload.model.layers - layers, workload.model.layers);
  const schedule::StageTensors& model = cache.of(knobs, {layers, true, true, others});
  const StateBytes states = states_as_krigtunes(model, workload, knobs);
  if (workload.framework == workload::Framework::kKrigtune) return states.host.total + states.host_transient_bytes;
  // DeepSpeed: master, gradient of its type and moments, a pinned 16-bit copy, and the gradients that accumulate.
  const auto own = static_cast<double>(model.trained_padded()) / static_cast<double>(knobs.shard_ranks());
  double bytes = 0.0;
  if (knobs.offload_optimizer)
    bytes +=
        own * (2.0 * master_bytes(workload) + moment_sizes(workload).all + 2.0 + (knobs.micro_steps > 1 ? 2.0 : 0.0));
  if (knobs.offload_parameters)
    bytes += own * 2.0 + frozen_bytes(model, workload) / static_cast<double>(knobs.shard_ranks());
  return rounded(bytes);
}

std::string peak_text(const StepPeak& peak, std::int64_t micro_steps) {
  std::string text = schedule::to_string(peak.phase);
  text += peak.layer >= 0 ? fmt::format(" of block {}", peak.layer) : peak.at_head ? " (head)" : " (embedding)";
  if (micro_steps > 1) text += fmt::format(", micro-step {}", peak.micro_step);
  return text;
}

}  // namespace krigtune::cost
