// A trial succeeds with probability P(x) = E Phi(f(x)): a Gaussian-process classifier whose latent is, in probits (1.7
// logits each),
//
//   f(x) = m(x) + c + d h(x) + w (x - 1/2) + g(x)
//   c ~ Normal(0, 0.6^2),  d ~ Normal(0, (0.25 / 0.15)^2),  w_i ~ Normal(0, 1.2^2),  g ~ GP(0, 1.2^2 Matern52, l = 0.5)
//
// m is the prediction from memory. If that is unknown, m = 1.17 (88 %) with the slopes of the rules of thumb
// (forecast/prior.cpp) for parameters that have their usual names. In sessions that describe no job and whose names
// say nothing about one, a second model decides what fits from the first trial out of memory on (learned_memory.cpp):
// P is the product of both, and f, without slopes, learns from all other trials. Where the job is described but not the
// machine, this found a best that was 8 % worse in 60 trials (tests/e2e/jobs_standins.sh), with 5 instead of 18
// failures: so it is not used there. For programs other than krigtune-bench
//
//   m(x) = min(margin(x), 1.76)     margin: MemoryMargins                         (1.76: 96 %; other things fail too)
//
// and h = 1 where m is below 1.76. d is the error that all planned peaks share: a quarter of a nat, in units of the
// stddev of 0.15. One failure where memory was tight makes all configurations that are as tight less probable. If the
// session describes the model and a trial says that it ran out of memory, h = 0: the margins have learned that error
// from the trial already, part by part (cost/memory/memory_shape.h), and d would learn it a second time. Failures
// are mostly a matter of direction (more of one parameter, less of another), which w learns from two failures.
//
// The memory margin of a plan is the mean of one latent for all failures, not a factor of its own. Programs seldom say
// why they failed (the tables of experiments/data never do), so a failure of unknown cause is attributed to each cause
// by its probability. Trials out of memory are failures of that latent as well: if planned peaks are a third too low,
// this saves 3 failures of the first 20 on the simulated clusters (docs/search.md).
//
// The bench runner's plan is exact to the byte, so configurations that do not fit are never candidates, and m = 1.65
// (95 %) because other things fail. If a trial runs out of memory all the same, the device has less than was stated:
// the smallest planned peak that failed bounds it from above (a censored observation of the wall), the largest that ran
// bounds it from below, and
//
//   m(x) = min(log(wall / memory(x)) / 0.15, 1.65)  below it: a normal error of 15 % of log memory,
//   m(x) = -5                                       at and above it: planned bytes are exact, so as many must fail,
//
// unless something larger did run: then the planned peak does not decide, and the first line applies everywhere.
#include "search/model/trial_success.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "forecast/prior.h"
#include "krigtune/surrogate/success_model.h"
#include "search/model/relevant_trials.h"

namespace krigtune::search {

// The plans of other programs have errors, with factors that all configurations share (cost/memory/memory_shape.h). A
// measured peak is one observation of these factors; a trial that ran without reporting its peak shows that it needed
// no more than the available memory, and one that ran out of memory that it needed more. A failure for an unknown
// reason is not used here: TrialSuccess attributes it to the possible reasons.

namespace {

std::optional<cost::MemoryEvidence> evidence_of(const trial::Outcome& outcome,
                                                const plan::MemoryVerdict::Spread& planned) {
  using Shows = cost::MemoryEvidence::Shows;
  const auto usable = static_cast<double>(planned.usable.count);
  const auto* measured = std::get_if<trial::Measured>(&outcome);
  if (measured != nullptr && measured->peak_memory && measured->peak_memory->count > 0) {
    return cost::MemoryEvidence{planned.moments, Shows::kPeak, static_cast<double>(measured->peak_memory->count)};
  }
  if (trial::ran(outcome)) return cost::MemoryEvidence{planned.moments, Shows::kRan, usable};
  if (trial::ran_out_of_memory(outcome)) return cost::MemoryEvidence{planned.moments, Shows::kRanOut, usable};
  return std::nullopt;
}

}  // namespace

std::optional<cost::MemoryShape> learned_shape(const std::vector<const trial::Outcome*>& outcomes,
                                               const std::vector<std::optional<plan::MemoryVerdict>>& memory) {
  std::vector<cost::MemoryEvidence> evidence;
  double log_stddev = 0.0;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (!memory[i] || !memory[i]->spread || memory[i]->spread->moments.empty()) continue;
    std::optional<cost::MemoryEvidence> shown = evidence_of(*outcomes[i], *memory[i]->spread);
    if (!shown) continue;
    log_stddev = memory[i]->spread->own_log_stddev;
    evidence.push_back(*std::move(shown));
  }
  if (evidence.empty()) return std::nullopt;
  cost::MemoryShape shape(log_stddev);
  shape.learn(evidence);
  return shape;
}

namespace {

double margin_of(const plan::MemoryVerdict& memory, const std::optional<cost::MemoryShape>& shape) {
  constexpr double kLeastProbability = 1e-9;
  // Models that state no spread answer only yes or no.
  if (!memory.spread)
    return surrogate::probit(std::clamp(memory.probability_fits, kLeastProbability, 1.0 - kLeastProbability));
  if (!shape || memory.spread->moments.empty()) return memory.spread->margin;
  const cost::MemoryShape::LogBytes needed = shape->needed(memory.spread->moments);
  return (std::log(static_cast<double>(memory.spread->usable.count)) - needed.mean) / needed.stddev;
}

}  // namespace

Eigen::VectorXd margins_of(const std::vector<std::optional<plan::MemoryVerdict>>& memory,
                           const std::optional<cost::MemoryShape>& shape) {
  Eigen::VectorXd margins(static_cast<Eigen::Index>(memory.size()));
  for (Eigen::Index i = 0; i < margins.size(); ++i) {
    const std::optional<plan::MemoryVerdict>& of = memory[static_cast<std::size_t>(i)];
    margins(i) = of ? margin_of(*of, shape) : 0.0;
  }
  return margins;
}

MemoryMargins::MemoryMargins(const Candidates& candidates, const History& history) {
  if (candidates.filter().is_exact()) return;
  std::vector<const trial::Outcome*> outcomes;
  std::vector<std::optional<plan::MemoryVerdict>> memory;
  for (const journal::Trial& trial : history) {
    if (!trial.outcome || !counts(trial)) continue;
    outcomes.push_back(&*trial.outcome);
    memory.push_back(candidates.memory_of(trial.proposal.configuration));
  }
  shape_ = learned_shape(outcomes, memory);
}

Eigen::VectorXd MemoryMargins::at(const std::vector<std::optional<plan::MemoryVerdict>>& memory) const {
  return margins_of(memory, shape_);
}

namespace {

constexpr double kPriorMean = 1.17;
constexpr double kMostMean = 1.76;
constexpr double kPlannedMean = 1.65;
constexpr double kLogMemoryError = 0.15;
constexpr double kCannotRunMean = -5.0;

surrogate::SuccessOptions success_options() {
  surrogate::SuccessOptions options;
  options.signal_stddev = 1.2;
  options.lengthscale = 0.5;
  options.slope_stddev = 1.2;
  options.shift_stddevs = {0.25 / kLogMemoryError};
  return options;
}

// Returns one slope per column.
Eigen::VectorXd rules_of_thumb(const std::vector<std::string>& names) {
  Eigen::VectorXd slopes = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(names.size()));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const space::RuleOfThumb* rule = forecast::rule_of_thumb(names[i]);
    if (rule != nullptr) slopes(static_cast<Eigen::Index>(i)) = rule->success_slope;
  }
  return slopes;
}

}  // namespace

TrialSuccess::TrialSuccess(const Candidates& candidates, const History& history, const MemoryOf& memory_of)
    : candidates_(candidates),
      margins_(candidates, history),
      memory_(candidates, memory_of || candidates.space().facts().well_known ? History() : history),
      model_(surrogate::make_kernel(surrogate::KernelKind::kMatern52), success_options()) {
  if (!candidates.filter().knows_memory() && !memory_of && !memory_.knows()) {
    slopes_ = rules_of_thumb(candidates.ordered_names());
  }
  if (candidates.filter().is_exact()) read_walls(history);
  fit(history, memory_of);
}

void TrialSuccess::read_walls(const History& history) {
  double most_that_ran = 0.0;
  for (const journal::Trial& trial : history) {
    if (!trial.outcome || !counts(trial)) continue;
    const std::optional<plan::MemoryVerdict> memory = candidates_.memory_of(trial.proposal.configuration);
    if (!memory) continue;
    const auto bytes = static_cast<double>(memory->predicted.count);
    if (trial::ran_out_of_memory(*trial.outcome)) memory_wall_ = std::min(memory_wall_.value_or(bytes), bytes);
    if (trial::ran(*trial.outcome)) most_that_ran = std::max(most_that_ran, bytes);
  }
  wall_is_sharp_ = memory_wall_ && most_that_ran < *memory_wall_;
  if (memory_wall_) memory_wall_ = std::max(*memory_wall_, most_that_ran);
}

double TrialSuccess::planned_mean(const std::optional<plan::MemoryVerdict>& memory) const {
  if (!memory) return kPriorMean;
  if (!memory_wall_) return kPlannedMean;
  const auto bytes = static_cast<double>(memory->predicted.count);
  if (wall_is_sharp_ && bytes >= *memory_wall_) return kCannotRunMean;
  return std::min(std::log(*memory_wall_ / bytes) / kLogMemoryError, kPlannedMean);
}

Eigen::MatrixXd TrialSuccess::prior(const surrogate::Points& points,
                                    const std::vector<std::optional<plan::MemoryVerdict>>& memory) const {
  Eigen::MatrixXd prior = Eigen::MatrixXd::Zero(points.size(), 2);
  const bool is_exact = candidates_.filter().is_exact();
  const Eigen::VectorXd margin = is_exact ? Eigen::VectorXd() : margins_.at(memory);
  for (Eigen::Index i = 0; i < prior.rows(); ++i) {
    const std::optional<plan::MemoryVerdict>& of = memory[static_cast<std::size_t>(i)];
    prior(i, 0) = is_exact || !of ? planned_mean(of) : std::min(margin(i), kMostMean);
    prior(i, 1) = !is_exact && !knows_shared_error_ && of && margin(i) < kMostMean ? 1.0 : 0.0;
  }
  prior.col(0) += (points.ordered.leftCols(slopes_.size()).array() - 0.5).matrix() * slopes_;
  return prior;
}

// Selects representative trials of many: the last quarter of the allowed number, which are near the current search, and
// as many failures as successes that fill the gaps among their kind. Expectation propagation takes time cubic in the
// number of its sites.
namespace {

std::vector<Eigen::Index> telling_rows(const surrogate::Points& points, const std::vector<bool>& succeeded) {
  const Eigen::Index count = points.size();
  std::vector<Eigen::Index> rows = other_rows({}, count);
  if (count <= kMostExact) return rows;
  constexpr Eigen::Index kLast = kMostExact / 4;
  std::vector<Eigen::Index> chosen(rows.end() - kLast, rows.end());
  std::vector<Eigen::Index> failed;
  std::vector<Eigen::Index> ran;
  for (Eigen::Index row = 0; row < count - kLast; ++row) {
    (succeeded[static_cast<std::size_t>(row)] ? ran : failed).push_back(row);
  }
  const auto add = [&](const std::vector<Eigen::Index>& from, Eigen::Index most) {
    for (const Eigen::Index row : spread_rows(points.rows(from), most)) {
      chosen.push_back(from[static_cast<std::size_t>(row)]);
    }
  };
  // If there are few of one kind, there is room for more of the other.
  const Eigen::Index left = kMostExact - kLast;
  const auto of_failed = static_cast<Eigen::Index>(failed.size());
  const auto of_ran = static_cast<Eigen::Index>(ran.size());
  const Eigen::Index taken = std::min(of_failed, std::max(left / 2, left - of_ran));
  add(failed, taken);
  add(ran, left - taken);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace

std::size_t fingerprint_of_outcomes(const Candidates& candidates, const History& history) {
  std::size_t fingerprint = 0;
  const auto add = [&](std::size_t word) {  // like Boost's hash_combine
    fingerprint ^= word + 0x9e3779b97f4a7c15U + (fingerprint << 12U) + (fingerprint >> 4U);
  };
  for (const journal::Trial& trial : history) {
    if (!trial.outcome || !counts(trial)) continue;
    add(std::hash<std::string>()(candidates.key(trial.proposal.configuration)));
    add(trial.outcome->index());
    add(trial::ran(*trial.outcome) ? 1 : trial::is_unforeseen_failure(*trial.outcome) ? 2 : 3);
    const auto* measured = std::get_if<trial::Measured>(&*trial.outcome);
    if (measured != nullptr && measured->peak_memory) add(static_cast<std::size_t>(measured->peak_memory->count));
  }
  return fingerprint;
}

void TrialSuccess::fit(const History& history, const MemoryOf& memory_of) {
  std::vector<space::Configuration> configurations;
  std::vector<bool> succeeded;
  for (const journal::Trial& trial : history) {
    if (!trial.outcome || !counts(trial) ||
        (!trial::ran(*trial.outcome) && !trial::is_unforeseen_failure(*trial.outcome)))
      continue;
    has_failures_ = has_failures_ || trial::is_unforeseen_failure(*trial.outcome);
    if (trial::ran_out_of_memory(*trial.outcome)) {
      if (memory_.knows()) continue;
      knows_shared_error_ = candidates_.filter().knows_memory();
    }
    configurations.push_back(trial.proposal.configuration);
    succeeded.push_back(trial::ran(*trial.outcome));
  }
  const surrogate::Points all = candidates_.encode(configurations);
  const std::vector<Eigen::Index> rows = telling_rows(all, succeeded);
  std::vector<bool> outcomes;
  std::vector<space::Configuration> chosen;
  for (const Eigen::Index row : rows) {
    const auto i = static_cast<std::size_t>(row);
    outcomes.push_back(succeeded[i]);
    chosen.push_back(configurations[i]);
  }
  std::vector<std::optional<plan::MemoryVerdict>> memory;
  if (memory_of) memory = memory_of(chosen);
  for (std::size_t i = 0; i < chosen.size() && !memory_of; ++i) memory.push_back(candidates_.memory_of(chosen[i]));
  const surrogate::Points points = all.rows(rows);
  model_.fit(points, prior(points, memory), outcomes);
}

Eigen::VectorXd TrialSuccess::probability(const surrogate::Points& points,
                                          const std::vector<std::optional<plan::MemoryVerdict>>& memory) const {
  const Eigen::VectorXd probability = model_.probability(points, prior(points, memory));
  return memory_.knows() ? probability.cwiseProduct(memory_.probability(points)) : probability;
}

}  // namespace krigtune::search
