#include "insight/predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_set>

#include "core/error.h"
#include "core/statistics.h"
#include "search/candidates/candidate_list.h"
#include "search/model/other_objective.h"
#include "search/model/trial_model.h"
#include "search/trials/run_effects.h"

namespace krigtune::insight {
namespace {

constexpr std::int64_t kMostRows = 1'000'000;
constexpr std::int64_t kMostWalkedToCount = 10'000'000;  // about ten seconds
constexpr std::size_t kRowsAtOnce = 4096;
constexpr std::size_t kDrawsPerRow = 20;
constexpr std::size_t kFewestDraws = 100'000;
constexpr std::uint64_t kSampleStream = ~std::uint64_t{0};  // a stream that no trial uses

constexpr std::uint64_t kOtherStream = ~std::uint64_t{1};

struct Observed {
  double sum = 0.0;
  int count = 0;
  std::string status;
  std::vector<double> other_sums;
};

// Returns the fitted models of the further objectives.
std::vector<search::OtherObjective> fitted_others(const session::Session& session, const search::Candidates& candidates,
                                                  const search::History& history) {
  std::vector<search::OtherObjective> others;
  others.reserve(session.others.size());
  for (std::size_t j = 0; j < session.others.size(); ++j) {
    others.emplace_back(session.others[j], candidates, history);
    Rng rng(j, kOtherStream);
    if (others.back().has_values()) others.back().fit(rng);
  }
  return others;
}

}  // namespace

/// Fills the rows block by block.
struct Predictor::Impl {
  Impl(const session::Session& session, const session::MemoryFilter& filter, const search::Candidates& candidates,
       const search::History& history, const search::TrialModel& fitted)
      : filter_(filter), candidates_(candidates), model_(fitted), others_(fitted_others(session, candidates, history)) {
    if (model_.has_values()) own_variance_ = model_.own_variance(search::values_are_exact(session));
    const search::RunEffects effects(session.objective, history);
    for (const journal::Trial& trial : history) {
      if (!trial.outcome || !search::counts(trial)) continue;
      Observed& observed = observed_[candidates.key(trial.proposal.configuration)];
      observed.status = trial::status_text(*trial.outcome);
      if (const std::optional<double> value = effects.value_of(trial)) {
        observed.sum += *value;
        ++observed.count;
        observed.other_sums.resize(session.others.size(), 0.0);
        for (std::size_t j = 0; j < session.others.size(); ++j) {
          observed.other_sums[j] += search::value_of(trial, session.others[j]).value_or(std::nan(""));
        }
      }
    }
  }

  void fill(std::vector<PredictionRow>& rows) const {
    std::vector<space::Configuration> configurations;
    for (PredictionRow& row : rows) {
      fill_known(row);
      configurations.push_back(row.configuration);
    }
    const surrogate::Points points = model_.encode(configurations);
    const Eigen::VectorXd probability = model_.probability(points, model_.memory_of(configurations));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool too_large = rows[i].memory_feasible && !*rows[i].memory_feasible;
      rows[i].probability_feasible = too_large ? 0.0 : probability(static_cast<Eigen::Index>(i));
    }
    for (std::size_t j = 0; j < others_.size(); ++j) fill_other(rows, configurations, j);
    if (!model_.has_values()) return;
    const surrogate::Prediction prediction = model_.predict(points);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto row = static_cast<Eigen::Index>(i);
      fill_posterior(rows[i], prediction.mean(row), std::max(prediction.variance(row), 0.0));
    }
  }

 private:
  void fill_known(PredictionRow& row) const {
    if (const std::optional<plan::MemoryVerdict> check = filter_.planned(row.configuration)) {
      row.predicted_memory = check->predicted;
      row.memory_feasible = check->verdict != plan::Verdict::kTooLarge;
    }
    row.others.resize(others_.size());
    const auto found = observed_.find(candidates_.key(row.configuration));
    if (found == observed_.end()) return;
    const Observed& observed = found->second;
    row.status = observed.status;
    if (observed.count == 0) return;
    row.observed = observed.sum / observed.count;
    for (std::size_t j = 0; j < others_.size(); ++j) {
      const double mean = observed.other_sums[j] / observed.count;
      if (std::isfinite(mean)) row.others[j].observed = mean;
    }
  }

  void fill_other(std::vector<PredictionRow>& rows, const std::vector<space::Configuration>& configurations,
                  std::size_t index) const {
    const search::OtherObjective& other = others_[index];
    if (!other.has_values()) return;
    const surrogate::Prediction prediction = other.predict(configurations);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto at = static_cast<Eigen::Index>(i);
      const double stddev = std::sqrt(std::max(prediction.variance(at), 0.0) + other.noise_variance());
      const double one_end = other.scale().from_latent(prediction.mean(at) - kNormal975 * stddev);
      const double other_end = other.scale().from_latent(prediction.mean(at) + kNormal975 * stddev);
      OtherPrediction& filled = rows[i].others[index];
      filled.median = other.scale().from_latent(prediction.mean(at));
      filled.lower_95 = std::min(one_end, other_end);
      filled.upper_95 = std::max(one_end, other_end);
    }
  }

  void fill_posterior(PredictionRow& row, double mean, double variance) const {
    const search::ObjectiveScale& scale = model_.scale();
    const double stddev = model_.widening() * std::sqrt(variance + own_variance_);
    const auto at = [&](double deviations) { return scale.from_latent(mean + deviations * stddev); };
    row.median = at(0.0);
    row.stddev = scale.half_width(mean, stddev);
    row.lower_95 = std::min(at(-kNormal975), at(kNormal975));
    row.upper_95 = std::max(at(-kNormal975), at(kNormal975));
    row.log_expected_improvement = scale.log_expected_improvement(mean, stddev, model_.incumbent());
    row.expected_improvement = std::exp(*row.log_expected_improvement);
  }

  const session::MemoryFilter& filter_;
  const search::Candidates& candidates_;
  const search::TrialModel& model_;
  std::vector<search::OtherObjective> others_;
  double own_variance_ = 0.0;  ///< variance of a configuration's result around the smooth function
  std::map<std::string, Observed> observed_;
};

Predictor::Predictor(const session::Session& session, const session::MemoryFilter& filter,
                     const search::Candidates& candidates, const search::History& history,
                     const search::TrialModel& fitted)
    : impl_(std::make_unique<Impl>(session, filter, candidates, history, fitted)) {}

Predictor::~Predictor() = default;

std::vector<PredictionRow> Predictor::operator()(const std::vector<space::Configuration>& configurations) const {
  std::vector<PredictionRow> rows(configurations.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].configuration = configurations[i];
  if (!rows.empty()) impl_->fill(rows);
  return rows;
}

namespace {

// Selects the wanted ones of `count` rows: all, or a sample without replacement (Knuth's selection sampling).
class Selection {
 public:
  Selection(std::int64_t count, const PredictOptions& options)
      : left_(count), wanted_(options.sample.value_or(count)), rng_(options.seed, kSampleStream) {}

  bool take() {
    const bool taken = wanted_ > 0 && rng_.uniform() * static_cast<double>(left_) < static_cast<double>(wanted_);
    --left_;
    if (taken) --wanted_;
    return taken;
  }

 private:
  std::int64_t left_;
  std::int64_t wanted_;
  Rng rng_;
};

// Empty if there are too many to walk through or if they cannot be listed.
std::optional<std::int64_t> matching_count(const space::Space& space, const space::Space::Predicate& where) {
  if (!space.listable()) return std::nullopt;
  std::int64_t walked = 0;
  std::int64_t count = 0;
  space.for_each([&](const space::Configuration& configuration) {
    if (!where || where(configuration)) ++count;
    return ++walked <= kMostWalkedToCount;
  });
  return walked <= kMostWalkedToCount ? std::optional(count) : std::nullopt;
}

// Draws without replacement, in lattice order; returns fewer if that many are hard to find.
std::vector<space::Configuration> drawn(const search::Candidates& candidates, const PredictOptions& options) {
  if (*options.sample > kMostRows) {
    throw UserError(fmt::format("a sample of {} is more than {}", *options.sample, kMostRows), "ask for fewer");
  }
  const auto wanted = static_cast<std::size_t>(*options.sample);
  const std::size_t most_draws = kDrawsPerRow * wanted + kFewestDraws;
  Rng rng(options.seed, kSampleStream);
  std::unordered_set<std::string> keys;
  std::vector<space::Configuration> configurations;
  for (std::size_t i = 0; i < most_draws && configurations.size() < wanted; ++i) {
    space::Configuration configuration = candidates.space().sample(rng);
    if (options.where && !options.where(configuration)) continue;
    if (keys.insert(candidates.key(configuration)).second) configurations.push_back(std::move(configuration));
  }
  search::sort_in_lattice_order(candidates.space(), configurations);
  return configurations;
}

[[noreturn]] void refuse_whole(std::optional<std::int64_t> count, const space::Space& space) {
  const std::string what = count ? fmt::format("{} configurations are more than {}", *count, kMostRows)
                           : space.listable()
                               ? fmt::format("the space has more than {} configurations", kMostWalkedToCount)
                               : "a space with real ranges has no end of configurations";
  throw UserError(what, count ? "choose some with --where, or so many at random with --sample"
                              : "choose so many at random with --sample");
}

}  // namespace

void for_each_prediction(const session::Session& session, const session::MemoryFilter& filter,
                         const search::Candidates& candidates, const search::History& history,
                         const PredictOptions& options, const std::function<void(const PredictionRow&)>& visit) {
  const std::optional<std::int64_t> count = matching_count(session.space, options.where);
  if (!options.sample && (!count || *count > kMostRows)) refuse_whole(count, session.space);
  const auto fitted = search::fitted_model(session.objective, candidates, history, options.seed);
  const Predictor predictor(session, filter, candidates, history, *fitted);
  std::vector<space::Configuration> block;
  const auto flush = [&] {
    const std::vector<PredictionRow> rows = predictor(block);
    std::for_each(rows.begin(), rows.end(), visit);
    block.clear();
  };
  const auto add = [&](const space::Configuration& configuration) {
    block.push_back(configuration);
    if (block.size() == kRowsAtOnce) flush();
  };
  if (count) {
    Selection selection(*count, options);
    session.space.for_each([&](const space::Configuration& configuration) {
      if ((!options.where || options.where(configuration)) && selection.take()) add(configuration);
      return true;
    });
  } else {
    const std::vector<space::Configuration> configurations = drawn(candidates, options);
    std::for_each(configurations.begin(), configurations.end(), add);
  }
  flush();
}

}  // namespace krigtune::insight
