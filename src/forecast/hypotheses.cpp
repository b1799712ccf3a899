#include "forecast/hypotheses.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <tuple>
#include <utility>
#include <variant>

#include "core/statistics.h"
#include "cost/framework.h"
#include "cost/memory/memory_model.h"
#include "cost/time/step_cost.h"
#include "forecast/archetypes.h"
#include "forecast/forecast.h"
#include "forecast/kept_models.h"
#include "forecast/kept_predictions.h"
#include "forecast/prior.h"
#include "forecast/shared_steps.h"
#include "schedule/knobs.h"
#include "session/goodput.h"
#include "trial/outcome.h"

namespace krigtune::forecast {
namespace {

// Links that take this many times as long as assumed, because they are congested or fewer; or better links. Networks
// often miss their data sheets by a factor of two (experiments/data/interconnects.csv), rarely by four.
struct Links {
  double times;
  double probability;
};
constexpr std::array<Links, 5> kLinks{{{1.0, 0.6}, {0.5, 0.13}, {2.0, 0.13}, {0.25, 0.07}, {4.0, 0.07}}};

// Of the hypothesis without physics.
constexpr double kNoStep = 0.15;
constexpr double kNoStepIfTold = 0.03;
constexpr double kNoStepIfNamesSayNothing = 0.25;

// Standard deviations of what all measured values have in common, measured over predicted.
constexpr double kLevelOnKnownCluster = 0.5;
constexpr double kLevelOnUnknownCluster = 1.0;

constexpr int kTypicalSamples = 24;
constexpr std::size_t kMostValuesKept = 1'000'000;
constexpr std::size_t kMostVerdictsKept = 200'000;
// Predictions of models that are kept, of times and of memory each: some hundred megabytes.
constexpr std::size_t kMostUsesKept = 100'000;
constexpr std::size_t kFewUses = 50;

// Of 16 to 18 bytes for a parameter (Rajbhandari et al. 2020, section 3.1) only the 2 of its 16-bit value remain, and
// adapters of a hundredth of the parameters have gradients.
constexpr double kStatesOfAdapters = 0.15;
constexpr double kGradientsOfAdapters = 0.02;

void leave_only_adapters(plan::MemoryVerdict& verdict) {
  if (!verdict.spread || verdict.spread->moments.empty()) return;
  double peak = 0.0;
  double allocated = 0.0;
  for (plan::MemoryParts& parts : verdict.spread->moments) {
    parts[static_cast<std::size_t>(plan::MemoryPart::kStates)] *= kStatesOfAdapters;
    parts[static_cast<std::size_t>(plan::MemoryPart::kGradients)] *= kGradientsOfAdapters;
    const double differences =
        (parts[static_cast<std::size_t>(plan::MemoryPart::kShardedGradients)] *= kGradientsOfAdapters) +
        parts[static_cast<std::size_t>(plan::MemoryPart::kOtherSplit)];
    const double sum = std::accumulate(parts.begin(), parts.end(), -differences);
    peak = std::max(peak, sum);
    allocated = std::max(allocated, sum - parts[static_cast<std::size_t>(plan::MemoryPart::kOverhead)]);
  }
  plan::MemoryVerdict::Spread& spread = *verdict.spread;
  spread.allocated = Bytes{static_cast<std::int64_t>(allocated)};
  spread.margin = std::log(static_cast<double>(spread.usable.count) / peak) / spread.log_stddev;
  verdict.predicted = Bytes{static_cast<std::int64_t>(peak)};
  verdict.probability_fits = normal_cdf(spread.margin);
  constexpr double kCannotFit = -5.0;
  verdict.verdict = spread.margin < kCannotFit ? plan::Verdict::kTooLarge : plan::Verdict::kUncertain;
}

std::vector<std::size_t> numbers_of(const std::vector<std::size_t>& numbers, const std::vector<std::size_t>& of) {
  std::vector<std::size_t> some;
  for (const std::size_t one : of) some.push_back(numbers[one]);
  return some;
}

}  // namespace

struct Hypotheses::Impl {
  Impl(const session::Session& the_session, const session::MemoryFilter& the_filter, std::vector<JobGuess> guesses)
      : session(the_session), filter(the_filter), jobs(std::move(guesses)), rules(make_rules_of_thumb(the_session)) {
    const trial::Metric* metric = session::metric_of(session.objective);
    kind = metric->kind;
    Rng rng(0, 0);
    for (int i = 0; i < kTypicalSamples && !session.space.is_empty(); ++i) {
      samples.push_back(session.space.sample(rng));
    }
    const double no_step = guesses_roles()    ? kNoStepIfNamesSayNothing
                           : !rules           ? 0.0
                           : session.workload ? kNoStepIfTold
                                              : kNoStep;
    for (std::size_t job = 0; job < jobs.size(); ++job) add(job, (1.0 - no_step) * jobs[job].probability);
    if (no_step > 0.0) all.push_back({std::nullopt, 1.0, no_step});
    number_models();
    number_meanings();
    values = std::make_unique<KeptPredictions<std::optional<double>>>(all.size(), kMostValuesKept);
    verdicts = std::make_unique<KeptPredictions<std::optional<plan::MemoryVerdict>>>(jobs.size(), kMostVerdictsKept);
    typicals.resize(all.size());
    steps = std::make_unique<KeptModels<cost::StepCostModel>>(all.size(), kMostUsesKept, kFewUses);
    memories = std::make_unique<KeptModels<cost::MemoryModel>>(jobs.size(), kMostUsesKept, kFewUses);
  }

  void add(std::size_t job, double probability) {
    if (jobs[job].cluster.ranks() == 1 || guesses_roles()) {
      all.push_back({job, 1.0, probability});
      return;
    }
    for (const Links& links : kLinks) all.push_back({job, links.times, probability * links.probability});
  }

  // Jobs that differ in what the parameters mean share their models.
  void number_models() {
    for (const JobGuess& job : jobs) memory_numbers.push_back(job.physics);
    std::map<std::pair<std::size_t, double>, std::size_t> of_links;
    for (const Hypothesis& one : all) {
      const std::pair<std::size_t, double> key{one.job ? memory_numbers[*one.job] : 0, one.link_times};
      step_numbers.push_back(one.job ? of_links.emplace(key, of_links.size()).first->second : 0);
    }
    std::map<std::tuple<std::size_t, bool, bool>, std::size_t> of_verdicts;
    for (std::size_t job = 0; job < jobs.size(); ++job) {
      const std::tuple key{memory_numbers[job], jobs[job].is_told, jobs[job].trains_adapters};
      verdict_numbers.push_back(of_verdicts.emplace(key, of_verdicts.size()).first->second);
    }
  }

  void number_meanings() {
    std::map<Roles, std::size_t> of_roles;
    std::vector<Roles> meanings;
    for (const JobGuess& job : jobs) {
      const auto [its, is_new] = of_roles.emplace(job.roles, meanings.size());
      if (is_new) meanings.push_back(job.roles);
      meaning_numbers.push_back(its->second);
    }
    shared = std::make_unique<SharedSteps>(std::move(meanings), session.workload.has_value());
  }

  // Returns one row for each of the jobs: its steps for the configurations.
  std::vector<std::vector<std::uint32_t>> steps_of(const std::vector<std::size_t>& jobs_asked,
                                                   const std::vector<space::Configuration>& configurations) const {
    return shared->of(numbers_of(meaning_numbers, jobs_asked), configurations);
  }

  bool guesses_roles() const { return !jobs.front().roles.empty(); }

  std::shared_ptr<const cost::StepCostModel> step(std::size_t hypothesis) const {
    return steps->of(step_numbers[hypothesis], [&] {
      cost::TimeCalibration calibration;
      calibration.collectives = all[hypothesis].link_times;
      const JobGuess& job = jobs[*all[hypothesis].job];
      return std::make_shared<const cost::StepCostModel>(job.workload, job.cluster, calibration, plans);
    });
  }

  // Empty if the step is not modelled.
  std::optional<double> log_value(std::size_t hypothesis, const space::Configuration& step_configuration) const {
    const JobGuess& job = jobs[*all[hypothesis].job];
    const std::optional<cost::StepCost> cost = step(hypothesis)->if_modelled(step_configuration);
    if (!cost) return std::nullopt;
    const auto knobs = schedule::knobs_of(job.workload, job.cluster, step_configuration);
    const auto* known = std::get_if<schedule::Knobs>(&knobs);
    if (known == nullptr) return std::nullopt;
    const auto batch = static_cast<double>(known->sequences());
    const auto& noise = session.objective.gradient_noise;
    const double sequences = kind == trial::MetricKind::kLatency ? 1.0 : batch;
    const double tokens =
        kind == trial::MetricKind::kTokensPerSecond ? static_cast<double>(job.workload.model.seq_len) : 1.0;
    return std::log(sequences * tokens / cost->step_time_s *
                    (noise ? session::statistical_efficiency(*noise, batch) : 1.0));
  }

  // Returns one row for each of the hypotheses, all with physics. Hypotheses that differ in what the parameters mean
  // share the predictions of the steps that they have in common.
  std::vector<std::vector<std::optional<double>>> log_values(
      const std::vector<std::size_t>& hypotheses, const std::vector<space::Configuration>& configurations) const {
    std::vector<std::size_t> of_jobs;
    for (const std::size_t one : hypotheses) of_jobs.push_back(*all[one].job);
    const std::vector<std::vector<std::uint32_t>> its_steps = steps_of(of_jobs, configurations);
    std::vector<KeptPredictions<std::optional<double>>::Query> queries;
    for (std::size_t i = 0; i < hypotheses.size(); ++i) {
      queries.push_back({step_numbers[hypotheses[i]], &its_steps[i]});
    }
    return values->of(queries, [&](std::size_t row, std::size_t i) {
      return log_value(hypotheses[row], shared->step(meaning_numbers[of_jobs[row]], configurations[i]));
    });
  }

  // The median of a sample, for configurations that are not modelled; 0 if nothing is.
  double typical(std::size_t hypothesis) const {
    {
      const std::lock_guard lock(mutex);
      if (typicals[hypothesis]) return *typicals[hypothesis];
    }
    std::vector<double> known;
    const std::vector<std::optional<double>> of_samples = log_values({hypothesis}, samples).front();
    for (const std::optional<double>& value : of_samples) {
      if (value) known.push_back(*value);
    }
    const double typical = known.empty() ? 0.0 : median(std::move(known));
    const std::lock_guard lock(mutex);
    typicals[hypothesis] = typical;
    return typical;
  }

  std::shared_ptr<const cost::MemoryModel> memory_of(std::size_t job) const {
    return memories->of(memory_numbers[job], [&] {
      return std::make_shared<const cost::MemoryModel>(jobs[job].workload, jobs[job].cluster, session.memory);
    });
  }

  Bytes usable(std::size_t job) const {
    if (session.usable_per_rank) return *session.usable_per_rank;
    const auto limit = static_cast<double>(workload::memory_limit_per_rank(session.memory, jobs[job].cluster).count);
    return Bytes{static_cast<std::int64_t>(limit * (1.0 - session.memory.reserve_fraction))};
  }

  session::Session session;
  const session::MemoryFilter& filter;
  std::vector<JobGuess> jobs;
  std::shared_ptr<const Prior> rules;
  trial::MetricKind kind{};
  std::vector<space::Configuration> samples;
  std::vector<Hypothesis> all;
  std::shared_ptr<cost::BlockPlans> plans = std::make_shared<cost::BlockPlans>();
  std::unique_ptr<KeptPredictions<std::optional<double>>> values;  ///< of the models in `steps`
  std::unique_ptr<KeptPredictions<std::optional<plan::MemoryVerdict>>> verdicts;
  std::vector<std::size_t> step_numbers;     ///< of the models in `steps`, by hypothesis
  std::vector<std::size_t> memory_numbers;   ///< of the models in `memories`, by job
  std::vector<std::size_t> verdict_numbers;  ///< of the predictors in `verdicts`, by job
  std::vector<std::size_t> meaning_numbers;  ///< in `shared`, by job
  std::unique_ptr<SharedSteps> shared;
  std::unique_ptr<KeptModels<cost::StepCostModel>> steps;
  std::unique_ptr<KeptModels<cost::MemoryModel>> memories;
  mutable std::mutex mutex;  // protects the member below
  mutable std::vector<std::optional<double>> typicals;
};

std::shared_ptr<const Hypotheses> Hypotheses::of(const session::Session& session, const session::MemoryFilter& filter) {
  if (session::metric_of(session.objective) == nullptr) return nullptr;
  if (session.workload && !Forecaster(session, filter).knows_time()) return nullptr;
  std::vector<JobGuess> guesses = session.workload ? around_the_told_job(session) : usual_jobs(session);
  if (guesses.empty()) return nullptr;
  auto hypotheses = std::make_shared<const Hypotheses>(std::make_unique<Impl>(session, filter, std::move(guesses)));
  if (!session.workload) return hypotheses;
  // The told job must say something at all.
  const Impl& impl = *hypotheses->impl_;
  const std::vector<std::optional<double>> said = impl.log_values({0}, impl.samples).front();
  const bool says = std::any_of(said.begin(), said.end(), [](const std::optional<double>& one) { return !!one; });
  return says ? hypotheses : nullptr;
}

Hypotheses::Hypotheses(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Hypotheses::~Hypotheses() = default;

const std::vector<Hypothesis>& Hypotheses::all() const { return impl_->all; }
std::size_t Hypotheses::jobs() const { return impl_->jobs.size(); }
const workload::Workload& Hypotheses::workload(std::size_t job) const { return impl_->jobs[job].workload; }
const workload::ClusterSpec& Hypotheses::cluster(std::size_t job) const { return impl_->jobs[job].cluster; }
bool Hypotheses::guess_roles() const { return impl_->guesses_roles(); }
const Roles& Hypotheses::roles(std::size_t job) const { return impl_->jobs[job].roles; }
bool Hypotheses::is_told(std::size_t job) const { return impl_->jobs[job].is_told; }
bool Hypotheses::has_told_model(std::size_t job) const {
  return is_told(0) && !trains_adapters(job) && workload(job).model == workload(0).model;
}
bool Hypotheses::trains_adapters(std::size_t job) const { return impl_->jobs[job].trains_adapters; }
const char* Hypotheses::framework_name(std::size_t job) const { return cost::traits_of(workload(job).framework).name; }
bool Hypotheses::know_memory() const { return !impl_->session.workload || impl_->filter.knows_memory(); }

bool Hypotheses::doubt_memory() const {
  return impl_->session.workload.has_value() && impl_->jobs.size() > 1 && know_memory();
}

bool Hypotheses::may_fit(const space::Configuration& configuration) const {
  for (std::size_t job = 0; job < jobs(); ++job) {
    const std::optional<plan::MemoryVerdict> verdict = memory({job}, {configuration}).front().front();
    if (!verdict || verdict->verdict != plan::Verdict::kTooLarge) return true;
  }
  return false;
}

std::size_t Hypotheses::predictions() const { return impl_->values->made() + impl_->verdicts->made(); }

std::optional<double> Hypotheses::level_stddev() const {
  using trial::MetricKind;
  if (!session::has_unit_of_metric(impl_->session.objective)) return std::nullopt;
  if (impl_->kind != MetricKind::kThroughput && impl_->kind != MetricKind::kTokensPerSecond &&
      impl_->kind != MetricKind::kLatency) {
    return std::nullopt;
  }
  const bool known = impl_->session.cluster.device.has_value() || impl_->session.cluster.measured.has_value();
  return known ? kLevelOnKnownCluster : kLevelOnUnknownCluster;
}

Eigen::MatrixXd Hypotheses::log_values(const std::vector<std::size_t>& hypotheses,
                                       const std::vector<space::Configuration>& configurations) const {
  std::vector<std::size_t> with_physics;
  std::vector<Eigen::Index> columns;
  Eigen::MatrixXd values(static_cast<Eigen::Index>(configurations.size()),
                         static_cast<Eigen::Index>(hypotheses.size()));
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    const auto column = static_cast<Eigen::Index>(i);
    if (impl_->all[hypotheses[i]].job) {
      with_physics.push_back(hypotheses[i]);
      columns.push_back(column);
    } else if (impl_->rules) {
      values.col(column) = impl_->rules->log_values(configurations);
    } else {
      values.col(column).setZero();
    }
  }
  const auto rows = impl_->log_values(with_physics, configurations);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool are_modelled = std::all_of(rows[i].begin(), rows[i].end(), [](const auto& value) { return !!value; });
    const double typical = are_modelled ? 0.0 : impl_->typical(with_physics[i]);
    for (Eigen::Index row = 0; row < values.rows(); ++row) {
      values(row, columns[i]) = rows[i][static_cast<std::size_t>(row)].value_or(typical);
    }
  }
  impl_->steps->keep(numbers_of(impl_->step_numbers, with_physics));
  return values;
}

std::vector<std::vector<std::optional<plan::MemoryVerdict>>> Hypotheses::memory(
    const std::vector<std::size_t>& jobs, const std::vector<space::Configuration>& configurations) const {
  if (impl_->session.workload && !impl_->filter.knows_memory()) {
    return {jobs.size(), std::vector<std::optional<plan::MemoryVerdict>>(configurations.size())};
  }
  const std::vector<std::vector<std::uint32_t>> its_steps = impl_->steps_of(jobs, configurations);
  std::vector<KeptPredictions<std::optional<plan::MemoryVerdict>>::Query> queries;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    queries.push_back({impl_->verdict_numbers[jobs[i]], &its_steps[i]});
  }
  auto verdicts = impl_->verdicts->of(queries, [&](std::size_t row, std::size_t i) {
    const JobGuess& guess = impl_->jobs[jobs[row]];
    if (guess.is_told) return impl_->filter.check(configurations[i]);
    constexpr Bytes kAnyHost{std::numeric_limits<std::int64_t>::max()};
    std::optional<plan::MemoryVerdict> verdict = impl_->memory_of(jobs[row])->verdict_if_modelled(
        impl_->shared->step(impl_->meaning_numbers[jobs[row]], configurations[i]), impl_->usable(jobs[row]), kAnyHost);
    if (verdict && guess.trains_adapters) leave_only_adapters(*verdict);
    return verdict;
  });
  impl_->memories->keep(numbers_of(impl_->memory_numbers, jobs));
  return verdicts;
}

}  // namespace krigtune::forecast
