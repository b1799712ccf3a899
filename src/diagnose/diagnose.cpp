// Each limit has a share of the step time. A loss is time that another configuration, or a machine as stated, would not
// take; the work is the rest. With t the predicted time of a sequence after learning:
//
//   communication by group   rank_limits.cpp, as are pipelines
//   host, small kernels      1 - t(machine that issues at once | whose kernels begin at full rate) / t
//   slow device, straggler   1 - t(device as stated) / t, (slowest - median rank) / step as measured
//   recomputation, offload   1 - t(best configuration without it that fits) / t, if there is one
//   room in memory           1 - t(larger micro-batch that does not fit) / t, beyond the best that fits
//   products, bandwidth      their share of the step
#include "diagnose/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "diagnose/judge.h"
#include "space/usual_names.h"
#include "space/well_known.h"

namespace krigtune::diagnose {
namespace {

std::string percent(double share) { return fmt::format("{:.0f} %", 100.0 * share); }

std::vector<Parameters> what_saves_memory() {
  return {{space::kMicroBatch},
          {space::kZeroStage},
          {space::kCheckpointing},
          {space::kTensorParallel},
          {space::kContextParallel},
          {space::kExpertParallel},
          {space::kOffloadOptimizer},
          {space::kZeroStage, space::kMicroBatch},
          {space::kCheckpointing, space::kMicroBatch},
          {space::kZeroStage, space::kCheckpointing}};
}

bool is_word(const space::Configuration& configuration, const char* name, const char* word) {
  const space::Value* value = configuration.find(name);
  return value != nullptr && space::to_string(*value) == word;
}

LearnedFactors factors_of(const JobModel& model, const cost::StepCost& cost) {
  const cost::TimeCalibration& calibration = model.factors();
  LearnedFactors factors{1.0, calibration.products, calibration.memory, calibration.collectives};
  const double kernels_s = cost.products_s + cost.memory_bound_s + cost.optimizer_s;
  const double stated_s =
      cost.products_s / calibration.products + (cost.memory_bound_s + cost.optimizer_s) / calibration.memory;
  if (stated_s > 0.0) factors.kernels = kernels_s / stated_s;
  return factors;
}

}  // namespace

// Missing memory:

void Judge::look_for_missing_memory() {
  if (!ran_out_of_memory_ && present_.fits()) return;
  if (seen_ != nullptr || !present_.memory) return;  // it ran, or its memory is unknown
  const Bytes needed = present_.memory->predicted;
  const Bytes usable = *model_.session().usable_per_rank;
  Verdict& verdict =
      add(Limit::kMissingMemory, 1.0, static_cast<double>(needed.count) / static_cast<double>(usable.count), 1.0,
          "predicted memory / usable memory");
  verdict.measured = ran_out_of_memory_;
  verdict.sentence = fmt::format("{} {} a rank, of {} that it may use",
                                 ran_out_of_memory_ ? "it ran out of memory; the models expect" : "it needs",
                                 to_string(needed), to_string(usable));
  // Any change that fits helps, even if it is slower. If the trial ran out of memory although the models say that it
  // fits, the change must need clearly less.
  const auto helps = [&](const Move& move) {
    constexpr double kClearlyLess = 0.9;
    return move.predicted.fits() && (!present_.fits() || static_cast<double>(move.predicted.memory->predicted.count) <=
                                                             kClearlyLess * static_cast<double>(needed.count));
  };
  std::vector<Move> fitting;
  for (const Parameters& group : what_saves_memory()) {
    const Move* best = nullptr;
    const std::vector<Move> moves = moves_.of(group);
    for (const Move& move : moves) {
      if (helps(move) && (best == nullptr || move.speedup > best->speedup)) best = &move;
    }
    if (best != nullptr) fitting.push_back(*best);
  }
  std::stable_sort(fitting.begin(), fitting.end(), [](const Move& a, const Move& b) { return a.speedup > b.speedup; });
  for (const Move& move : fitting) {
    if (verdict.advice.size() < kMostAdvice) verdict.advice.push_back(advice_of(model_, present_, move));
  }
}

// The machine, about which only measurements say anything:

double Judge::kernel_factor() const {
  const cost::TimeCalibration& factors = model_.factors();
  const double products_s = cost_.products_s / factors.products;
  const double memory_s = (cost_.memory_bound_s + cost_.optimizer_s) / factors.memory;
  const double stated_s = products_s + memory_s;
  return stated_s > 0.0 ? (cost_.products_s + cost_.memory_bound_s + cost_.optimizer_s) / stated_s : 1.0;
}

void Judge::look_at_the_machine() {
  if (seen_ == nullptr) return;
  look_at_stragglers();
  look_at_the_device();
}

void Judge::look_at_stragglers() {
  const double lost_s = seen_->straggling_s();
  if (lost_s <= 0.0) return;
  const double spread = *seen_->slowest_rank_kernels_s / *seen_->median_rank_kernels_s - 1.0;
  const double share = lost_s / seen_->step_time_s;
  if (spread < thresholds_.straggler || share < thresholds_.share) return;
  Verdict& verdict = add(Limit::kStraggler, share, spread, thresholds_.straggler,
                         "kernels of the slowest rank / kernels of the median rank - 1");
  verdict.sentence =
      fmt::format("the slowest rank computes for {} per step, the median rank for {}; the others wait",
                  duration_text(*seen_->slowest_rank_kernels_s), duration_text(*seen_->median_rank_kernels_s));
  Advice advice =
      fixed("if the slow rank were as fast as the median rank (check its clocks, other processes and host)", present_);
  advice.speedup = seen_->step_time_s / (seen_->step_time_s - lost_s);
  advice.predicted.cost.step_time_s = seen_->step_time_s - lost_s;
  put_first(verdict, std::move(advice));
}

void Judge::look_at_the_device() {
  const double factor = kernel_factor();
  cost::TimeCalibration mended_factors = model_.factors();
  mended_factors.products = mended_factors.memory = 1.0;
  const std::optional<Prediction> stated = model_.with(configuration_, mended_factors);
  const double share = stated ? 1.0 - stated->cost.step_time_s / cost_.step_time_s : 0.0;
  if (factor < thresholds_.slow_device || share < thresholds_.share) return;
  Verdict& verdict =
      add(Limit::kSlowDevice, share, factor, thresholds_.slow_device, "kernels as measured / kernels as stated");
  const session::Session& session = model_.session();
  const std::string device = session.cluster.device ? "the " + session.cluster.device->id + " of the session"
                                                    : "this machine, as it was measured,";
  verdict.sentence = fmt::format("kernels take {:.2g} times as long as {} takes for them", factor, device);
  const cost::TimeCalibration& factors = model_.factors();
  if (factors.products > 1.15 * factors.memory) {
    verdict.sentence +=
        fmt::format("; matrix products {:.2g} times, memory-bound ones {:.2g} times", factors.products, factors.memory);
  }
  put_first(verdict,
            fixed("if the device reached its stated speed (check clocks, power limit, temperature and other processes)",
                  *stated));
}

void Judge::look_at_the_input() {
  if (seen_ == nullptr || !seen_->data_loading_s) return;
  const double all_s = seen_->step_time_s + *seen_->data_loading_s;
  const double share = *seen_->data_loading_s / all_s;
  if (share < thresholds_.share) return;
  Verdict& verdict = add(Limit::kInput, share, share, thresholds_.share, "time between steps / time from step to step");
  verdict.sentence = fmt::format("{} pass between two steps of {}: the next batch is not ready",
                                 duration_text(*seen_->data_loading_s), duration_text(seen_->step_time_s));
  Advice advice = fixed("if batches were loaded during the steps (more workers, prefetching)", present_);
  advice.speedup = all_s / seen_->step_time_s;
  put_first(verdict, std::move(advice));
}

// The host, and kernels that are too small:

void Judge::look_at_the_host() {
  const double issue = share_without([](cost::Machine& machine) {
    machine.issue_s = machine.internode_issue_s = machine.pipelined_issue_s = 0.0;
    machine.step_overhead_s = 0.0;
  });
  if (issue >= thresholds_.share) {
    Verdict& verdict =
        add(Limit::kHost, issue, issue, thresholds_.share, "1 - step time with kernels issued at once / step time");
    verdict.sentence = fmt::format(
        "the device waits for kernels to be issued and for what is once a step: {} of the "
        "step would go if they were there at once",
        percent(issue));
    verdict.advice = advice_from({{space::kMicroBatch},
                                  {space::kTensorParallel},
                                  {space::kPipelineParallel},
                                  {space::kCheckpointing},
                                  {space::kZeroStage},
                                  {space::kReduceBucket},
                                  {space::kAccumulation},
                                  {space::kCheckpointing, space::kMicroBatch}});
  }
  const double small = share_without([](cost::Machine& machine) {
    for (workload::ClassRate& rate : machine.rates) rate.launch_s = rate.half_flops = 0.0;
  });
  if (small < thresholds_.small_kernels) return;
  Verdict& verdict = add(Limit::kSmallKernels, small, small, thresholds_.small_kernels,
                         "1 - step time with kernels at full rate from their first byte on / step time");
  verdict.sentence =
      fmt::format("with a micro-batch of {} kernels are too small to reach the device's rates: {} of the step is lost",
                  configuration_.integer(space::kMicroBatch, 1), percent(small));
  verdict.advice = advice_from({{space::kMicroBatch},
                                {space::kTensorParallel},
                                {space::kCheckpointing, space::kMicroBatch},
                                {space::kZeroStage, space::kMicroBatch}});
}

// Recomputation and offload that are not needed:

void Judge::look_for_needless(Limit limit, const std::vector<Parameters>& groups, double number,
                              const std::string& quantity, const std::string& what) {
  const std::vector<Advice> advice = advice_from(groups);
  if (advice.empty()) return;
  // The share is that of a change that leaves the micro-batch as it is, if there is one.
  const auto own = std::find_if(advice.begin(), advice.end(), [](const Advice& one) {
    return std::none_of(one.changes.begin(), one.changes.end(),
                        [](const Change& change) { return change.parameter == space::kMicroBatch; });
  });
  const double share = 1.0 - 1.0 / (own != advice.end() ? *own : advice.front()).speedup;
  if (share < thresholds_.share) return;
  Verdict& verdict = add(limit, share, share, thresholds_.share, quantity);
  verdict.sentence = fmt::format("{} takes {}", what, duration_text(number));
  const auto& memory = advice.front().predicted.memory;
  if (memory && model_.session().usable_per_rank) {
    verdict.sentence += fmt::format(", and without it {} of {} would be used", to_string(memory->predicted),
                                    to_string(*model_.session().usable_per_rank));
  }
  verdict.advice = advice;
}

void Judge::look_at_what_is_needless() {
  const bool recomputes =
      configuration_.has(space::kCheckpointing) && !is_word(configuration_, space::kCheckpointing, "none");
  if (recomputes) {
    look_for_needless(Limit::kRecomputation, {{space::kCheckpointing}, {space::kCheckpointing, space::kMicroBatch}},
                      cost_.recompute_s, "1 - step time without recomputation / step time", "recomputing activations");
  }
  const bool optimizer = is_word(configuration_, space::kOffloadOptimizer, "cpu");
  const bool parameters = is_word(configuration_, space::kOffloadParam, "cpu");
  std::vector<Parameters> groups;
  if (optimizer) groups.push_back({space::kOffloadOptimizer});
  if (parameters) groups.push_back({space::kOffloadParam});
  if (optimizer && parameters) groups.push_back({space::kOffloadOptimizer, space::kOffloadParam});
  if (optimizer) groups.push_back({space::kOffloadOptimizer, space::kMicroBatch});
  if (groups.empty()) return;
  look_for_needless(Limit::kOffload, groups, cost_.offload_s, "1 - step time without offload / step time",
                    "transfers and updates on the host while no kernel runs");
}

// A larger micro-batch:

void Judge::look_for_room() {
  double fitting = 1.0;
  const Move* best = nullptr;
  const std::vector<Move> moves = moves_.of({space::kMicroBatch});
  for (const Move& move : moves) {
    if (move.predicted.fits()) {
      fitting = std::max(fitting, move.speedup);
    } else if (best == nullptr || move.speedup > best->speedup) {
      best = &move;
    }
  }
  if (best == nullptr) return;
  const double share = fitting > 0.0 ? 1.0 - fitting / best->speedup : 0.0;
  if (share < thresholds_.share) return;
  Verdict& verdict =
      add(Limit::kMemoryRoom, share, share, thresholds_.share, "1 - time with a micro-batch that does not fit / time");
  verdict.measured = false;
  verdict.sentence =
      fmt::format("{}={} would be {:.2f} times as fast, and needs {} of {}", space::kMicroBatch,
                  best->configuration.integer(space::kMicroBatch, 1), best->speedup,
                  to_string(best->predicted.memory->predicted), to_string(*model_.session().usable_per_rank));
  verdict.advice = advice_from({{space::kCheckpointing, space::kMicroBatch},
                                {space::kZeroStage, space::kMicroBatch},
                                {space::kTensorParallel, space::kMicroBatch},
                                {space::kOffloadOptimizer, space::kMicroBatch}});
}

// The work itself:

void Judge::look_at_the_work() {
  const double bandwidth = share_of(cost_.memory_bound_s + cost_.optimizer_s);
  if (bandwidth >= thresholds_.memory_bandwidth) {
    Verdict& verdict = add(Limit::kMemoryBandwidth, bandwidth, bandwidth, thresholds_.memory_bandwidth,
                           "(elementwise kernels + optimizer) / step time");
    verdict.sentence =
        fmt::format("elementwise kernels, norms and losses take {}, the optimizer {}: memory bandwidth limits them",
                    duration_text(cost_.memory_bound_s), duration_text(cost_.optimizer_s));
    verdict.advice = advice_from({{space::kZeroStage},
                                  {space::kSequenceParallel},
                                  {space::kCheckpointing},
                                  {space::kMicroBatch},
                                  {space::kAccumulation}});
  }
  const double compute = share_of(cost_.products_s);
  if (compute < thresholds_.compute) return;
  Verdict& verdict = add(Limit::kCompute, compute, compute, thresholds_.compute, "(products + attention) / step time");
  verdict.sentence = fmt::format("matrix products and attention take {} of the step: this is useful work",
                                 duration_text(cost_.products_s));
  verdict.advice = advice_from(
      {{space::kCheckpointing}, {space::kMicroBatch}, {space::kTensorParallel}, {space::kPipelineParallel}});
}

void sort_verdicts(std::vector<Verdict>& verdicts, const Thresholds& thresholds) {
  const auto rank = [&](const Verdict& verdict) {
    const bool is_work = verdict.limit == Limit::kCompute || verdict.limit == Limit::kMemoryBandwidth;
    if (verdict.limit == Limit::kMissingMemory) return 0;
    return !is_work && verdict.share >= thresholds.large_share ? 1 : 2;
  };
  std::stable_sort(verdicts.begin(), verdicts.end(), [&](const Verdict& a, const Verdict& b) {
    return rank(a) != rank(b) ? rank(a) < rank(b) : a.share > b.share;
  });
}

Diagnosis diagnose(JobModel& model, const space::Configuration& configuration, const Seen& measured,
                   const Thresholds& thresholds) {
  const std::optional<Prediction> stated = model.stated(configuration);
  if (!stated) {
    throw UserError(fmt::format("{}: the models do not know a step of this configuration", configuration.text()),
                    "docs/parameters.md says which values are modelled");
  }
  Diagnosis diagnosis;
  diagnosis.configuration = configuration;
  diagnosis.stated = diagnosis.learned = *stated;
  const Observation* seen = measured.observations.empty() ? nullptr : &measured.observations.front();
  if (seen != nullptr) {
    model.learn(measured.observations, 0);
    diagnosis.learned = *model.predict(configuration);
    diagnosis.measured_step_s = seen->step_time_s;
    diagnosis.measured_exposed_comm_s = seen->exposed_comm_s;
    diagnosis.measured_peak = seen->peak_memory;
    diagnosis.straggling_s = seen->straggling_s();
    diagnosis.factors = factors_of(model, diagnosis.learned.cost);
  }
  const space::Configuration usual = space::in_usual_names(configuration);
  diagnosis.verdicts = Judge(model, usual, diagnosis.learned, measured, thresholds).run();
  return diagnosis;
}

}  // namespace krigtune::diagnose
