// A machine is not the same every day: with another allocation or another neighbour, all steps take longer by one
// factor. With f_c what configuration c achieves in the first run, r the run of trial t, and y in nats (larger is
// better),
//
//   y_t = f_c + u_r + e_t,   u_0 = 0,   u_r ~ Normal(0, s_u^2),   e_t ~ Normal(0, v_t),   s_u = 0.7
//
// where u is a random effect of the run. s_u makes a factor of two either way one standard deviation. Sinha et al. 2022
// ("Not all GPUs are created equal") find single GPUs of one cluster up to 1.5 times slower than their median, a shared
// link or processor halves the remaining speed, and more than 1.4 standard deviations are a factor of 2.7. One
// measurement outweighs such a prior: a single repeat estimates a factor of 1.8 with an error of less than 1 % from the
// prior.
//
// Several trials of c inform f_c by their mean, and u by their differences, which do not depend on f_c (and are
// independent of the mean if the v_t are alike). So there are two stages, which together are exact. The first stage is
// here: f_c has a flat prior, so only the differences remain. With w_t = 1 / v_t and x_t the run's unit vector (0 in
// the first run)
//
//   C^-1 = I / s_u^2 + sum_c (sum_t w_t x_t x_t^T - z_c z_c^T / W_c)        z_c = sum_t w_t x_t,  W_c = sum_t w_t
//   E[u] = C sum_c (sum_t w_t x_t y_t - z_c sum_t w_t y_t / W_c)
//
// (Rasmussen & Williams 2006, section 2.7, on a flat prior.) The second stage is the surrogate: the means are converted
// to the scale of one run by E[u], and C is the covariance of further coefficients of its mean function
// (objective_model.cpp).
//
// v_t = (sem / value)^2 + run_noise^2 is what a trial states plus the variation between runs (objective_scale.cpp). The
// default of the latter is used, because its estimate would need values on one scale.
#include "search/trials/run_effects.h"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <vector>

#include "search/trials/objective_scale.h"

namespace krigtune::search {
namespace {

constexpr double kEffectStddev = 0.7;

struct Measurement {
  Eigen::Index column;  ///< of the run; -1: the first run
  double latent;
  double weight;
};
using Measurements = std::map<std::string, std::vector<Measurement>>;  // by configuration

/// C^-1, and the vector that C is multiplied by (see above).
struct Evidence {
  explicit Evidence(Eigen::Index runs)
      : precision(Eigen::MatrixXd::Identity(runs, runs) / (kEffectStddev * kEffectStddev)),
        weighted(Eigen::VectorXd::Zero(runs)) {}

  void add(const std::vector<Measurement>& of_one_configuration) {
    Eigen::VectorXd z = Eigen::VectorXd::Zero(weighted.size());
    double weights = 0.0;
    double values = 0.0;
    for (const Measurement& one : of_one_configuration) {
      weights += one.weight;
      values += one.weight * one.latent;
      if (one.column < 0) continue;
      z(one.column) += one.weight;
      precision(one.column, one.column) += one.weight;
      weighted(one.column) += one.weight * one.latent;
    }
    precision -= z * z.transpose() / weights;
    weighted -= z * values / weights;
  }

  Eigen::MatrixXd precision;
  Eigen::VectorXd weighted;
};

bool is_measured(const journal::Trial& trial, const session::Objective& objective) {
  const std::optional<double> value = value_of(trial, objective);
  return value && counts(trial) && std::isfinite(*value);
}

// All values must be positive.
Measurements measurements_of(const session::Objective& objective, const History& history, const ObjectiveScale& scale,
                             const std::map<int, Eigen::Index>& columns) {
  Measurements measurements;
  for (const journal::Trial& trial : history) {
    if (!is_measured(trial, objective)) continue;
    const auto column = columns.find(trial.proposal.run);
    const double value = *value_of(trial, objective);
    const double sem = std::get<trial::Measured>(*trial.outcome).value_sem / value;
    const double variance = sem * sem + objective.run_noise * objective.run_noise;
    measurements[trial.proposal.configuration.text()].push_back(
        {column == columns.end() ? -1 : column->second, scale.to_latent(value), 1.0 / variance});
  }
  return measurements;
}

}  // namespace

RunEffects::RunEffects(const session::Objective& objective, const History& history) : objective_(objective) {
  for (const journal::Trial& trial : history) {
    const int run = trial.proposal.run;
    if (run > 0) column_.emplace(run, 0);
    if (is_measured(trial, objective)) latest_ = std::max(latest_, run);
  }
  const ObjectiveScale scale(objective, history);
  if (!scale.logarithmic()) column_.clear();
  Eigen::Index columns = 0;
  for (auto& [run, column] : column_) column = columns++;
  mean_ = Eigen::VectorXd::Zero(columns);
  if (columns == 0) return;
  Evidence evidence(columns);
  for (const auto& [configuration, of_one] : measurements_of(objective, history, scale, column_)) {
    evidence.add(of_one);
  }
  const Eigen::MatrixXd covariance = evidence.precision.llt().solve(Eigen::MatrixXd::Identity(columns, columns));
  mean_ = covariance * evidence.weighted;
  lower_ = covariance.llt().matrixL();
}

double RunEffects::shift(int run) const {
  const auto effect = [this](int of) {
    const auto column = column_.find(of);
    return column == column_.end() ? 0.0 : mean_(column->second);
  };
  return effect(latest_) - effect(run);
}

double RunEffects::factor(int run) const { return std::exp(objective_.maximize ? shift(run) : -shift(run)); }

Eigen::RowVectorXd RunEffects::uncertainty(int run) const {
  Eigen::RowVectorXd row = Eigen::RowVectorXd::Zero(columns());
  if (run == latest_) return row;
  const auto here = column_.find(run);
  const auto there = column_.find(latest_);
  if (here != column_.end()) row += lower_.row(here->second);
  if (there != column_.end()) row -= lower_.row(there->second);
  return row;
}

std::optional<double> RunEffects::value_of(const journal::Trial& trial) const {
  const std::optional<double> value = krigtune::search::value_of(trial, objective_);
  return value ? std::optional(*value * factor(trial.proposal.run)) : std::nullopt;
}

std::string run_effect_sentence(const session::Objective& objective, const History& history) {
  constexpr double kLeastNats = 0.05;
  constexpr double kClear = 2.0;  // standard deviations
  const RunEffects effects(objective, history);
  const double shift = effects.shift(0);  // below 0: slower than in the first run
  if (std::abs(shift) < std::max(kLeastNats, kClear * effects.stddev(0))) return "";
  const auto again = std::find_if(history.begin(), history.end(), [&](const journal::Trial& trial) {
    return trial.proposal.run == effects.latest() && trial.proposal.strategy == kAgainStrategy &&
           is_measured(trial, objective);
  });
  const std::string evidence =
      again == history.end() ? "" : fmt::format(" (leader measured again as trial {})", again->number);
  return fmt::format("The machine is {:.2g} times {} than in the first run{}; values are compared through that factor.",
                     std::exp(std::abs(shift)), shift < 0.0 ? "slower" : "faster", evidence);
}

}  // namespace krigtune::search
