// Configurations are examined in blocks: in parallel within a block, and their results in order.
#include "forecast/plan_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/parallel.h"
#include "core/text.h"
#include "cost/framework.h"
#include "plan/memory.h"
#include "session/memory_filter.h"
#include "space/usual_names.h"
#include "space/well_known.h"

namespace krigtune::forecast {
namespace {

constexpr std::int64_t kMostStudied = 1'000'000;
constexpr int kSampled = 10'000;
constexpr std::uint64_t kSampleSeed = 1;
constexpr std::size_t kForecastBlock = 2'000;
constexpr std::size_t kBest = 10;
constexpr std::size_t kKept = 400;  // enough to find the similar ones of the best among them
constexpr double kAlike = 0.005;
constexpr double kLikely = 0.5;

// Counts the points whose values this job cannot use, which are no part of the space, among those of the lattice.
void count_unusable(const session::Session& session, PlanStudy& study) {
  constexpr std::int64_t kExact = 1'000'000'000'000'000;
  std::int64_t all = study.lattice;
  for (const session::LeftOut& one : session.left_out) {
    const auto kept = static_cast<std::int64_t>(session.space.find(one.parameter)->values.size());
    if (all > kExact) return;
    all = all / kept * (kept + static_cast<std::int64_t>(one.values.size()));
  }
  std::int64_t rest = study.lattice = all;
  for (const session::LeftOut& one : session.left_out) {
    const auto out = static_cast<std::int64_t>(one.values.size());
    const auto kept = static_cast<std::int64_t>(session.space.find(one.parameter)->values.size());
    std::vector<std::string> values;
    for (const space::Value& value : one.values) values.push_back(space::to_string(value));
    const std::int64_t count = rest / (kept + out) * out;
    study.excluded.emplace_back(fmt::format("{} = {} cannot be used by this job", one.parameter, join(values, " or ")),
                                count);
    rest -= count;
  }
}

// Sets the numbers that follow from counting alone.
void count_space(const session::Session& session, PlanStudy& study) {
  std::int64_t left = 0;
  count_unusable(session, study);
  for (const space::ExclusionCount& excluded : session.space.exclusions()) {
    if (excluded.reason == space::Exclusion::kNone) {
      left = excluded.count;
    } else if (excluded.count > 0) {
      const bool no_row = excluded.reason == space::Exclusion::kRestricted && session.table != nullptr;
      const std::string reason = no_row ? "not in the table" : space::to_string(excluded.reason);
      study.excluded.emplace_back(excluded.constraint.empty() ? reason : reason + " " + excluded.constraint,
                                  excluded.count);
    }
  }
  study.configurations = session.space.count();
  study.same_meaning = left - *study.configurations;
}

bool probably_fits(const Candidate& candidate) {
  return !candidate.forecast.memory || candidate.forecast.memory->probability_fits >= kLikely;
}

// Computes all forecasts with several threads.
void forecast_all(const Forecaster& forecaster, unsigned threads, std::vector<Candidate>& block) {
  run_side_by_side(threads, [&](std::size_t thread) {
    for (std::size_t i = thread; i < block.size(); i += threads) block[i].forecast = forecaster(block[i].configuration);
  });
}

/// The candidates with the largest scores; among equal ones the earlier one is first.
class BestFew {
 public:
  void add(const Candidate& candidate, double score) {
    if (best_.size() == kKept && score <= best_.back().first) return;
    const auto after = std::upper_bound(best_.begin(), best_.end(), score,
                                        [](double value, const auto& scored) { return value > scored.first; });
    best_.emplace(after, score, candidate);
    if (best_.size() > kKept) best_.pop_back();
  }

  /// A candidate that differs from a better one in one parameter, and is about as good, is only counted with that one.
  std::vector<Candidate> take() const {
    std::vector<std::pair<double, Candidate>> shown;
    for (const std::pair<double, Candidate>& next : best_) {
      const auto alike = std::find_if(shown.begin(), shown.end(), [&](const auto& better) {
        return better.first - next.first <= kAlike * std::abs(better.first) &&
               differences(better.second.configuration, next.second.configuration) == 1;
      });
      if (alike != shown.end()) {
        ++alike->second.similar;
      } else if (shown.size() < kBest) {
        shown.push_back(next);
      }
    }
    std::vector<Candidate> candidates;
    for (auto& [score, candidate] : shown) candidates.push_back(std::move(candidate));
    return candidates;
  }

 private:
  // Returns the number of names whose values differ.
  static int differences(const space::Configuration& a, const space::Configuration& b) {
    int count = 0;
    for (const auto& [name, value] : a) {
      const space::Value* other = b.find(name);
      if (other == nullptr || !space::same_value(value, *other)) ++count;
    }
    for (const auto& [name, value] : b) count += a.has(name) ? 0 : 1;
    return count;
  }

  std::vector<std::pair<double, Candidate>> best_;
};

/// One pass over the space.
class Study {
 public:
  Study(const session::Session& session, const Forecaster& forecaster, const StudyOptions& options)
      : session_(session), forecaster_(forecaster), options_(options) {}

  PlanStudy of_the_space() {
    const space::Space& space = session_.space;
    study_.lattice = space.lattice_count();
    if (space.listable()) count_space(session_, study_);
    expected_ = examined_count(study_.configurations);
    for_each_examined(space, study_.configurations,
                      [this](const space::Configuration& configuration) { look_at(configuration); });
    finish_block();
    study_.best = likely_.take();
    if (study_.best.empty()) study_.best = likeliest_.take();
    const auto sure = std::find_if(study_.best.begin(), study_.best.end(), [](const Candidate& candidate) {
      const std::optional<plan::MemoryVerdict>& memory = candidate.forecast.memory;
      return !memory || memory->verdict == plan::Verdict::kFits;
    });
    if (sure != study_.best.end()) study_.analysed = static_cast<std::size_t>(sure - study_.best.begin());
    std::sort(study_.step_times_s.begin(), study_.step_times_s.end());
    return std::move(study_);
  }

 private:
  void look_at(const space::Configuration& configuration) {
    block_.push_back({configuration, {}});
    if (block_.size() == kForecastBlock) finish_block();
  }

  void finish_block() {
    forecast_all(forecaster_, std::max(options_.threads, 1U), block_);
    for (const Candidate& candidate : block_) add(candidate);
    block_.clear();
    if (options_.progress) options_.progress(study_.looked_at(), expected_);
  }

  void add(const Candidate& candidate) {
    const std::optional<plan::MemoryVerdict>& memory = candidate.forecast.memory;
    study_.counts.add(memory);
    if (memory) add_to_stage(candidate, *memory);
    if (options_.visit) options_.visit(candidate);
    if (!candidate.forecast.cost) return;
    const auto& limitless = study_.best_without_limit;
    if (!limitless || forecaster_.score(candidate.forecast) > forecaster_.score(limitless->forecast)) {
      study_.best_without_limit = candidate;
    }
    if (memory && memory->verdict == plan::Verdict::kTooLarge) return;
    study_.step_times_s.push_back(candidate.forecast.cost->step_time_s);
    if (probably_fits(candidate)) {
      likely_.add(candidate, forecaster_.score(candidate.forecast));
    } else {
      likeliest_.add(candidate, memory->probability_fits);
    }
  }

  // Returns how good the candidate is as an example; larger is better.
  std::array<double, 3> quality(const Candidate& candidate, const plan::MemoryVerdict& memory) const {
    const bool is_fast = candidate.forecast.cost && memory.probability_fits >= kLikely;
    const double lowest = std::numeric_limits<double>::lowest();
    return {is_fast ? forecaster_.score(candidate.forecast) : lowest,
            -static_cast<double>(session::modelled_part(candidate.configuration).integer(space::kMicroBatch, 1)),
            -static_cast<double>(memory.predicted.count)};
  }

  std::int64_t stage_of(const space::Configuration& configuration) const {
    const auto& workload = session_.workload;
    const space::Configuration part = session::modelled_part(configuration);
    return (workload ? cost::with_usual_settings(*workload, part) : part).integer(space::kZeroStage, 0);
  }

  void add_to_stage(const Candidate& candidate, const plan::MemoryVerdict& memory) {
    const std::int64_t number = stage_of(candidate.configuration);
    StageMemory& stage = study_.stages[number];
    const bool first = stage.counts.all() == 0;
    const std::array<double, 3> its = quality(candidate, memory);
    if (first || its > examples_[number]) {
      examples_[number] = its;
      stage.example = candidate.configuration;
    }
    stage.smallest = first ? memory.predicted : std::min(stage.smallest, memory.predicted);
    stage.largest = std::max(stage.largest, memory.predicted);
    stage.counts.add(memory);
  }

  const session::Session& session_;
  const Forecaster& forecaster_;
  const StudyOptions& options_;
  PlanStudy study_;
  std::vector<Candidate> block_;
  BestFew likely_;
  BestFew likeliest_;                                       // of those that probably do not fit
  std::map<std::int64_t, std::array<double, 3>> examples_;  // quality by zero_stage
  std::int64_t expected_ = 0;
};

bool are_all_examined(std::optional<std::int64_t> count) { return count && *count <= kMostStudied; }

}  // namespace

std::int64_t examined_count(std::optional<std::int64_t> count) { return are_all_examined(count) ? *count : kSampled; }

void for_each_examined(const space::Space& space, std::optional<std::int64_t> count,
                       const std::function<void(const space::Configuration&)>& visit) {
  if (are_all_examined(count)) {
    space.for_each([&visit](const space::Configuration& configuration) { return visit(configuration), true; });
    return;
  }
  Rng rng(kSampleSeed, 0);
  for (int i = 0; i < kSampled; ++i) visit(space.sample(rng));
}

bool PlanStudy::best_probably_fit() const { return best.empty() || probably_fits(best.front()); }

void VerdictCounts::add(const std::optional<plan::MemoryVerdict>& memory) {
  if (!memory) {
    ++unknown;
    return;
  }
  switch (memory->verdict) {
    case plan::Verdict::kFits:
      ++fit;
      break;
    case plan::Verdict::kUncertain:
      ++uncertain;
      expected_to_run += memory->probability_fits;
      break;
    case plan::Verdict::kTooLarge:
      ++too_large;
      break;
  }
}

PlanStudy study_plan(const session::Session& session, const Forecaster& forecaster, const StudyOptions& options) {
  return Study(session, forecaster, options).of_the_space();
}

namespace {

constexpr double kTwice = 2.0;

struct MachineChange {
  const char* text;                               ///< follows the word "with"
  bool (*apply)(workload::ClusterSpec& cluster);  ///< returns false if the machine has no such part
};

bool speed_up(std::optional<workload::DeviceSpec>& device, double workload::DeviceSpec::*rate) {
  if (device) *device.*rate *= kTwice;
  return device.has_value();
}

bool speed_up(workload::EmulatedNetwork& network) {
  network.latency_s /= kTwice;
  network.bytes_per_s *= kTwice;
  if (!network.nodes) return true;
  for (workload::NetworkLevel* level : {&network.nodes->intra, &network.nodes->inter}) {
    level->latency_s /= kTwice;
    level->bytes_per_s *= kTwice;
  }
  return true;
}

bool speed_up(workload::MeasuredMachine& machine) {
  for (workload::ClassRate& rate : machine.rates) {
    rate.launch_s /= kTwice;
    rate.flops_per_s *= kTwice;
    rate.bytes_per_s *= kTwice;
  }
  return true;
}

bool speed_up(workload::NetworkLevel& links) {
  links.bytes_per_s *= kTwice;
  return true;
}

constexpr MachineChange kMachineChanges[] = {
    {"network between nodes twice as fast",
     [](workload::ClusterSpec& c) { return c.network && c.nodes > 1 && speed_up(c.network->inter); }},
    {"links within nodes twice as fast",
     [](workload::ClusterSpec& c) { return c.network && c.gpus_per_node > 1 && speed_up(c.network->intra); }},
    {"matrix products twice as fast",
     [](workload::ClusterSpec& c) {
       return speed_up(c.device, &workload::DeviceSpec::fp32_flops_per_s) &&
              speed_up(c.device, &workload::DeviceSpec::fp16_flops_per_s) &&
              speed_up(c.device, &workload::DeviceSpec::bf16_flops_per_s);
     }},
    {"device memory twice as fast",
     [](workload::ClusterSpec& c) { return speed_up(c.device, &workload::DeviceSpec::memory_bytes_per_s); }},
    {"host link twice as fast",
     [](workload::ClusterSpec& c) { return speed_up(c.device, &workload::DeviceSpec::host_bytes_per_s); }},
    {"kernels twice as fast", [](workload::ClusterSpec& c) { return c.measured && speed_up(*c.measured); }},
    {"network twice as fast",
     [](workload::ClusterSpec& c) { return c.emulated_network && speed_up(*c.emulated_network); }},
};

// Changes one parameter and derives again what follows from it. Empty if the result is not a configuration.
std::optional<space::Configuration> changed(const session::Session& session, space::Configuration configuration,
                                            const std::string& name, const space::Value& value) {
  const bool derived = session.workload->train_batch_size &&
                       space::find_usual(session.space.parameters(), space::kAccumulation) == nullptr;
  if (derived) configuration.erase(space::kAccumulation);
  configuration.set(name, value);
  if (session.space.complete(configuration) != space::Exclusion::kNone) return std::nullopt;
  return configuration;
}

std::vector<space::Value> powers_of_two() {
  constexpr std::int64_t kMost = 32;
  std::vector<space::Value> values;
  for (std::int64_t value = 1; value <= kMost; value *= 2) values.emplace_back(value);
  return values;
}

std::vector<Variant> variants_of(const session::Session& session, const Forecaster& forecaster,
                                 const space::Configuration& configuration, const std::string& parameter,
                                 const std::vector<space::Value>& values) {
  std::vector<Variant> result;
  for (const space::Value& value : values) {
    const std::optional<space::Configuration> variant = changed(session, configuration, parameter, value);
    if (!variant) continue;
    const Forecast forecast = forecaster(*variant);
    if (forecast.cost) result.push_back({value, {*variant, forecast}});
  }
  return result;
}

std::vector<BatchRow> batch_rows(const session::Session& session, const std::vector<Variant>& variants) {
  std::vector<BatchRow> rows;
  for (const Variant& variant : variants) {
    const space::Configuration& configuration = variant.candidate.configuration;
    rows.push_back({configuration.integer(space::kMicroBatch, 1), configuration.integer(space::kAccumulation, 1),
                    sequences_per_step(session, session::modelled_part(configuration)), variant.candidate.forecast});
  }
  return rows;
}

bool may_run(const BatchRow& row) {
  return !row.forecast.memory || row.forecast.memory->verdict != plan::Verdict::kTooLarge;
}

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

std::optional<MemoryTerms> memory_terms(const session::Session& session, const session::MemoryFilter& filter,
                                        const space::Configuration& configuration) {
  MemoryTerms terms;
  if (filter.is_exact()) {
    const plan::MemoryReport report =
        plan::explain(plan::build_plan(*session.workload, session.cluster, configuration));
    terms.term_bytes = report.term_bytes;
    terms.other_bytes = report.fragmentation_bytes;
    terms.peak = {report.peak_bytes};
    terms.peak_at = report.peak_at;
    return terms;
  }
  const std::optional<cost::MemoryEstimate> estimate = filter.estimate(configuration);
  if (!estimate) return std::nullopt;
  terms.term_bytes = estimate->term_bytes;
  terms.other_bytes = estimate->overhead_bytes;
  terms.peak = estimate->expected;
  terms.peak_at = estimate->peak_at;
  return terms;
}

std::vector<WhatIf> what_ifs(const session::Session& session, const Forecaster& forecaster,
                             const Candidate& candidate) {
  std::vector<WhatIf> answers;
  if (!candidate.forecast.cost) return answers;
  for (const MachineChange& change : kMachineChanges) {
    workload::ClusterSpec cluster = session.cluster;
    if (!change.apply(cluster)) continue;
    const std::optional<cost::StepCost> cost = forecaster.cost_on(cluster, candidate.configuration);
    if (cost) answers.push_back({change.text, candidate.forecast.cost->step_time_s / cost->step_time_s});
  }
  std::stable_sort(answers.begin(), answers.end(), [](const WhatIf& a, const WhatIf& b) { return a.gain > b.gain; });
  return answers;
}

std::vector<Variant> variants(const session::Session& session, const Forecaster& forecaster,
                              const space::Configuration& configuration, const std::string& parameter) {
  const space::Parameter* found = space::find_usual(session.space.parameters(), parameter);
  if (found == nullptr || found->continuous()) return {};
  return variants_of(session, forecaster, configuration, found->name, found->values);
}

BatchAnswer batch_answer(const session::Session& session, const Forecaster& forecaster,
                         const space::Configuration& configuration) {
  BatchAnswer answer;
  const space::Parameter* micro_batch = space::find_usual(session.space.parameters(), space::kMicroBatch);
  const std::vector<space::Value> sizes =
      micro_batch != nullptr && !micro_batch->continuous() ? micro_batch->values : powers_of_two();
  answer.by_micro_batch =
      batch_rows(session, variants_of(session, forecaster, configuration, space::kMicroBatch, sizes));
  mark_plateau(answer.by_micro_batch);
  if (session.workload->train_batch_size) return answer;
  const space::Parameter* accumulation = space::find_usual(session.space.parameters(), space::kAccumulation);
  const std::vector<space::Value> counts =
      accumulation != nullptr && !accumulation->continuous() && accumulation->values.size() > 1 ? accumulation->values
                                                                                                : powers_of_two();
  answer.by_accumulation =
      batch_rows(session, variants_of(session, forecaster, configuration, space::kAccumulation, counts));
  mark_plateau(answer.by_accumulation);
  return answer;
}

ExpectedTime expected_time(const session::Session& session, const PlanStudy& study) {
  ExpectedTime time;
  time.trials = session.budget.trials;
  if (!study.is_sample()) {
    time.trials = std::min(time.trials, study.looked_at() - study.counts.too_large + (session.baseline ? 1 : 0));
  }
  const auto trials = static_cast<double>(time.trials);
  if (const auto stated = runner::trial_time(session.runner)) time.trials_s = trials * stated->total_s();
  if (runner::traits_of(session.runner).runs_programs) time.most_trials_s = trials * runner::timeout_s(session.runner);
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

PlanAnswers answers_of(const session::Session& session, const session::MemoryFilter& filter,
                       const Forecaster& forecaster, const PlanStudy& study) {
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
  const Candidate& analysed = study.analysed_candidate();
  answers.what_ifs = what_ifs(session, forecaster, analysed);
  answers.by_zero_stage = variants(session, forecaster, analysed.configuration, space::kZeroStage);
  answers.by_tensor_parallel = variants(session, forecaster, analysed.configuration, space::kTensorParallel);
  answers.batch = batch_answer(session, forecaster, analysed.configuration);
  return answers;
}

}  // namespace krigtune::forecast
