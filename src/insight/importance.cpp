// Which parameters matter, according to the surrogate. With f the posterior mean of the objective's logarithm, x
// uniform over the configurations that may fit, and x_-i all of its parameters except the i-th,
//
//   total        T_i = E[Var(f | x_-i)] / Var(f)         what remains open if all but x_i are known
//   first order  S_i = Var(E[g_i | x_i]) / Var(f),       g_i = f - E[f | x_-i]
//
// (Sobol 1993, Mathematical Modelling and Computational Experiment 1; Homma & Saltelli 1996, Reliability Engineering &
// System Safety 52). g_i is the effect of x_i while the others stay the same, T_i = Var(g_i) / Var(f), and S_i is the
// part that x_i explains independently of the others. So S_i <= T_i always, by the law of total variance. If every
// combination of values is a configuration, E[g_i | x_i] = E[f | x_i] - E[f], and S_i is Sobol's first-order index: sum
// S_i = 1 for a function without interactions.
//
// Constraints make parameters depend on each other. Var(E[f | x_i]) / Var(f) would then also count what x_i reveals
// about the others (Kucherenko, Tarantola & Annoni 2012, Computer Physics Communications 183), and could exceed T_i: a
// large micro-batch that fits only with sharding would be credited with the effect of sharding. S_i as defined here
// does not. gradient_accumulation_steps is not a parameter of its own if it follows from the micro-batch.
// sobol_indices.cpp has the estimators, also that of interactions. They are exact if the configurations are listed and
// at most 20000 (interactions then use 2000 random rectangles), and sampled otherwise.
//
// The surrogate's own uncertainty: 200 functions are drawn from its posterior (with fixed hyperparameters), and the
// indices of each are computed. The interval contains 95 % of them and is widened to include the value of the mean,
// because draws fluctuate where data are few and the mean does not.
//
// Effects: f(best) - f(best with another value), as in search/model/best.cpp.
#include "insight/importance.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/statistics.h"
#include "core/text.h"
#include "insight/sobol_indices.h"
#include "krigtune/rng.h"
#include "search/model/best.h"
#include "search/model/trial_model.h"

namespace krigtune::insight {

// The covariance C of the posterior at many points has low rank apart from rounding, because functions this smooth
// differ in few ways. Cholesky with pivoting (Harbrecht, Peters & Schneider 2012, Applied Numerical Mathematics 62)
// repeatedly takes the column of the point with the largest unexplained variance,
//
//   l_k = (C(:, p) - sum_{j<k} l_j l_j(p)) / sqrt(d(p)),   d -= l_k^2,   p = argmax d
//
// until every unexplained variance is at most 1e-6 of the largest variance, or the rank is 200. Then C ~ L L^T, and
// draws are L z. Columns of C are computed when they are needed: C(:, p) = k(x, x_p) - V^T V(:, p) with V = L_n^-1 k(X,
// x).

namespace {

constexpr Eigen::Index kMostRank = 200;
constexpr double kUnexplained = 1e-6;  // of the largest variance

Eigen::MatrixXd low_rank_factor(const surrogate::GaussianProcess& process, const surrogate::Points& points) {
  const Eigen::Index count = points.size();
  const Eigen::MatrixXd whitened =
      process.lower().triangularView<Eigen::Lower>().solve(process.prior_covariance(process.points(), points));
  Eigen::VectorXd left = (process.prior_variance(points) - whitened.colwise().squaredNorm().transpose()).cwiseMax(0.0);
  const double enough = kUnexplained * left.maxCoeff();
  Eigen::MatrixXd factor(count, std::min(count, kMostRank));
  Eigen::Index rank = 0;
  for (; rank < factor.cols(); ++rank) {
    Eigen::Index pivot = 0;
    const double variance = left.maxCoeff(&pivot);
    if (!(variance > enough)) break;
    Eigen::VectorXd column = process.prior_covariance(points, points.slice(pivot, 1));
    column.noalias() -= whitened.transpose() * whitened.col(pivot);
    column.noalias() -= factor.leftCols(rank) * factor.row(pivot).head(rank).transpose();
    column /= std::sqrt(variance);
    left = (left - column.cwiseAbs2()).cwiseMax(0.0);
    left(pivot) = 0.0;
    factor.col(rank) = column;
  }
  return factor.leftCols(rank);
}

}  // namespace

Eigen::MatrixXd posterior_deviations(const surrogate::GaussianProcess& process, const surrogate::Points& points,
                                     int count, Rng& rng) {
  const Eigen::MatrixXd factor = low_rank_factor(process, points);
  Eigen::MatrixXd normals(factor.cols(), count);
  for (double& normal : normals.reshaped()) normal = rng.normal();
  return factor * normals;
}

namespace {

constexpr std::size_t kMostWeighed = 20'000;
constexpr int kPosteriorDraws = 200;
constexpr std::size_t kMostPaired = 6;
constexpr int kMostRefused = 200'000;  // draws that `where` may refuse in a row
constexpr double kLeastStddev = 1e-9;  // of the mean over the configurations; below it there is nothing to explain
constexpr std::uint64_t kDrawStream = ~std::uint64_t{1};  // a stream that no trial uses

class ImportanceStudy {
 public:
  ImportanceStudy(const session::Session& session, const search::Candidates& candidates, const search::History& history,
                  const ImportanceOptions& options, const search::TrialModel& fitted)
      : session_(session),
        space_(candidates.space()),
        candidates_(candidates),
        history_(history),
        options_(options),
        model_(fitted),
        rng_(options.seed, kDrawStream) {}

  std::optional<Importance> result() {
    if (ok_trials() < 2 || !make_design()) return std::nullopt;
    add_largest_pairs();
    const surrogate::Points points = model_.encode(design_.points);
    const Eigen::VectorXd mean = model_.predict(points).mean;
    const SobolIndices indices = sobol_indices(design_, mean);
    Importance importance;
    importance.configurations = design_.population;
    importance.sampled = design_.sampled;
    importance.stddev = std::sqrt(indices.variance);
    if (!(importance.stddev > kLeastStddev)) return std::nullopt;
    importance.sampling_error = sampling_error(design_, mean);
    fill_parameters(importance, points, mean, indices);
    fill_effects(importance, mean);
    return importance;
  }

 private:
  std::ptrdiff_t ok_trials() const {
    return std::count_if(history_.begin(), history_.end(), [this](const journal::Trial& trial) {
      return search::counts(trial) && search::value_of(trial, session_.objective).has_value();
    });
  }

  bool belongs(const space::Configuration& configuration) const {
    return candidates_.contains(configuration) && (!options_.where || options_.where(configuration));
  }

  bool make_design() {
    std::vector<space::Configuration> listed;
    for (std::size_t i = 0; candidates_.listed() && i < candidates_.size() && listed.size() <= kMostWeighed; ++i) {
      if (!options_.where || options_.where(candidates_[i])) listed.push_back(candidates_[i]);
    }
    if (candidates_.listed() && listed.size() <= kMostWeighed) {
      design_ = listed_design(space_, std::move(listed));
      return design_.population > 1;
    }
    if (!draw()) return false;
    // Checking whether krigtune-bench's plan fits takes milliseconds.
    const SampleSize size = candidates_.filter().is_exact() ? SampleSize{500, 100} : SampleSize{};
    design_ = sampled_design(
        space_, [this] { return draw().value(); }, [this](const space::Configuration& c) { return belongs(c); }, size);
    return true;
  }

  // Empty if `where` accepts almost nothing.
  std::optional<space::Configuration> draw() {
    for (int i = 0; i < kMostRefused; ++i) {
      std::optional<space::Configuration> drawn =
          candidates_.draw(rng_, [](const space::Configuration&) { return false; });
      if (!drawn) return std::nullopt;
      if (!options_.where || options_.where(*drawn)) return drawn;
    }
    return std::nullopt;
  }

  // Adds only pairs of the most important parameters, because thirty parameters would have 435 pairs.
  void add_largest_pairs() {
    const SobolIndices indices = sobol_indices(design_, model_.predict(model_.encode(design_.points)).mean);
    std::vector<std::size_t> order(design_.axes.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return indices.total(static_cast<Eigen::Index>(a)) > indices.total(static_cast<Eigen::Index>(b));
    });
    std::vector<std::string> names;
    for (const std::size_t i : order) {
      if (names.size() < kMostPaired) names.push_back(design_.axes[i].name());
    }
    const auto contains = [this](const space::Configuration& c) { return belongs(c); };
    add_pairs(space_, contains, names, design_, rng_);
  }

  void fill_parameters(Importance& importance, const surrogate::Points& points, const Eigen::VectorXd& mean,
                       const SobolIndices& indices) {
    const Eigen::MatrixXd deviations =
        model_.latent_unit() *
        posterior_deviations(model_.process(), model_.known_points(points), kPosteriorDraws, rng_);
    std::vector<std::vector<double>> first(design_.axes.size());
    std::vector<std::vector<double>> total(design_.axes.size());
    std::vector<std::vector<double>> pairs(design_.pairs.size());
    for (Eigen::Index draw = 0; draw < deviations.cols(); ++draw) {
      const SobolIndices drawn = sobol_indices(design_, mean + deviations.col(draw));
      for (std::size_t i = 0; i < design_.axes.size(); ++i) {
        first[i].push_back(drawn.first_order(static_cast<Eigen::Index>(i)));
        total[i].push_back(drawn.total(static_cast<Eigen::Index>(i)));
      }
      for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i].push_back(drawn.pairs(static_cast<Eigen::Index>(i)));
    }
    const auto estimate = [](double value, std::vector<double> draws) {
      std::sort(draws.begin(), draws.end());
      return IndexEstimate{value, std::min(value, quantile(draws, 0.025)), std::max(value, quantile(draws, 0.975))};
    };
    for (std::size_t i = 0; i < design_.axes.size(); ++i) {
      const auto axis = static_cast<Eigen::Index>(i);
      const std::vector<std::string>& names = design_.axes[i].names;
      importance.parameters.push_back({design_.axes[i].name(), names.size() > 1 ? names : std::vector<std::string>(),
                                       estimate(indices.total(axis), std::move(total[i])),
                                       estimate(indices.first_order(axis), std::move(first[i]))});
    }
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const SobolPair& pair = design_.pairs[i];
      importance.pairs.push_back({design_.axes[pair.a].name(), design_.axes[pair.b].name(),
                                  estimate(indices.pairs(static_cast<Eigen::Index>(i)), std::move(pairs[i]))});
    }
    std::stable_sort(importance.pairs.begin(), importance.pairs.end(),
                     [](const auto& a, const auto& b) { return a.interaction.value > b.interaction.value; });
    std::stable_sort(importance.parameters.begin(), importance.parameters.end(),
                     [](const auto& a, const auto& b) { return a.total.value > b.total.value; });
  }

  // Returns the recommendation or, in a slice without it, the configuration with the best prediction.
  space::Configuration best(const Eigen::VectorXd& mean) const {
    const auto recommended = search::recommend(session_, candidates_, history_, model_);
    if (recommended && belongs(recommended->configuration)) return recommended->configuration;
    Eigen::Index point = 0;
    mean.maxCoeff(&point);
    return design_.points[static_cast<std::size_t>(point)];
  }

  void fill_effects(Importance& importance, const Eigen::VectorXd& mean) const {
    importance.best = best(mean);
    if (!model_.scale().logarithmic()) return;
    for (const SobolAxis& axis : design_.axes) {
      if (const auto effect = effect_of(axis, importance.best)) importance.effects.push_back(*effect);
    }
    std::stable_sort(importance.effects.begin(), importance.effects.end(), [](const Effect& a, const Effect& b) {
      return std::abs(std::log(a.factor)) > std::abs(std::log(b.factor));
    });
  }

  // Returns its own value, or those of tied parameters: "4 and 4".
  static space::Value value_on(const SobolAxis& axis, const space::Configuration& configuration) {
    if (axis.names.size() == 1) return *configuration.find(axis.names.front());
    std::vector<std::string> texts;
    for (const std::string& name : axis.names) texts.push_back(space::to_string(*configuration.find(name)));
    return join(texts, " and ");
  }

  // Returns the largest clear effect or, if none is clear, the largest of all.
  std::optional<Effect> effect_of(const SobolAxis& axis, const space::Configuration& best) const {
    for (const std::string& name : axis.names) {
      if (best.find(name) == nullptr) return std::nullopt;
    }
    std::vector<space::Configuration> points = {best};
    for (space::Configuration& moved : neighbours(space_, best, axis.names)) {
      if (belongs(moved)) points.push_back(std::move(moved));
    }
    if (points.size() < 2) return std::nullopt;
    const std::vector<search::Gain> gains = search::gains_over_others(model_, points);
    std::vector<space::Value> compared;
    for (std::size_t i = 0; i < gains.size(); ++i) compared.push_back(value_on(axis, points[i + 1]));
    std::optional<Effect> largest;
    for (std::size_t i = 0; i < gains.size(); ++i) {
      const search::Gain& gain = gains[i];
      const Effect effect{axis.name(),   value_on(axis, best), compared[i], gain.factor,
                          gain.lower_95, gain.upper_95,        compared};
      const bool larger = !largest || std::abs(std::log(gain.factor)) > std::abs(std::log(largest->factor));
      if (!largest || (effect.clear() == largest->clear() ? larger : effect.clear())) largest = effect;
    }
    return largest;
  }

  const session::Session& session_;
  const space::Space& space_;
  const search::Candidates& candidates_;
  const search::History& history_;
  const ImportanceOptions& options_;
  const search::TrialModel& model_;
  Rng rng_;
  SobolDesign design_;
};

}  // namespace

std::optional<Importance> importance(const session::Session& session, const search::Candidates& candidates,
                                     const search::History& history, const ImportanceOptions& options) {
  return importance(session, candidates, history, options,
                    *search::fitted_model(session.objective, candidates, history, options.seed));
}

std::optional<Importance> importance(const session::Session& session, const search::Candidates& candidates,
                                     const search::History& history, const ImportanceOptions& options,
                                     const search::TrialModel& fitted) {
  return ImportanceStudy(session, candidates, history, options, fitted).result();
}

}  // namespace krigtune::insight
