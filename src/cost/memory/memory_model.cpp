#include "cost/memory/memory_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>
#include <unordered_map>

#include "core/statistics.h"
#include "cost/memory/framework_memory.h"
#include "cost/memory/memory_profile.h"
#include "cost/memory/memory_shape.h"
#include "cost/memory/memory_timeline.h"
#include "plan/build_plan.h"
#include "schedule/knobs.h"
#include "space/well_known.h"

namespace krigtune::cost {

// The formula of DeepSpeed's autotuner (0.19, autotuning/autotuner.py, get_instantiation_memory_required_per_gpu and
// _get_activation_memory_per_gpu), where N is the whole world:
//
//   states = (params + grads + optimizer) / tensor_parallel,   P times 2 + 2 + 16 in fp16, 4 + 4 + 8 otherwise;
//   the optimizer's part over N from stage 1 on, the gradients' from stage 2 on, the parameters' in stage 3
//   needed = states + micro_batch * (what the forward pass of one sequence leaves)
//
// It is reproduced with its defects, which are the point of the comparison:
// - 16 for the optimizer is 4 + 8 and an fp32 copy of the gradients that exists only during the step, when there are no
//   activations. This is too much by 4 P / N, at stage 0 by 4 P (issues 3598, 4519 of microsoft/DeepSpeed).
// - Only the block fp16 is read, so bf16 is treated as fp32.
// - N is data times tensor ranks, and the quotient is divided by the tensor ranks once more.
// - Buckets, gathered parameters, the memory of backward, context, fragmentation and offload are missing.

MemoryEstimate deepspeed_autotuner_estimate(const MemoryProfile& profile, const workload::Workload& workload,
                                            const schedule::Knobs& knobs) {
  const bool fp16 = workload.precision == workload::Precision::kFp16;
  const auto parameters = static_cast<double>(workload::parameter_count(workload.model));
  const auto world = static_cast<double>(knobs.data_ranks * knobs.tensor_ranks * knobs.pipeline_ranks);
  const auto tensor = static_cast<double>(knobs.tensor_ranks);
  const auto part = [&](double bytes, std::int64_t from_stage) {
    const double shared = bytes * parameters / (knobs.zero_stage >= from_stage ? world : 1.0);
    return static_cast<std::int64_t>(std::llround(shared / tensor));
  };
  const std::int64_t group = knobs.checkpointing == schedule::Checkpointing::kFull ? knobs.checkpoint_layers : 1;
  const std::int64_t layers = workload.model.layers;
  MomentBytes needed = profile.kept_by({layers, true, true, workload.model.other_layers_in(0, layers)}, group);
  needed += profile.head_backward.start;
  needed = needed * knobs.micro_batch;
  needed.add(schedule::Term::kParameters, part(fp16 ? 2.0 : 4.0, 3));
  needed.add(schedule::Term::kGradients, part(fp16 ? 2.0 : 4.0, 2));
  needed.add(schedule::Term::kOptimizerState, part(fp16 ? 16.0 : 8.0, 1));
  MemoryEstimate estimate;
  estimate.term_bytes = needed.terms;
  estimate.optimistic = estimate.expected = estimate.conservative = {needed.total};
  estimate.peak_at = "forward";
  return estimate;
}

namespace {

// The expected profile and the conservative one.
struct Profiles {
  MemoryProfile expected, conservative;
};

// If layers are split, tokens may or may not be split too; the moments include both cases.
std::optional<schedule::Knobs> with_other_split(const workload::Workload& workload, const schedule::Knobs& knobs) {
  const bool is_certain = knobs.tensor_ranks == 1 || knobs.whole_experts;  // whole experts are for own tokens
  if (is_certain || workload.model.seq_len % knobs.tensor_ranks != 0) return std::nullopt;
  schedule::Knobs other = knobs;
  other.sequence_parallel = !knobs.sequence_parallel;
  return other;
}

}  // namespace

struct MemoryModel::Impl {
  Impl(const workload::Workload& of, const workload::ClusterSpec& on, const workload::MemorySpec& by,
       const MemoryCalibration& calibrated)
      : workload(of),
        cluster(on),
        memory(by),
        calibration(calibrated),
        traits(traits_of(of.framework)),
        raw_profiles(of),
        tensors(of) {}

  workload::Workload workload;
  workload::ClusterSpec cluster;
  workload::MemorySpec memory;
  MemoryCalibration calibration;
  const FrameworkTraits& traits;
  mutable ProfileCache raw_profiles;
  mutable TensorsCache tensors;
  mutable std::mutex mutex;  // guards the members below
  mutable std::map<const MemoryProfile*, std::shared_ptr<const Profiles>> profiles;
  mutable std::unordered_map<std::string, std::int64_t> planned_bytes;

  std::shared_ptr<const Profiles> profiles_of(const schedule::Knobs& knobs) const {
    const std::shared_ptr<const MemoryProfile> raw = raw_profiles.of(knobs);
    {
      const std::lock_guard lock(mutex);
      if (const auto found = profiles.find(raw.get()); found != profiles.end()) return found->second;
    }
    auto made = std::make_shared<Profiles>();
    const std::int64_t type = schedule::size_bytes(schedule::compute_type(workload.precision));
    made->expected = assumed_profile(*raw, assumptions(knobs, MemoryOutlook::kExpected), type);
    made->conservative = assumed_profile(*raw, assumptions(knobs, MemoryOutlook::kConservative), type);
    const std::lock_guard lock(mutex);
    return profiles.emplace(raw.get(), std::move(made)).first->second;
  }

  MemoryAssumptions assumptions(const schedule::Knobs& knobs, MemoryOutlook outlook) const {
    if (!traits.exact_memory) {
      MemoryAssumptions assumed = assumptions_of(traits, knobs, outlook, calibration);
      // If no GPU is named the ranks may be CPUs, which have no context.
      if (!cluster.device && outlook != MemoryOutlook::kConservative)
        assumed.context_bytes = calibration.overhead_bytes;
      return assumed;
    }
    MemoryAssumptions as_planned;
    as_planned.logits_bytes = static_cast<double>(schedule::size_bytes(schedule::compute_type(workload.precision)));
    return as_planned;
  }

  std::variant<schedule::Knobs, schedule::NotModelled> find_knobs(const space::Configuration& configuration) const {
    return schedule::knobs_of(workload, cluster, with_usual_settings(workload, configuration));
  }
  plan::MemoryVerdict verdict(const space::Configuration& configuration, const schedule::Knobs& knobs, Bytes usable,
                              Bytes host_usable) const;
  MemoryEstimate estimate(const schedule::Knobs& knobs) const;
  MemoryEstimate exact(const schedule::Knobs& knobs) const;
  Bytes planned(const space::Configuration& configuration, const schedule::Knobs& knobs, std::int64_t steps) const;
  Bytes planned(const space::Configuration& configuration, const schedule::Knobs& knobs, Bytes usable) const;
  plan::MemoryVerdict exact_verdict_of(const space::Configuration& configuration, const schedule::Knobs& knobs,
                                       const MemoryEstimate& needed, Bytes usable, Bytes host_usable) const;
  MemoryEstimate of_framework(const schedule::Knobs& knobs) const;
  static void tighten(MemoryEstimate& estimate);
  static void scale(MemoryEstimate& estimate, double factor);
  static void loosen(MemoryEstimate& estimate);
};

MemoryEstimate MemoryModel::Impl::exact(const schedule::Knobs& knobs) const {
  const std::shared_ptr<const MemoryProfile> profile = raw_profiles.of(knobs);
  const std::int64_t layers = workload.model.layers;
  const schedule::StageTensors& model =
      tensors.of(knobs, {layers, true, true, workload.model.other_layers_in(0, layers)});
  const schedule::Setting setting{model, knobs, schedule::make_policy(workload, knobs)};
  const StateBytes states = state_bytes(setting);
  const StepPeak peak = step_peak(*profile, setting);
  MemoryEstimate estimate;
  MomentBytes all = states.device;
  if (states.rounded_bytes > peak.bytes.total) {
    all.add(schedule::Term::kParameters, states.rounded_bytes);
    estimate.peak_at = "optimizer";
  } else {
    all += peak.bytes;
    estimate.peak_at = peak_text(peak, knobs.micro_steps);
  }
  estimate.term_bytes = all.terms;
  estimate.optimistic = estimate.expected = estimate.conservative = {all.total};
  return estimate;
}

// Plans `steps` micro-steps. Further ones use the same buffers and one more number each for their losses.
Bytes MemoryModel::Impl::planned(const space::Configuration& configuration, const schedule::Knobs& knobs,
                                 std::int64_t steps) const {
  space::Configuration shorter = configuration;
  workload::Workload shortened = workload;
  shorter.set(space::kAccumulation, steps);
  shortened.train_batch_size.reset();
  const std::string key = shorter.text();
  const auto aligned = [](std::int64_t bytes) {
    return (bytes + schedule::kAlignmentBytes - 1) / schedule::kAlignmentBytes * schedule::kAlignmentBytes;
  };
  const std::int64_t losses = aligned(4 * knobs.micro_steps) - aligned(4 * steps);
  {
    const std::lock_guard lock(mutex);
    if (const auto found = planned_bytes.find(key); found != planned_bytes.end()) return {found->second + losses};
  }
  const std::int64_t bytes = plan::build_plan(shortened, cluster, shorter).arena_bytes;
  const std::lock_guard lock(mutex);
  planned_bytes.emplace(key, bytes);
  return {bytes + losses};
}

// Plans the distinct micro-steps. Their layout may be slightly better or worse than that of all, in particular if
// buffers are in use across micro-steps. If that decides, all micro-steps are planned.
Bytes MemoryModel::Impl::planned(const space::Configuration& configuration, const schedule::Knobs& knobs,
                                 Bytes usable) const {
  const std::int64_t distinct = distinct_micro_steps(schedule::make_policy(workload, knobs), knobs);
  const Bytes short_plan = planned(configuration, knobs, distinct);
  if (distinct == knobs.micro_steps) return short_plan;
  const double most = knobs.overlap_comm && knobs.zero_stage >= 2 ? 1.3 : 1.03;
  constexpr double kLeast = 0.96;
  const double limit = static_cast<double>(usable.count) / static_cast<double>(short_plan.count);
  if (limit >= most || limit < kLeast) return short_plan;
  return planned(configuration, knobs, knobs.micro_steps);
}

plan::MemoryVerdict MemoryModel::Impl::exact_verdict_of(const space::Configuration& configuration,
                                                        const schedule::Knobs& knobs, const MemoryEstimate& needed,
                                                        Bytes usable, Bytes host_usable) const {
  // Bounds of the plan's arena relative to the estimate (tests/cost/memory_model_test.cpp). If parameters come from the
  // host, the end of a copy depends on other copies, which the estimate does not follow completely.
  const double least = knobs.offload_parameters ? 0.7 : 0.92;
  const double most = knobs.offload_parameters ? 1.3 : 1.12;
  const auto expected = static_cast<double>(needed.expected.count);
  const auto limit = static_cast<double>(usable.count);
  const bool decided = expected * most <= limit || expected * least > limit || knobs.pipeline_ranks > 1 ||
                       knobs.context_ranks > 1 || knobs.expert_ranks > 1 || knobs.copies > 1 ||
                       knobs.secondary_ranks > 1;
  const Bytes predicted = decided ? needed.expected : planned(configuration, knobs, usable);
  plan::MemoryVerdict verdict = plan::exact_verdict(predicted, usable);
  if (needed.host > host_usable) verdict = {plan::Verdict::kTooLarge, 0.0, predicted};
  return verdict;
}

MemoryEstimate MemoryModel::Impl::of_framework(const schedule::Knobs& knobs) const {
  const MemoryAssumptions expected = assumptions(knobs, MemoryOutlook::kExpected);
  const MemoryAssumptions conservative = assumptions(knobs, MemoryOutlook::kConservative);
  const auto needed = [](const MemoryAssumptions& assumed, std::int64_t bytes) {
    const double all = assumed.context_bytes + assumed.fragmentation * static_cast<double>(bytes);
    return Bytes{static_cast<std::int64_t>(all)};
  };
  const FrameworkPeak peak = framework_peak(tensors, profiles_of(knobs)->expected, workload, knobs);
  std::optional<FrameworkPeak> otherwise;
  if (const std::optional<schedule::Knobs> other = with_other_split(workload, knobs)) {
    otherwise = framework_peak(tensors, profiles_of(*other)->expected, workload, *other);
  }
  MemoryEstimate estimate;
  estimate.moments = parts_of(peak, otherwise ? &*otherwise : nullptr, expected, knobs.checkpointing);
  estimate.term_bytes = peak.bytes.terms;
  estimate.expected = needed(expected, peak.bytes.total);
  estimate.overhead_bytes = estimate.expected.count - peak.bytes.total;
  estimate.peak_at = peak.at;
  estimate.optimistic = Bytes{static_cast<std::int64_t>(least_bytes(estimate.moments))};
  const FrameworkPeak heavy = framework_peak(tensors, profiles_of(knobs)->conservative, workload, knobs);
  estimate.conservative = needed(conservative, heavy.bytes.total);
  estimate.log_stddev = calibration.log_stddev > 0.0 ? calibration.log_stddev : traits.log_stddev;
  estimate.optimistic = std::min(estimate.optimistic, estimate.expected);
  estimate.conservative = std::max(estimate.conservative, estimate.expected);
  if (calibration.log_stddev > 0.0) tighten(estimate);
  if (memory.peak_factor != 1.0) scale(estimate, memory.peak_factor);
  if (!workload.caveats.not_modelled.empty()) loosen(estimate);
  return estimate;
}

// An adapter needs about a quarter of what the whole model would, and a model of experts several times as much as a
// dense one of its width. So nothing surely fits and nothing is surely too large.
void MemoryModel::Impl::loosen(MemoryEstimate& estimate) {
  const double spread = std::log(4.0);
  estimate.log_stddev = std::hypot(estimate.log_stddev, spread);
  estimate.optimistic = {0};
  estimate.conservative = Bytes{std::numeric_limits<std::int64_t>::max()};
}

// Scales the terms too, because they add up to the expected value. The factor changes what is expected, but not the
// physical lower bound.
void MemoryModel::Impl::scale(MemoryEstimate& estimate, double factor) {
  const auto times = [factor](std::int64_t bytes) {
    return static_cast<std::int64_t>(std::llround(factor * static_cast<double>(bytes)));
  };
  estimate.expected = {0};
  for (std::int64_t& bytes : estimate.term_bytes) {
    bytes = times(bytes);
    estimate.expected.count += bytes;
  }
  for (plan::MemoryParts& parts : estimate.moments) {
    for (double& bytes : parts) bytes *= factor;
  }
  estimate.overhead_bytes = times(estimate.overhead_bytes);
  estimate.expected.count += estimate.overhead_bytes;
  estimate.optimistic = std::min({estimate.optimistic, Bytes{times(estimate.optimistic.count)}, estimate.expected});
  estimate.conservative = std::max(Bytes{times(estimate.conservative.count)}, estimate.expected);
}

// Measurements limit what is assumed.
void MemoryModel::Impl::tighten(MemoryEstimate& estimate) {
  constexpr double kDeviations = 3.0;
  const auto expected = static_cast<double>(estimate.expected.count);
  const double factor = std::exp(kDeviations * estimate.log_stddev);
  estimate.optimistic = std::max(estimate.optimistic, Bytes{static_cast<std::int64_t>(expected / factor)});
  estimate.conservative = std::min(estimate.conservative, Bytes{static_cast<std::int64_t>(expected * factor)});
}

MemoryModel::MemoryModel(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                         const workload::MemorySpec& memory, const MemoryCalibration& calibration)
    : impl_(std::make_unique<Impl>(workload, cluster, memory, calibration)) {
  schedule::check_model(workload);
}

MemoryModel::~MemoryModel() = default;

MemoryEstimate MemoryModel::Impl::estimate(const schedule::Knobs& knobs) const {
  if (memory.model == workload::MemoryModelKind::kDeepSpeedAutotuner) {
    return deepspeed_autotuner_estimate(*raw_profiles.of(knobs), workload, knobs);
  }
  MemoryEstimate needed = traits.exact_memory && knobs.pipeline_ranks == 1 ? exact(knobs) : of_framework(knobs);
  const std::int64_t host = host_bytes_of_rank(tensors, workload, knobs);
  needed.host = {host * cluster.gpus_per_node};
  return needed;
}

plan::MemoryVerdict MemoryModel::Impl::verdict(const space::Configuration& configuration, const schedule::Knobs& knobs,
                                               Bytes usable, Bytes host_usable) const {
  const MemoryEstimate needed = estimate(knobs);
  if (memory.model == workload::MemoryModelKind::kDeepSpeedAutotuner)
    return plan::exact_verdict(needed.expected, usable);
  if (traits.exact_memory) {
    return exact_verdict_of(configuration, knobs, needed, usable, host_usable);
  }
  plan::MemoryVerdict verdict;
  verdict.predicted = needed.expected;
  const MemoryShape::LogBytes log_bytes = MemoryShape(needed.log_stddev).needed(needed.moments);
  const double margin = (std::log(static_cast<double>(usable.count)) - log_bytes.mean) / log_bytes.stddev;
  verdict.spread = {log_bytes.stddev,  margin,        needed.expected - Bytes{needed.overhead_bytes}, usable,
                    needed.log_stddev, needed.moments};
  verdict.probability_fits = normal_cdf(margin);
  verdict.verdict = needed.optimistic > usable      ? plan::Verdict::kTooLarge
                    : needed.conservative <= usable ? plan::Verdict::kFits
                                                    : plan::Verdict::kUncertain;
  if (verdict.verdict == plan::Verdict::kTooLarge) verdict.probability_fits = 0.0;
  const bool is_complete = workload.caveats.not_modelled.empty();
  if (is_complete && needed.host > host_usable) verdict = {plan::Verdict::kTooLarge, 0.0, needed.expected};
  return verdict;
}

MemoryEstimate MemoryModel::estimate(const space::Configuration& configuration) const {
  return impl_->estimate(schedule::modelled(impl_->find_knobs(configuration)));
}

plan::MemoryVerdict MemoryModel::verdict(const space::Configuration& configuration, Bytes usable,
                                         Bytes host_usable) const {
  return impl_->verdict(configuration, schedule::modelled(impl_->find_knobs(configuration)), usable, host_usable);
}

std::optional<MemoryEstimate> MemoryModel::estimate_if_modelled(const space::Configuration& configuration) const {
  const std::variant<schedule::Knobs, schedule::NotModelled> knobs = impl_->find_knobs(configuration);
  if (std::holds_alternative<schedule::NotModelled>(knobs)) return std::nullopt;
  return impl_->estimate(std::get<schedule::Knobs>(knobs));
}

std::optional<plan::MemoryVerdict> MemoryModel::verdict_if_modelled(const space::Configuration& configuration,
                                                                    Bytes usable, Bytes host_usable) const {
  const std::variant<schedule::Knobs, schedule::NotModelled> knobs = impl_->find_knobs(configuration);
  if (std::holds_alternative<schedule::NotModelled>(knobs)) return std::nullopt;
  return impl_->verdict(configuration, std::get<schedule::Knobs>(knobs), usable, host_usable);
}

namespace {

plan::MemoryPart activations_of(schedule::Checkpointing checkpointing) {
  switch (checkpointing) {
    case schedule::Checkpointing::kSelective:
      return plan::MemoryPart::kSelectiveActivations;
    case schedule::Checkpointing::kFull:
      return plan::MemoryPart::kFullActivations;
    case schedule::Checkpointing::kNone:
      break;
  }
  return plan::MemoryPart::kActivations;
}

}  // namespace

// Returns the moments of a step by the parts that frameworks keep more or less of; each part combines terms of a plan.

std::vector<plan::MemoryParts> parts_of(const FrameworkPeak& peak, const FrameworkPeak* otherwise,
                                        const MemoryAssumptions& assumed, schedule::Checkpointing checkpointing) {
  const auto activations = [](const MomentBytes& bytes) {
    return static_cast<double>(bytes[schedule::Term::kActivations] + bytes[schedule::Term::kWorkspace]);
  };
  std::vector<plan::MemoryParts> moments;
  for (std::size_t m = 0; m < peak.moments.size(); ++m) {
    const MomentBytes& bytes = peak.moments[m];
    plan::MemoryParts parts{};
    const auto part = [&parts](plan::MemoryPart of) -> double& { return parts[static_cast<std::size_t>(of)]; };
    const auto total = static_cast<double>(bytes.total);
    part(plan::MemoryPart::kStates) =
        static_cast<double>(bytes[schedule::Term::kParameters] + bytes[schedule::Term::kOptimizerState]);
    part(plan::MemoryPart::kGradients) = static_cast<double>(bytes[schedule::Term::kGradients]);
    part(plan::MemoryPart::kShardedGradients) = (peak.gradients_left - 1.0) * part(plan::MemoryPart::kGradients);
    part(activations_of(checkpointing)) = activations(bytes);
    if (otherwise != nullptr)
      part(plan::MemoryPart::kOtherSplit) = activations(otherwise->moments[m]) - activations(bytes);
    part(plan::MemoryPart::kLogits) = static_cast<double>(bytes[schedule::Term::kLogits]);
    part(plan::MemoryPart::kBuffers) =
        static_cast<double>(bytes[schedule::Term::kGatheredParameters] + bytes[schedule::Term::kReduceBuckets] +
                            bytes[schedule::Term::kInputs]);
    part(plan::MemoryPart::kOverhead) = assumed.context_bytes + (assumed.fragmentation - 1.0) * total;
    moments.push_back(parts);
  }
  return moments;
}

double least_bytes(const std::vector<plan::MemoryParts>& moments) {
  constexpr double kLeastActivations = 0.3;
  double least = 0.0;
  for (const plan::MemoryParts& parts : moments) {
    const auto part = [&parts](plan::MemoryPart of) { return parts[static_cast<std::size_t>(of)]; };
    const double activations = part(plan::MemoryPart::kActivations) + part(plan::MemoryPart::kSelectiveActivations) +
                               part(plan::MemoryPart::kFullActivations) +
                               std::min(0.0, part(plan::MemoryPart::kOtherSplit));
    const double gradients = part(plan::MemoryPart::kGradients) + part(plan::MemoryPart::kShardedGradients);
    least = std::max(least, part(plan::MemoryPart::kStates) + 0.5 * gradients + kLeastActivations * activations);
  }
  return least;
}

}  // namespace krigtune::cost
