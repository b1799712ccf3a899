#include "krigtune/cost/memory_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>
#include <unordered_map>

#include "framework_memory.h"
#include "krigtune/plan/build_plan.h"
#include "memory_timeline.h"
#include "state_memory.h"

namespace krigtune {
namespace {

// What a profile depends on beside the workload.
using ProfileKey = std::tuple<std::int64_t, bool, Checkpointing>;
using Profiles = std::array<MemoryProfile, kOutlookCount>;

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

}  // namespace

struct MemoryModel::Impl {
  Workload workload;
  ClusterSpec cluster;
  MemorySpec memory;
  MemoryCalibration calibration;
  const FrameworkTraits& traits;
  mutable std::mutex mutex;  // of what is below
  mutable std::map<ProfileKey, std::shared_ptr<const Profiles>> profiles;
  mutable std::unordered_map<std::string, std::int64_t> planned_bytes;

  std::shared_ptr<const Profiles> profiles_of(const Knobs& knobs) const {
    const ProfileKey key{knobs.tensor_ranks, knobs.sequence_parallel, knobs.checkpointing};
    {
      const std::lock_guard lock(mutex);
      if (const auto found = profiles.find(key); found != profiles.end()) return found->second;
    }
    auto made = std::make_shared<Profiles>();
    const MemoryProfile profile = profile_memory(workload, knobs);
    for (int o = 0; o < kOutlookCount; ++o) {
      const MemoryAssumptions assumed = assumptions(knobs, static_cast<Outlook>(o));
      const std::int64_t type = size_bytes(compute_type(workload.precision));
      (*made)[static_cast<std::size_t>(o)] = traits.exact_memory ? profile : assumed_profile(profile, assumed, type);
    }
    const std::lock_guard lock(mutex);
    return profiles.emplace(key, std::move(made)).first->second;
  }

  MemoryAssumptions assumptions(const Knobs& knobs, Outlook outlook) const {
    return assumptions_of(traits, knobs, outlook, calibration);
  }

  MemoryEstimate estimate(const Knobs& knobs) const;
  MemoryEstimate exact(const Knobs& knobs) const;
  Bytes planned(const Configuration& configuration, const Knobs& knobs) const;
  MemoryVerdict exact_verdict_of(const Configuration& configuration, const Knobs& knobs, const MemoryEstimate& needed,
                                 Bytes usable, Bytes host_usable) const;
  MemoryEstimate of_framework(const Knobs& knobs) const;
};

MemoryEstimate MemoryModel::Impl::exact(const Knobs& knobs) const {
  const MemoryProfile& profile = profiles_of(knobs)->front();
  const std::int64_t type = size_bytes(compute_type(workload.precision));
  const StageShape stage{workload.model.layers, true, true, 1};
  const ModelTensors model(profile, stage, workload.model.tied_embeddings, knobs.data_ranks, type);
  const StateBytes states = state_bytes(model, workload, knobs);
  const StepPeak peak = step_peak(profile, model, stage, workload, knobs);
  MemoryEstimate estimate;
  MomentBytes all = states.device;
  if (states.rounded_bytes > peak.bytes.total) {
    all.add(Term::kParameters, states.rounded_bytes);
    estimate.peak_at = "optimizer";
  } else {
    all += peak.bytes;
    estimate.peak_at = peak_text(peak, knobs.micro_steps);
  }
  estimate.term_bytes = all.terms;
  estimate.optimistic = estimate.expected = estimate.conservative = {all.total};
  return estimate;
}

// By a plan of the distinct micro-steps: further ones use the same bytes, but for a number each for their losses.
Bytes MemoryModel::Impl::planned(const Configuration& configuration, const Knobs& knobs) const {
  Configuration shorter = configuration;
  Workload shortened = workload;
  const std::int64_t steps = distinct_micro_steps(workload, knobs);
  shorter.set("gradient_accumulation_steps", steps);
  shortened.train_batch_size.reset();
  const std::string key = shorter.text();
  const auto aligned = [](std::int64_t bytes) {
    return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
  };
  const std::int64_t losses = aligned(4 * knobs.micro_steps) - aligned(4 * steps);
  {
    const std::lock_guard lock(mutex);
    if (const auto found = planned_bytes.find(key); found != planned_bytes.end()) return {found->second + losses};
  }
  const std::int64_t bytes = build_plan(shortened, cluster, shorter).arena_bytes;
  const std::lock_guard lock(mutex);
  planned_bytes.emplace(key, bytes);
  return {bytes + losses};
}

MemoryVerdict MemoryModel::Impl::exact_verdict_of(const Configuration& configuration, const Knobs& knobs,
                                                  const MemoryEstimate& needed, Bytes usable, Bytes host_usable) const {
  // What the plan's arena may be, over what is expected (tests/cost/memory_model_test.cpp).
  constexpr double kLeast = 0.94;
  constexpr double kMost = 1.10;
  const auto expected = static_cast<double>(needed.expected.count);
  const auto limit = static_cast<double>(usable.count);
  const bool decided = expected * kMost <= limit || expected * kLeast > limit || knobs.pipeline_ranks > 1;
  const Bytes predicted = decided ? needed.expected : planned(configuration, knobs);
  MemoryVerdict verdict = exact_verdict(predicted, usable);
  if (needed.host > host_usable) verdict = {Verdict::kTooLarge, 0.0, predicted};
  return verdict;
}

MemoryEstimate MemoryModel::Impl::of_framework(const Knobs& knobs) const {
  MemoryEstimate estimate;
  const std::shared_ptr<const Profiles> assumed_profiles = profiles_of(knobs);
  for (const Outlook outlook : {Outlook::kOptimistic, Outlook::kExpected, Outlook::kConservative}) {
    const MemoryAssumptions assumed = assumptions(knobs, outlook);
    const FrameworkPeak peak =
        framework_peak((*assumed_profiles)[static_cast<std::size_t>(outlook)], workload, knobs, assumed);
    const double spread = (assumed.fragmentation - 1.0) * static_cast<double>(peak.bytes.total);
    const auto overhead = static_cast<std::int64_t>(assumed.context_bytes + spread);
    const Bytes needed{peak.bytes.total + overhead};
    if (outlook == Outlook::kOptimistic) estimate.optimistic = needed;
    if (outlook == Outlook::kConservative) estimate.conservative = needed;
    if (outlook != Outlook::kExpected) continue;
    estimate.term_bytes = peak.bytes.terms;
    estimate.overhead_bytes = overhead;
    estimate.expected = needed;
    estimate.peak_at = peak.at;
  }
  estimate.log_stddev = calibration.log_stddev > 0.0 ? calibration.log_stddev : traits.log_stddev;
  estimate.optimistic = std::min(estimate.optimistic, estimate.expected);
  estimate.conservative = std::max(estimate.conservative, estimate.expected);
  return estimate;
}

MemoryModel::MemoryModel(const Workload& workload, const ClusterSpec& cluster, const MemorySpec& memory,
                         const MemoryCalibration& calibration)
    : impl_(new Impl{workload, cluster, memory, calibration, traits_of(workload.framework), {}, {}, {}}) {
  check_model(workload);
}

MemoryModel::~MemoryModel() = default;

MemoryEstimate MemoryModel::Impl::estimate(const Knobs& knobs) const {
  MemoryEstimate needed = traits.exact_memory && knobs.pipeline_ranks == 1 ? exact(knobs) : of_framework(knobs);
  const std::int64_t host = host_bytes_of_rank(profiles_of(knobs)->front(), workload, knobs);
  needed.host = {host * cluster.gpus_per_node};
  return needed;
}

MemoryEstimate MemoryModel::estimate(const Configuration& configuration) const {
  return impl_->estimate(read_knobs(impl_->workload, impl_->cluster, configuration));
}

MemoryVerdict MemoryModel::verdict(const Configuration& configuration, Bytes usable, Bytes host_usable) const {
  const Knobs knobs = read_knobs(impl_->workload, impl_->cluster, configuration);
  const MemoryEstimate needed = impl_->estimate(knobs);
  if (impl_->traits.exact_memory) {
    return impl_->exact_verdict_of(configuration, knobs, needed, usable, host_usable);
  }
  MemoryVerdict verdict;
  verdict.predicted = needed.expected;
  const auto ratio = static_cast<double>(usable.count) / static_cast<double>(needed.expected.count);
  verdict.probability_fits = normal_cdf(std::log(ratio) / needed.log_stddev);
  verdict.verdict = needed.conservative <= usable ? Verdict::kFits
                    : needed.optimistic > usable  ? Verdict::kTooLarge
                                                  : Verdict::kUncertain;
  if (verdict.verdict == Verdict::kTooLarge) verdict.probability_fits = 0.0;
  if (needed.host > host_usable) verdict = {Verdict::kTooLarge, 0.0, needed.expected};
  return verdict;
}

}  // namespace krigtune
