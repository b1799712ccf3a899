// Bayesian optimisation over a list of candidates.
//
//   without any value:  a(x) = prior value + log P(x), so the best prediction is first and there is no initial design
//   without priors, and fewer than three trials after the baseline:  the farthest point (maximin distance in the
//   encoded
//     space)
//   otherwise:  a(x) = log EI(x) over the largest posterior mean among the measured (Ament et al. 2023)
//   after a failure, or if it is uncertain what fits in memory:
//     a(x) = L' + log P(x),  L' = logaddexp(log EI, log 0.01) + 0.001 log EI,   only where P is not far below P_safe
//
// If P starts from planned memory, the plans may be wrong for all configurations of a job. Then P_safe is the largest P
// among the candidates that promise something (P EI >= 0.3 %), and half of it is enough: safe candidates hold back
// risky ones only as long as they promise something themselves. If P is learned from failures alone (or plans are
// exact), it is reliable: P_safe is the largest P of all remaining candidates, and two thirds of it are required.
//
// search/model/objective_model.cpp models the values and search/model/trial_success.cpp models P; docs/search.md
// explains both. The floor of 1 % gain keeps a search that has found its optimum from trying risky corners for
// improvements that do not matter, as plain log EI + log P would.
//
// With limits of measured metrics, P(x) is also the probability that x is within them (search/model/limit_models.cpp),
// the largest posterior mean is that of what was measured within them, and while nothing was, P(x) alone decides.
//
// If trials differ in duration, a(x) is per second of trial (search/model/trial_cost.cpp). If measurements are noisy,
// the best measured configuration or its rival is measured again as soon as that is expected to gain more for the
// recommendation than the new candidate (search/model/outlook.cpp).
#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/statistics.h"
#include "krigtune/surrogate/acquisition.h"
#include "search/candidates/candidate_list.h"
#include "search/candidates/candidates.h"
#include "search/model/limit_models.h"
#include "search/model/outlook.h"
#include "search/model/relevant_trials.h"
#include "search/model/trial_cost.h"
#include "search/strategies/choice.h"
#include "search/strategies/pareto_strategy.h"
#include "search/strategies/strategy.h"
#include "search/trials/history.h"

namespace krigtune::search {

// The first trials of a search without prior knowledge.

/// Returns the allowed candidate with the largest score; `rng` decides among equals. There must be one.
std::size_t largest_or_draw(const Eigen::VectorXd& scores, const std::vector<bool>& allowed, Rng& rng);

/// Returns the candidate (a row of `points`) that is farthest from everything asked in the encoded space, where a
/// differing category counts as a whole axis; the first one is the nearest to the middle. Only a random half of the
/// allowed ones is considered, so that the design depends on the seed and no single far corner is in every design. At
/// least one must be allowed.
std::size_t farthest_candidate(const Candidates& candidates, const History& history, const surrogate::Points& points,
                               const std::vector<bool>& allowed, Rng& rng);

namespace {

constexpr double kDistanceTie = 1e-9;

int most_frequent(const Eigen::VectorXi& values) {
  std::vector<int> counts(static_cast<std::size_t>(values.maxCoeff()) + 1, 0);
  for (const int value : values) ++counts[static_cast<std::size_t>(value)];
  return static_cast<int>(std::max_element(counts.begin(), counts.end()) - counts.begin());
}

// Returns the middle of the candidates, column by column; it need not be one of them.
surrogate::Points middle_of(const surrogate::Points& points) {
  surrogate::Points middle = surrogate::Points::zero(1, points.ordered.cols(), points.categories.cols());
  for (Eigen::Index column = 0; column < points.ordered.cols(); ++column) {
    const auto values = points.ordered.col(column);
    middle.ordered(0, column) = median({values.begin(), values.end()});
  }
  for (Eigen::Index column = 0; column < points.categories.cols(); ++column) {
    middle.categories(0, column) = most_frequent(points.categories.col(column));
  }
  return middle;
}

// Returns at least one of the allowed ones; there must be one.
std::vector<bool> random_half(const std::vector<bool>& allowed, Rng& rng) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    if (allowed[i]) indices.push_back(i);
  }
  rng.shuffle(indices);
  std::vector<bool> half(allowed.size(), false);
  for (std::size_t i = 0; i < (indices.size() + 1) / 2; ++i) half[indices[i]] = true;
  return half;
}

}  // namespace

std::size_t largest_or_draw(const Eigen::VectorXd& scores, const std::vector<bool>& allowed, Rng& rng) {
  std::vector<std::size_t> best;
  double best_score = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    if (!allowed[i]) continue;
    const double score = scores(static_cast<Eigen::Index>(i));
    if (score > best_score + kDistanceTie) best.clear();
    if (score >= best_score - kDistanceTie) best.push_back(i);
    best_score = std::max(best_score, score);
  }
  return best[rng.below(best.size())];
}

std::size_t farthest_candidate(const Candidates& candidates, const History& history, const surrogate::Points& points,
                               const std::vector<bool>& all_allowed, Rng& rng) {
  const std::vector<bool> allowed = random_half(all_allowed, rng);
  std::vector<space::Configuration> asked;
  for (const journal::Trial& trial : history) {
    if (counts(trial)) asked.push_back(trial.proposal.configuration);
  }
  if (asked.empty()) return largest_or_draw(-squared_distances(points, middle_of(points), 0), allowed, rng);
  const surrogate::Points seen = candidates.encode(asked);
  Eigen::VectorXd nearest = Eigen::VectorXd::Constant(points.size(), std::numeric_limits<double>::max());
  for (Eigen::Index row = 0; row < seen.size(); ++row) {
    nearest = nearest.cwiseMin(squared_distances(points, seen, row));
  }
  return largest_or_draw(nearest, allowed, rng);
}

namespace {

constexpr double kTie = 1e-9;       // in log units; below it the earlier candidate is chosen
constexpr double kPromise = 0.003;  // a gain that is worth a trial: the default of budget.least_gain
constexpr double kGainFloor = 0.01;
constexpr double kFloorSlope = 0.001;
constexpr std::uint64_t kLimitStreams = std::uint64_t{3} << 60;  // streams of random numbers that no trial uses
constexpr double kLeastRepeatGain = 0.001;                       // a smaller gain is not worth a trial

double log_add_exp(double a, double b) {
  const double larger = std::max(a, b);
  return larger + std::log1p(std::exp(std::min(a, b) - larger));
}

bool same_outcome(const trial::Outcome& a, const trial::Outcome& b) {
  if (a.index() != b.index()) return false;
  if (const auto* failed = std::get_if<trial::Failed>(&a)) return failed->reason == std::get<trial::Failed>(b).reason;
  if (const auto* bounded = std::get_if<trial::Bounded>(&a))
    return bounded->at_best == std::get<trial::Bounded>(b).at_best;
  if (std::holds_alternative<trial::OutOfMemory>(a)) return true;
  const auto& one = std::get<trial::Measured>(a);
  const auto& other = std::get<trial::Measured>(b);
  return one.metrics == other.metrics && one.value_sem == other.value_sem && one.peak_memory == other.peak_memory;
}

// Compares everything that a model learns from.
bool is_as_before(const journal::Trial& before, const journal::Trial& now) {
  return before.outcome.has_value() == now.outcome.has_value() && before.wall_s == now.wall_s &&
         counts(before) == counts(now) && before.proposal.run == now.proposal.run &&
         before.proposal.fitted_to == now.proposal.fitted_to &&
         before.proposal.configuration == now.proposal.configuration &&
         (!now.outcome || same_outcome(*before.outcome, *now.outcome));
}

// Returns whether `now` is `before` plus trials that began since, with none closed.
bool only_begun_since(const History& before, const History& now) {
  if (now.size() < before.size()) return false;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (i < before.size() ? !is_as_before(before[i], now[i]) : now[i].outcome.has_value()) return false;
  }
  return true;
}

class BayesStrategy final : public Strategy {
 public:
  BayesStrategy(const session::Session& session, const Candidates& candidates, const StrategyOptions& options)
      : session_(session),
        objective_(session.objective),
        candidates_(candidates),
        seed_(options.seed),
        repeats_(options.repeats && session.limits.empty()),  // the best may break a limit
        most_exact_(options.most_exact) {}

  std::optional<journal::Proposal> ask(const History& history) const override {
    if (const Kept* kept = kept_for(history)) return answer_of(*kept);
    TrialModel model(objective_, candidates_, history, most_exact_);
    // Several suggestions for the same closed trials share one success model.
    const std::size_t outcomes = fingerprint_of_outcomes(candidates_, history);
    if (outcomes == outcomes_) model.use(success_);
    std::optional<journal::Proposal> proposal = ask_of(model, history);
    outcomes_ = outcomes;
    success_ = model.success();
    return proposal;
  }

 private:
  std::optional<journal::Proposal> ask_of(TrialModel& model, const History& history) const {
    const std::shared_ptr<const CandidateList> list = candidates_.to_score_with_doubted(history, seed_);
    const LimitModels limits = limits_of(history);
    const Eigen::VectorXd probability = success_probability(model, *list, limits);
    std::vector<bool> allowed = open_candidates(candidates_, *list, history, probability);
    const bool has_new = std::find(allowed.begin(), allowed.end(), true) != allowed.end();
    if (!has_new && !(repeats_ && model.has_values())) return std::nullopt;
    Rng rng(seed_, static_cast<std::uint64_t>(counted_trials(history)));
    if (!has_new) {
      model.fit(rng, true);
      model.believe_pending();
      return repeat_only(model, history, RepeatGain(session_, candidates_, history, model));
    }
    if (!spreads_first_trials(model, history, session_) && model.has_values()) {
      return ask_model(model, history, *list, probability, allowed, rng);
    }
    drop_unlikely(model, allowed, probability, allowed);
    if (spreads_first_trials(model, history, session_)) {
      return propose(*list, farthest_candidate(candidates_, history, list->points, allowed, rng), StrategyKind::kBayes);
    }
    const Eigen::VectorXd score = model.prior_values(model.points_of(*list)) + probability.array().log().matrix();
    return propose(*list, largest_or_draw(score, allowed, rng), StrategyKind::kBayes);
  }

  LimitModels limits_of(const History& history) const {
    Rng rng(seed_, kLimitStreams + static_cast<std::uint64_t>(counted_trials(history)));
    return {session_, candidates_, history, rng};
  }

  using Repeated = std::pair<journal::Proposal, double>;  ///< with its gain for the recommendation, as a fraction

  /// The inputs of a choice.
  struct Scores {
    const History& history;
    const TrialModel& model;
    const CandidateList& list;
    const surrogate::Points& points;  ///< of the list
    const std::vector<bool>& open;    ///< one per candidate: whether it was not asked yet
    const surrogate::Prediction& prediction;
    const Eigen::VectorXd& probability;
    const TrialCost& cost;
  };

  // Returns the candidate with the largest score by the model. At least one must be open.
  journal::Proposal ask_model(TrialModel& model, const History& history, const CandidateList& list,
                              const Eigen::VectorXd& probability, const std::vector<bool>& open, Rng& rng) const {
    model.fit(rng, true);
    model.believe_pending();
    const TrialCost cost(history, model);
    const surrogate::Points points = model.points_of(list);
    const surrogate::Prediction prediction = model.predict(points);
    const Scores scores{history, model, list, points, open, prediction, probability, cost};
    journal::Proposal proposal = improve(scores);
    if (!repeats_) return proposal;
    return or_repeat(std::move(proposal), scores, RepeatGain(session_, candidates_, history, model));
  }

  // With more measurements than the process can know, everything that follows from the closed trials is kept for the
  // suggestions made while others are pending, so each of them costs only believing one more trial. A space without a
  // list also keeps its pool of the closed trials.
  struct Kept {
    Kept(const BayesStrategy& strategy, const History& the_history)
        : history(the_history), model(strategy.objective_, strategy.candidates_, history, strategy.most_exact_) {}

    History history;  ///< of the last suggestion
    TrialModel model;
    std::shared_ptr<const CandidateList> list;
    surrogate::Points points;
    std::vector<bool> open;
    Eigen::VectorXd probability;
    std::optional<TrialCost> cost;
    std::optional<RepeatGain> gain;
  };

  // nullptr: the process knows all trials, and the model is made again each time.
  const Kept* kept_for(const History& history) const {
    if (closed_trials(history) <= most_exact_) {
      kept_.reset();
      return nullptr;
    }
    if (!kept_ || !only_begun_since(kept_->history, history)) {
      kept_ = std::make_unique<Kept>(*this, history);
      if (kept_->model.is_exact()) {
        kept_.reset();
        return nullptr;
      }
      prepare(*kept_);
    }
    for (std::size_t i = kept_->history.size(); i < history.size(); ++i) {
      kept_->history.push_back(history[i]);
      take_pending(*kept_, history[i]);
    }
    return kept_.get();
  }

  void prepare(Kept& kept) const {
    History closed;
    std::copy_if(kept.history.begin(), kept.history.end(), std::back_inserter(closed),
                 [](const journal::Trial& trial) { return trial.outcome.has_value(); });
    kept.list = candidates_.to_score_with_doubted(closed, seed_);
    kept.probability = success_probability(kept.model, *kept.list, limits_of(closed));
    kept.open = open_candidates(candidates_, *kept.list, closed, kept.probability);
    Rng rng(seed_, static_cast<std::uint64_t>(counted_trials(kept.history)));
    kept.model.fit(rng, true);
    kept.points = kept.model.points_of(*kept.list);
    kept.model.keep(kept.points);
    kept.cost.emplace(kept.history, kept.model);
    if (repeats_) kept.gain.emplace(session_, candidates_, kept.history, kept.model);
    for (const journal::Trial& trial : kept.history) take_pending(kept, trial);
  }

  void take_pending(Kept& kept, const journal::Trial& trial) const {
    if (trial.outcome || !counts(trial)) return;
    const space::Configuration& configuration = trial.proposal.configuration;
    kept.model.believe({configuration});
    if (const auto row = kept.list->find(candidates_.key(configuration))) kept.open[*row] = false;
    if (kept.gain) kept.gain->leave_out(configuration);
  }

  std::optional<journal::Proposal> answer_of(const Kept& kept) const {
    if (std::find(kept.open.begin(), kept.open.end(), true) == kept.open.end()) {
      return kept.gain ? repeat_only(kept.model, kept.history, *kept.gain) : std::nullopt;
    }
    const surrogate::Prediction prediction = kept.model.kept();
    const Scores scores{kept.history, kept.model, *kept.list,       kept.points,
                        kept.open,    prediction, kept.probability, *kept.cost};
    journal::Proposal proposal = improve(scores);
    return kept.gain ? or_repeat(std::move(proposal), scores, *kept.gain) : proposal;
  }

  // Returns the proposal, or a repeated measurement if that gains more for the recommendation.
  journal::Proposal or_repeat(journal::Proposal proposal, const Scores& scores, const RepeatGain& repeats) const {
    const auto chosen = static_cast<Eigen::Index>(scores.list.index.at(candidates_.key(proposal.configuration)));
    const auto gain_of_new = [&](const RepeatGain::Repeat& repeat) {
      const surrogate::Points candidate = scores.points.rows({chosen});
      return scores.probability(chosen) * repeats.of_new(candidate) *
             scores.cost.ratio(scores.model.measured().latent.points.rows({repeat.row}), candidate, scores.model);
    };
    std::optional<Repeated> repeated = repeat(scores.model, scores.history, repeats, gain_of_new);
    if (!repeated) return proposal;
    auto& [again, gain] = *repeated;
    again.outlook = proposal.outlook;
    again.outlook->expected_gain = std::max(gain, proposal.outlook->expected_gain);
    return std::move(again);
  }

  // For the case that no new candidate is open.
  std::optional<journal::Proposal> repeat_only(const TrialModel& model, const History& history,
                                               const RepeatGain& repeats) const {
    std::optional<Repeated> last = repeat(model, history, repeats, [](const auto&) { return 0.0; });
    return last ? std::optional(std::move(last->first)) : std::nullopt;
  }

  // Returns the allowed candidates that may hold back riskier ones (see the top).
  std::vector<bool> promising(const TrialModel& model, const std::vector<bool>& allowed, const Eigen::VectorXd& log_ei,
                              const Eigen::VectorXd& probability, double unit) const {
    if (!model.plans_memory()) return allowed;
    std::vector<bool> promise = allowed;
    for (std::size_t i = 0; i < promise.size(); ++i) {
      const auto row = static_cast<Eigen::Index>(i);
      if (log_ei(row) + std::log(probability(row)) < std::log(kPromise * unit)) promise[i] = false;
    }
    return std::find(promise.begin(), promise.end(), true) == promise.end() ? allowed : promise;
  }

  // Returns the measured configuration that is most worth repeating, if that gains more than a new one and enough at
  // all.
  std::optional<Repeated> repeat(const TrialModel& model, const History& history, const RepeatGain& repeats,
                                 const std::function<double(const RepeatGain::Repeat&)>& gain_of_new) const {
    const std::optional<RepeatGain::Repeat> repeat = repeats.best();
    if (!repeat || repeat->gain <= kLeastRepeatGain * unit_of(model)) return std::nullopt;
    if (repeat->gain <= gain_of_new(*repeat)) return std::nullopt;
    journal::Proposal proposal = propose(history[repeat->trial].proposal.configuration, StrategyKind::kBayes);
    proposal.repeat_of = history[repeat->trial].number;
    proposal.predicted_value = model.scale().from_latent(repeat->mean);
    proposal.hyperparameters = model.hyperparameters();
    proposal.fitted_to = model.fitted_to();
    return Repeated(std::move(proposal), repeat->gain / unit_of(model));
  }

  // Predicts what a trial will measure, including what is specific to its configuration and the noise of one
  // measurement.
  void predict_value(const TrialModel& model, double mean, double variance, journal::Proposal& proposal) const {
    const double noise = model.measured().one_more.mean();
    const double own = model.own_variance(values_are_exact(session_));
    proposal.predicted_value = model.scale().from_latent(mean);
    proposal.widening = model.widening();
    proposal.predicted_stddev =
        model.scale().half_width(mean, model.widening() * std::sqrt(std::max(variance, 0.0) + own + noise));
  }

  // Returns the latent unit of a gain of 100 %: 1 for logarithms, the incumbent for plain values.
  static double unit_of(const TrialModel& model) {
    return model.scale().logarithmic() ? 1.0 : std::max(std::abs(model.incumbent()), 1e-12);
  }

  journal::Proposal improve(const Scores& scores) const {
    const auto& [history, model, list, points, open, prediction, probability, cost] = scores;
    const std::vector<bool> within = measured_within(session_, history, model.measured());
    const std::optional<double> incumbent = incumbent_of(model, within);
    // While nothing is within the limits, what is likely to be is sought, whatever its value.
    const Eigen::VectorXd log_ei = incumbent ? surrogate::log_expected_improvement(prediction, *incumbent)
                                             : Eigen::VectorXd::Zero(prediction.mean.size());
    std::vector<bool> allowed = open;
    drop_unlikely(model, allowed, probability, promising(model, allowed, log_ei, probability, unit_of(model)));
    const Eigen::VectorXd log_seconds = cost.log_seconds(points, prediction.mean);
    const double log_floor = std::log(kGainFloor * unit_of(model));
    const bool has_risks = may_fail(model, list) || !session_.limits.empty();
    std::size_t chosen = allowed.size();
    double best = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < allowed.size(); ++i) {
      if (!allowed[i]) continue;
      const auto row = static_cast<Eigen::Index>(i);
      double score = log_ei(row);
      if (has_risks) {
        score = log_add_exp(score, log_floor) + kFloorSlope * score + std::log(probability(row));
      }
      score -= log_seconds(row);
      if (chosen < allowed.size() && !(score > best + kTie)) continue;
      best = score;
      chosen = i;
    }
    journal::Proposal proposal = propose(list, chosen, StrategyKind::kBayes);
    predict_value(model, prediction.mean(static_cast<Eigen::Index>(chosen)),
                  prediction.variance(static_cast<Eigen::Index>(chosen)), proposal);
    if (has_risks) proposal.success_probability = probability(static_cast<Eigen::Index>(chosen));
    proposal.hyperparameters = model.hyperparameters();
    proposal.fitted_to = model.fitted_to();
    const Eigen::VectorXd log_cost = log_seconds.array() - cost.log_typical_seconds();
    // Failures that taught P keep the search away from unlikely candidates, so these are no reason to continue.
    if (!incumbent) return proposal;
    proposal.outlook =
        outlook_of(model, session_, candidates_,
                   {list, prediction, probability, log_cost, open, model.plans_memory() ? open : allowed, within});
    return proposal;
  }

  // Returns the largest posterior mean among what was measured within the session's limits. Empty if nothing was.
  std::optional<double> incumbent_of(const TrialModel& model, const std::vector<bool>& within) const {
    if (session_.limits.empty()) return model.incumbent();
    const Eigen::VectorXd means = model.predict_measured().mean;
    std::optional<double> best;
    for (Eigen::Index row = 0; row < means.size(); ++row) {
      if (within[static_cast<std::size_t>(row)] && (!best || means(row) > *best)) best = means(row);
    }
    return best;
  }

  const session::Session& session_;
  const session::Objective& objective_;
  const Candidates& candidates_;
  std::uint64_t seed_;
  bool repeats_;
  Eigen::Index most_exact_;
  // Kept from the last suggestion; it changes no answer.
  mutable std::size_t outcomes_ = 0;
  mutable std::shared_ptr<const TrialSuccess> success_;  ///< for outcomes_; nullptr: not made
  mutable std::unique_ptr<Kept> kept_;                   ///< nullptr: nothing is kept
};

}  // namespace

std::unique_ptr<Strategy> make_bayes(const session::Session& session, const Candidates& candidates,
                                     const StrategyOptions& options) {
  auto one = std::make_unique<BayesStrategy>(session, candidates, options);
  if (session.others.empty()) return one;
  return make_pareto(session, candidates, options, std::move(one));
}

}  // namespace krigtune::search
