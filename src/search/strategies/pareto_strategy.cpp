// Bayesian optimisation of several objectives: the next trial is the one with the largest
//
//   a(x) = P(x) EHVI(x)
//
// where EHVI is the expected hypervolume improvement of the front (search/model/front.cpp) and P the probability that
// the trial succeeds, with the same rules for unlikely candidates as with one objective (choice.h). The first objective
// has its usual model, with everything that is known about speed, and each other one a Gaussian process of its own
// (search/model/other_objective.h). The models are independent given the configuration, as in Emmerich et al. 2011.
//
// The front is that of the posterior means at the measured configurations, so that a lucky measurement does not hide a
// part of it; where values are exact, it is that of the values. Trials that are running count as if they had given
// their means (Kriging believer: Ginsbourger, Le Riche & Carraro 2010).
//
// The session ends by its usual rules, with gains as shares of the front's hypervolume: the largest a(x) is the gain of
// one more trial. All further trials together add at most the sum of a(x), because a point adds the less the more
// others there are, so by Markov's inequality they add more than the sum over (1 - confidence) at most that often.
// Both are at least what the last kTrend configurations have added on average. A model of few trials is too sure of
// parts of the space where it has none: at an end of a front, it took the objective beyond for flat while every trial
// found more (experiments/pareto).
#include "search/strategies/pareto_strategy.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "search/candidates/climb.h"
#include "search/model/front.h"
#include "search/model/limit_models.h"
#include "search/model/other_objective.h"
#include "search/strategies/choice.h"
#include "session/objectives.h"

namespace krigtune::search {
namespace {

constexpr double kPromisingShare = 0.003;  // a share that is worth a trial: the default of budget.least_gain
constexpr double kLikelyToRun = 0.5;       // what determines the reference point
constexpr double kNoShare = 1e-12;         // a share that is nothing
constexpr Eigen::Index kTrend = 6;         // as many as the rules of ending need (run/stop_rules.cpp)
constexpr double kLeastVariance = 1e-12;   // latent
constexpr std::uint64_t kLimitsOfFront = std::uint64_t{5} << 59;
constexpr std::uint64_t kClimbStreams = std::uint64_t{1} << 61;  // streams of random numbers that no trial uses

/// The models of all objectives at the candidates and at what was measured; one column per objective.
struct Predictions {
  Eigen::MatrixXd mean;
  Eigen::MatrixXd variance;
  Eigen::MatrixXd measured;  ///< latent values of the measured configurations, and the means of running ones
  Eigen::Index ran = 0;      ///< the number of rows of `measured` that are not of running ones
};

struct Models {
  const TrialModel& first;
  const std::vector<OtherObjective>& others;
  const LimitModels& limits;
};

class ParetoStrategy final : public Strategy {
 public:
  ParetoStrategy(const session::Session& session, const Candidates& candidates, const StrategyOptions& options,
                 std::unique_ptr<Strategy> first)
      : session_(session),
        objectives_(session::all_objectives(session)),
        candidates_(candidates),
        seed_(options.seed),
        most_exact_(options.most_exact),
        first_(std::move(first)) {}

  std::optional<journal::Proposal> ask(const History& history) const override {
    TrialModel model(session_.objective, candidates_, history, most_exact_);
    std::vector<OtherObjective> others;
    for (const session::Objective& objective : session_.others) others.emplace_back(objective, candidates_, history);
    const bool is_measured = model.has_values() && std::all_of(others.begin(), others.end(),
                                                               [](const auto& one) { return one.has_values(); });
    if (!is_measured || spreads_first_trials(model, history, session_)) return first_->ask(history);
    const std::shared_ptr<const CandidateList> list = candidates_.to_score_with_doubted(history, seed_);
    Rng rng(seed_, kLimitsOfFront + static_cast<std::uint64_t>(counted_trials(history)));
    const LimitModels limits(session_, candidates_, history, rng);
    const Eigen::VectorXd probability = success_probability(model, *list, limits);
    const std::vector<bool> open = open_candidates(candidates_, *list, history, probability);
    if (std::find(open.begin(), open.end(), true) == open.end()) return std::nullopt;
    const Predictions predictions = predict(model, others, history, *list);
    const Models models{model, others, limits};
    if (predictions.ran == 0) return likeliest(models, *list, probability, open, predictions);
    const FrontGain gain = gain_of(models, probability, open, predictions);
    if (candidates_.listed()) return choose(models, gain, *list, probability, open, predictions);
    return climb_and_choose(models, history, gain, *list, probability, open, predictions);
  }

 private:
  // Fits all models.
  Predictions predict(TrialModel& model, std::vector<OtherObjective>& others, const History& history,
                      const CandidateList& list) const {
    std::vector<space::Configuration> measured;
    const std::vector<bool> within = measured_within(session_, history, model.measured());
    std::vector<Eigen::Index> rows;
    for (std::size_t i = 0; i < within.size(); ++i) {
      if (!within[i]) continue;
      rows.push_back(static_cast<Eigen::Index>(i));
      measured.push_back(history[model.measured().trials[i].front()].proposal.configuration);
    }
    std::vector<space::Configuration> pending;
    for (const journal::Trial& trial : history) {
      if (!trial.outcome && counts(trial)) pending.push_back(trial.proposal.configuration);
    }
    const auto columns = static_cast<Eigen::Index>(objectives_.size());
    Predictions result{Eigen::MatrixXd(list.points.size(), columns), Eigen::MatrixXd(list.points.size(), columns),
                       Eigen::MatrixXd(std::ssize(measured) + std::ssize(pending), columns), std::ssize(measured)};
    Rng rng(seed_, static_cast<std::uint64_t>(counted_trials(history)));
    model.fit(rng, true);
    const bool exact = values_are_exact(session_);
    const Eigen::VectorXd first = exact ? model.measured().latent.values : model.predict_measured().mean;
    result.measured.col(0).head(std::ssize(measured)) = first(rows);
    if (!pending.empty()) result.measured.col(0).tail(std::ssize(pending)) = model.predict(model.encode(pending)).mean;
    model.believe(pending);
    put(model.predict(model.points_of(list)), 0, result);
    for (std::size_t j = 0; j < others.size(); ++j) {
      const auto column = static_cast<Eigen::Index>(j) + 1;
      others[j].fit(rng);
      result.measured.col(column).head(std::ssize(measured)) = others[j].predict(measured).mean;
      if (exact) put_values(others[j].scale(), session_.others[j], history, measured, column, result);
      if (!pending.empty()) result.measured.col(column).tail(std::ssize(pending)) = others[j].predict(pending).mean;
      others[j].believe(pending);
      put(others[j].predict(list), column, result);
    }
    return result;
  }

  static void put(const surrogate::Prediction& prediction, Eigen::Index column, Predictions& result) {
    result.mean.col(column) = prediction.mean;
    result.variance.col(column) = prediction.variance.cwiseMax(kLeastVariance);
  }

  static void put_values(const ObjectiveScale& scale, const session::Objective& objective, const History& history,
                         const std::vector<space::Configuration>& measured, Eigen::Index column, Predictions& result) {
    const std::vector<double> means = mean_values(objective, history, measured);
    for (std::size_t i = 0; i < means.size(); ++i) {
      result.measured(static_cast<Eigen::Index>(i), column) = scale.to_latent(means[i]);
    }
  }

  // A pool has no more than samples of the space, so the search climbs from its best.
  journal::Proposal climb_and_choose(const Models& models, const History& history, const FrontGain& gain,
                                     CandidateList list, Eigen::VectorXd probability, std::vector<bool> open,
                                     Predictions predictions) const {
    const auto score_of = [&](const CandidateList& part) -> Eigen::VectorXd {
      const Eigen::VectorXd likely = success_probability(models.first, part, models.limits);
      const Predictions at = predict_at(models, part);
      return shares(gain, open_candidates(candidates_, part, history, likely), at.mean, at.variance.cwiseSqrt())
          .cwiseProduct(likely);
    };
    const Eigen::VectorXd score =
        shares(gain, open, predictions.mean, predictions.variance.cwiseSqrt()).cwiseProduct(probability);
    Rng rng(seed_, kClimbStreams + static_cast<std::uint64_t>(counted_trials(history)));
    const CandidateList tops = climb(candidates_, list, score, score_of, rng);
    if (tops.size() > 0) {
      const Predictions at = predict_at(models, tops);
      const Eigen::VectorXd likely = success_probability(models.first, tops, models.limits);
      append(list, tops);
      append_rows(predictions.mean, at.mean);
      append_rows(predictions.variance, at.variance);
      const Eigen::VectorXd all =
          (Eigen::VectorXd(probability.size() + likely.size()) << probability, likely).finished();
      probability = all;
      open = open_candidates(candidates_, list, history, probability);
    }
    return choose(models, gain, list, probability, open, predictions);
  }

  static void append_rows(Eigen::MatrixXd& matrix, const Eigen::MatrixXd& more) {
    matrix.conservativeResize(matrix.rows() + more.rows(), Eigen::NoChange);
    matrix.bottomRows(more.rows()) = more;
  }

  Predictions predict_at(const Models& models, const CandidateList& list) const {
    const auto columns = static_cast<Eigen::Index>(objectives_.size());
    Predictions result{Eigen::MatrixXd(list.points.size(), columns), Eigen::MatrixXd(list.points.size(), columns),
                       Eigen::MatrixXd(0, columns)};
    put(models.first.predict(models.first.points_of(list)), 0, result);
    for (std::size_t j = 0; j < models.others.size(); ++j) {
      put(models.others[j].predict(list), static_cast<Eigen::Index>(j) + 1, result);
    }
    return result;
  }

  FrontGain gain_of(const Models& models, const Eigen::VectorXd& probability, const std::vector<bool>& open,
                    const Predictions& predictions) const {
    std::vector<ObjectiveScale> scales = {models.first.scale()};
    for (const OtherObjective& other : models.others) scales.push_back(other.scale());
    std::vector<std::optional<double>> limits;
    for (const session::Objective& objective : objectives_) limits.push_back(objective.limit);
    std::vector<Eigen::Index> likely;
    for (std::size_t i = 0; i < open.size(); ++i) {
      const auto row = static_cast<Eigen::Index>(i);
      if (open[i] && probability(row) >= kLikelyToRun) likely.push_back(row);
    }
    return {std::move(scales), predictions.measured, predictions.mean(likely, Eigen::all),
            predictions.variance(likely, Eigen::all).cwiseSqrt(), limits};
  }

  journal::Proposal choose(const Models& models, const FrontGain& gain, const CandidateList& list,
                           const Eigen::VectorXd& probability, const std::vector<bool>& open,
                           const Predictions& predictions) const {
    const TrialModel& model = models.first;
    const Eigen::VectorXd share = shares(gain, open, predictions.mean, predictions.variance.cwiseSqrt());
    std::vector<bool> allowed = open;
    drop_unlikely(model, allowed, probability, promising(model, allowed, share, probability));
    journal::Proposal proposal =
        propose_largest(models, list, allowed, share.cwiseProduct(probability), probability, predictions);
    if (gain.hypervolume() > 0.0)
      proposal.outlook = outlook(models, gain, probability, model.plans_memory() ? open : allowed, predictions);
    return proposal;
  }

  // While nothing was measured within the limits, what is likely to be is sought, whatever its objectives.
  journal::Proposal likeliest(const Models& models, const CandidateList& list, const Eigen::VectorXd& probability,
                              const std::vector<bool>& open, const Predictions& predictions) const {
    return propose_largest(models, list, open, probability, probability, predictions);
  }

  // Proposes the first of the largest scores among the allowed ones.
  journal::Proposal propose_largest(const Models& models, const CandidateList& list, const std::vector<bool>& allowed,
                                    const Eigen::VectorXd& score, const Eigen::VectorXd& probability,
                                    const Predictions& predictions) const {
    Eigen::Index chosen = -1;
    for (std::size_t i = 0; i < allowed.size(); ++i) {
      const auto row = static_cast<Eigen::Index>(i);
      if (allowed[i] && (chosen < 0 || score(row) > score(chosen))) chosen = row;
    }
    journal::Proposal proposal = search::propose(list, static_cast<std::size_t>(chosen), StrategyKind::kBayes);
    describe(models.first, predictions, chosen, proposal);
    if (may_fail(models.first, list) || !models.limits.empty()) proposal.success_probability = probability(chosen);
    return proposal;
  }

  static double score(const Eigen::VectorXd& share, const Eigen::VectorXd& probability, std::size_t i) {
    return share(static_cast<Eigen::Index>(i)) * probability(static_cast<Eigen::Index>(i));
  }

  static Eigen::VectorXd shares(const FrontGain& gain, const std::vector<bool>& wanted, const Eigen::MatrixXd& mean,
                                const Eigen::MatrixXd& stddev) {
    Eigen::VectorXd result = Eigen::VectorXd::Zero(mean.rows());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const auto row = static_cast<Eigen::Index>(i);
      if (wanted[i]) result(row) = gain.share(mean.row(row).transpose(), stddev.row(row).transpose());
    }
    return result;
  }

  // Returns the allowed candidates that may hold back riskier ones, by the rule of bayes with one objective.
  static std::vector<bool> promising(const TrialModel& model, const std::vector<bool>& allowed,
                                     const Eigen::VectorXd& share, const Eigen::VectorXd& probability) {
    if (!model.plans_memory()) return allowed;
    std::vector<bool> promise = allowed;
    for (std::size_t i = 0; i < promise.size(); ++i) {
      if (score(share, probability, i) < kPromisingShare) promise[i] = false;
    }
    return std::find(promise.begin(), promise.end(), true) == promise.end() ? allowed : promise;
  }

  // Fills in what is predicted of the first objective, as bayes does with one.
  void describe(const TrialModel& model, const Predictions& predictions, Eigen::Index row,
                journal::Proposal& proposal) const {
    const double mean = predictions.mean(row, 0);
    const double variance = predictions.variance(row, 0) + model.own_variance(values_are_exact(session_)) +
                            model.measured().one_more.mean();
    proposal.predicted_value = model.scale().from_latent(mean);
    proposal.widening = model.widening();
    proposal.predicted_stddev = model.scale().half_width(mean, model.widening() * std::sqrt(variance));
    proposal.hyperparameters = model.hyperparameters();
    proposal.fitted_to = model.fitted_to();
  }

  journal::Outlook outlook(const Models& models, const FrontGain& gain, const Eigen::VectorXd& probability,
                           const std::vector<bool>& wanted, const Predictions& predictions) const {
    const bool exact = values_are_exact(session_);
    Eigen::MatrixXd variance = predictions.variance;
    variance.col(0).array() += models.first.own_variance(exact);
    for (std::size_t j = 0; j < models.others.size() && exact; ++j) {
      variance.col(static_cast<Eigen::Index>(j) + 1).array() += models.others[j].noise_variance();
    }
    const Eigen::MatrixXd stddev = models.first.widening() * variance.cwiseSqrt();
    const Eigen::VectorXd each = shares(gain, wanted, predictions.mean, stddev).cwiseProduct(probability);
    journal::Outlook outlook;
    outlook.confidence = session_.budget.confidence;
    const double trend = gain.lately_added(predictions.measured.topRows(predictions.ran), kTrend);
    outlook.expected_gain = std::max(each.maxCoeff(), trend);
    const double sum = std::max(each.sum(), trend);
    outlook.regret_bound = sum < kNoShare ? 0.0 : sum / (1.0 - outlook.confidence);
    return outlook;
  }

  const session::Session& session_;
  std::vector<session::Objective> objectives_;
  const Candidates& candidates_;
  std::uint64_t seed_;
  Eigen::Index most_exact_;
  std::unique_ptr<Strategy> first_;
};

}  // namespace

std::unique_ptr<Strategy> make_pareto(const session::Session& session, const Candidates& candidates,
                                      const StrategyOptions& options, std::unique_ptr<Strategy> first) {
  return std::make_unique<ParetoStrategy>(session, candidates, options, std::move(first));
}

}  // namespace krigtune::search
