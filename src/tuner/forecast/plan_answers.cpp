#include "krigtune/tuner/plan_answers.h"

#include <algorithm>

#include "krigtune/plan/memory.h"
#include "krigtune/space/parameter_names.h"

namespace krigtune {
namespace {

constexpr double kTwice = 2.0;

struct MachineChange {
  const char* text;                     ///< read aloud behind "with"
  bool (*apply)(ClusterSpec& cluster);  ///< false: there is no such thing
};

bool speed_up(std::optional<DeviceSpec>& device, double DeviceSpec::*rate) {
  if (device) *device.*rate *= kTwice;
  return device.has_value();
}

bool speed_up(EmulatedNetwork& network) {
  network.latency_s /= kTwice;
  network.bytes_per_s *= kTwice;
  if (!network.nodes) return true;
  for (NetworkLevel* level : {&network.nodes->intra, &network.nodes->inter}) {
    level->latency_s /= kTwice;
    level->bytes_per_s *= kTwice;
  }
  return true;
}

bool speed_up(MeasuredMachine& machine) {
  for (ClassRate& rate : machine.rates) {
    rate.launch_s /= kTwice;
    rate.flops_per_s *= kTwice;
    rate.bytes_per_s *= kTwice;
  }
  return true;
}

bool speed_up(NetworkLevel& links) {
  links.bytes_per_s *= kTwice;
  return true;
}

constexpr MachineChange kMachineChanges[] = {
    {"network between nodes twice as fast",
     [](ClusterSpec& c) { return c.network && c.nodes > 1 && speed_up(c.network->inter); }},
    {"links within nodes twice as fast",
     [](ClusterSpec& c) { return c.network && c.gpus_per_node > 1 && speed_up(c.network->intra); }},
    {"matrix products twice as fast",
     [](ClusterSpec& c) {
       return speed_up(c.device, &DeviceSpec::fp32_flops_per_s) && speed_up(c.device, &DeviceSpec::fp16_flops_per_s) &&
              speed_up(c.device, &DeviceSpec::bf16_flops_per_s);
     }},
    {"device memory twice as fast", [](ClusterSpec& c) { return speed_up(c.device, &DeviceSpec::memory_bytes_per_s); }},
    {"host link twice as fast", [](ClusterSpec& c) { return speed_up(c.device, &DeviceSpec::host_bytes_per_s); }},
    {"kernels twice as fast", [](ClusterSpec& c) { return c.measured && speed_up(*c.measured); }},
    {"network twice as fast", [](ClusterSpec& c) { return c.emulated_network && speed_up(*c.emulated_network); }},
};

// With one parameter changed, what follows from it derived anew; empty where that is no configuration.
std::optional<Configuration> changed(const Session& session, Configuration configuration, const std::string& name,
                                     const Value& value) {
  const bool derived = session.workload->train_batch_size && session.space.find(kAccumulation) == nullptr;
  if (derived) configuration.erase(kAccumulation);
  configuration.set(name, value);
  if (session.space.complete(configuration) != Exclusion::kNone) return std::nullopt;
  return configuration;
}

std::vector<Value> powers_of_two() {
  constexpr std::int64_t kMost = 32;
  std::vector<Value> values;
  for (std::int64_t value = 1; value <= kMost; value *= 2) values.emplace_back(value);
  return values;
}

std::vector<Variant> variants_of(const Session& session, const Forecaster& forecaster,
                                 const Configuration& configuration, const std::string& parameter,
                                 const std::vector<Value>& values) {
  std::vector<Variant> result;
  for (const Value& value : values) {
    const std::optional<Configuration> variant = changed(session, configuration, parameter, value);
    if (!variant) continue;
    const Forecast forecast = forecaster(*variant);
    if (forecast.cost) result.push_back({value, {*variant, forecast}});
  }
  return result;
}

std::vector<BatchRow> batch_rows(const Session& session, const std::vector<Variant>& variants) {
  std::vector<BatchRow> rows;
  for (const Variant& variant : variants) {
    const Configuration& configuration = variant.candidate.configuration;
    rows.push_back({configuration.integer(kMicroBatch, 1), configuration.integer(kAccumulation, 1),
                    sequences_per_step(session, modelled_part(configuration)), variant.candidate.forecast});
  }
  return rows;
}

bool may_run(const BatchRow& row) { return !row.forecast.memory || row.forecast.memory->verdict != Verdict::kTooLarge; }

void mark_plateau(std::vector<BatchRow>& rows) {
  constexpr double kShare = 0.95;
  double most = 0.0;
  for (const BatchRow& row : rows) {
    if (may_run(row)) most = std::max(most, row.forecast.samples_per_s);
  }
  const auto first = std::find_if(rows.begin(), rows.end(), [&](const BatchRow& row) {
    return may_run(row) && row.forecast.samples_per_s >= kShare * most;
  });
  if (first != rows.end()) first->plateau = true;
}

}  // namespace

std::optional<MemoryTerms> memory_terms(const Session& session, const MemoryFilter& filter,
                                        const Configuration& configuration) {
  MemoryTerms terms;
  if (filter.is_exact()) {
    const MemoryReport report = explain(build_plan(*session.workload, session.cluster, configuration));
    terms.term_bytes = report.term_bytes;
    terms.other_bytes = report.fragmentation_bytes;
    terms.peak = {report.peak_bytes};
    terms.peak_at = report.peak_at;
    return terms;
  }
  const std::optional<MemoryEstimate> estimate = filter.estimate(configuration);
  if (!estimate) return std::nullopt;
  terms.term_bytes = estimate->term_bytes;
  terms.other_bytes = estimate->overhead_bytes;
  terms.peak = estimate->expected;
  terms.peak_at = estimate->peak_at;
  return terms;
}

std::vector<WhatIf> what_ifs(const Session& session, const Forecaster& forecaster, const Candidate& candidate) {
  std::vector<WhatIf> answers;
  if (!candidate.forecast.cost) return answers;
  for (const MachineChange& change : kMachineChanges) {
    ClusterSpec cluster = session.cluster;
    if (!change.apply(cluster)) continue;
    const std::optional<StepCost> cost = forecaster.cost_on(cluster, candidate.configuration);
    if (cost) answers.push_back({change.text, candidate.forecast.cost->step_time_s / cost->step_time_s});
  }
  std::stable_sort(answers.begin(), answers.end(), [](const WhatIf& a, const WhatIf& b) { return a.gain > b.gain; });
  return answers;
}

std::vector<Variant> variants(const Session& session, const Forecaster& forecaster, const Configuration& configuration,
                              const std::string& parameter) {
  const Parameter* found = session.space.find(parameter);
  if (found == nullptr || found->continuous()) return {};
  return variants_of(session, forecaster, configuration, parameter, found->values);
}

BatchAnswer batch_answer(const Session& session, const Forecaster& forecaster, const Configuration& configuration) {
  BatchAnswer answer;
  const Parameter* micro_batch = session.space.find(kMicroBatch);
  const std::vector<Value> sizes =
      micro_batch != nullptr && !micro_batch->continuous() ? micro_batch->values : powers_of_two();
  answer.by_micro_batch = batch_rows(session, variants_of(session, forecaster, configuration, kMicroBatch, sizes));
  mark_plateau(answer.by_micro_batch);
  if (session.workload->train_batch_size) return answer;
  const Parameter* accumulation = session.space.find(kAccumulation);
  const std::vector<Value> counts =
      accumulation != nullptr && !accumulation->continuous() && accumulation->values.size() > 1 ? accumulation->values
                                                                                                : powers_of_two();
  answer.by_accumulation = batch_rows(session, variants_of(session, forecaster, configuration, kAccumulation, counts));
  mark_plateau(answer.by_accumulation);
  return answer;
}

ExpectedTime expected_time(const Session& session, const PlanStudy& study) {
  ExpectedTime time;
  time.trials = session.budget.trials;
  if (!study.is_sample()) {
    time.trials = std::min(time.trials, study.looked_at() - study.counts.too_large + (session.baseline ? 1 : 0));
  }
  const auto trials = static_cast<double>(time.trials);
  if (const auto* bench = std::get_if<BenchSpec>(&session.runner)) {
    time.trials_s = trials * (bench->warmup_s + bench->measure_s);
  }
  if (traits_of(session.runner).runs_programs) time.most_trials_s = trials * timeout_s(session.runner);
  const auto limit = [&](double seconds) {
    for (std::optional<double>* of : {&time.trials_s, &time.most_trials_s}) {
      if (*of) *of = std::min(**of, seconds);
    }
  };
  constexpr double kHour = 3600.0;
  if (session.budget.hours) limit(*session.budget.hours * kHour);
  if (session.budget.gpu_hours) {
    limit(*session.budget.gpu_hours * kHour / static_cast<double>(session.cluster.ranks()));
  }
  return time;
}

PlanAnswers answers_of(const Session& session, const MemoryFilter& filter, const Forecaster& forecaster,
                       const PlanStudy& study) {
  PlanAnswers answers;
  for (const auto& [number, stage] : study.stages) {
    if (const auto terms = memory_terms(session, filter, stage.example)) answers.terms.emplace(number, *terms);
  }
  answers.time = expected_time(session, study);
  if (session.baseline && forecaster.knows_time()) {
    const Forecast forecast = forecaster(*session.baseline);
    if (forecast.cost) answers.baseline = Candidate{*session.baseline, forecast};
  }
  if (study.best.empty()) return answers;
  const Candidate& best = study.best.front();
  answers.what_ifs = what_ifs(session, forecaster, best);
  answers.by_zero_stage = variants(session, forecaster, best.configuration, kZeroStage);
  answers.by_tensor_parallel = variants(session, forecaster, best.configuration, kTensorParallel);
  answers.batch = batch_answer(session, forecaster, best.configuration);
  return answers;
}

}  // namespace krigtune
