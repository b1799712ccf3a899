// Uses an earlier run as a prior of this one. Its values are y_i and its configurations x_i; g is the log of what
// physics predicted for them (the run's own physics or, if it has none, this session's):
//
//   r_i = log y_i - g(x_i)            (y_i^-1 if it is minimised; r_i = log y_i without physics)
//   r ~ GP(a, s^2 Matern52) + noise   over the parameters that both have and that varied there
//   prior(x) = t (E[r(x) | r_1, ..., r_n] - median r)
//
// So the residual, the part that physics does not know, carries over, but not the machine. The posterior mean limits
// itself: far from the run's data it is the run's typical value and adds no information. Trials determine how much of
// it is true here. Its coefficient in the surrogate's mean is b ~ Normal(c, 0.5^2), c = 1 / (1 + number of runs),
// integrated out. So an unrelated run loses its influence, and a run that contradicts the data may even get a negative
// coefficient. (Golovin et al. 2017, "Google Vizier", section 3.3, also stack regressors on residuals.)
//
// t is the confidence in the run before there are trials:
//
//   t = clamp(2 rho, 0, 1) * max(0, 1 - sum (r_i - r_-i)^2 / sum (r_i - mean r)^2)
//
// rho is the correlation of log y_i with g(x_i) (without physics the factor is 1): a run that contradicts physics
// completely has something other than this objective in its table. r_-i is the process's prediction of r_i from all
// others (leave-one-out): a run that cannot predict its own trials does not predict others. Below 0.1 the run is
// ignored. On the seven 1B spaces of experiments/data/ultrascale_dev.csv, each warm-started from its neighbours in the
// number of GPUs, values that were shuffled or inverted beforehand cost nothing with physics (without t: 1 to 2
// trials).
#include "forecast/warm_start.h"

#include <algorithm>
#include <cmath>

#include "core/statistics.h"
#include "krigtune/surrogate/surrogate.h"
#include "space/encoder.h"

namespace krigtune::forecast {
namespace {

constexpr double kCoefficientStddev = 0.5;
constexpr double kLeastTrust = 0.1;
constexpr std::size_t kMostTrials =
    150;  // enough to fit in a fraction of a second, because each command of a run fits it again
constexpr Eigen::Index kPointsAtATime = 4096;
// Streams of random numbers that no trial draws from.
constexpr std::uint64_t kFitStream = (std::uint64_t{1} << 62) + (std::uint64_t{1} << 61);

bool same_kind(const space::Value& a, const space::Value& b) {
  return space::is_number(a) ? space::is_number(b) : a.index() == b.index();
}

// Returns the values in the run that have the parameter's kind.
std::vector<space::Value> values_in(const EarlierRun& run, const space::Parameter& parameter) {
  const space::Value example = parameter.continuous() ? space::Value(0.0) : parameter.values.front();
  std::vector<space::Value> values;
  for (const EarlierTrial& trial : run.trials) {
    const space::Value* value = trial.configuration.find(parameter.name);
    if (value == nullptr || !same_kind(*value, example)) continue;
    const auto is_it = [&](const space::Value& other) { return space::same_value(other, *value); };
    if (std::none_of(values.begin(), values.end(), is_it)) values.push_back(*value);
  }
  return values;
}

void add_values(space::Parameter& parameter, const std::vector<space::Value>& more) {
  if (parameter.continuous()) return;  // values outside its range lie beyond its axis
  for (const space::Value& value : more) {
    if (parameter.index_of(value) < 0) parameter.values.push_back(value);
  }
  if (!space::is_number(parameter.values.front())) return;
  std::sort(parameter.values.begin(), parameter.values.end(),
            [](const space::Value& a, const space::Value& b) { return space::as_number(a) < space::as_number(b); });
}

// Returns the parameters that varied in the run, with the values of both; the run has no information about others.
std::vector<space::Parameter> shared(const space::Space& space, const EarlierRun& run) {
  std::vector<space::Parameter> parameters;
  for (const space::Parameter& parameter : space.parameters()) {
    const std::vector<space::Value> values = values_in(run, parameter);
    if (values.size() < 2) continue;
    parameters.push_back(parameter);
    parameters.back().when.reset();  // its condition may depend on parameters that they do not share
    add_values(parameters.back(), values);
  }
  return parameters;
}

space::Space space_of(std::vector<space::Parameter> parameters) {
  space::JobFacts plain;
  plain.well_known = false;
  return {std::move(parameters), plain};
}

// Returns the best trials of a long run and, among the others, a regular selection by rank.
std::vector<EarlierTrial> telling_trials(const EarlierRun& run) {
  std::vector<EarlierTrial> trials = run.trials;
  if (trials.size() <= kMostTrials) return trials;
  std::stable_sort(trials.begin(), trials.end(), [&](const EarlierTrial& a, const EarlierTrial& b) {
    return run.maximize ? a.value > b.value : a.value < b.value;
  });
  constexpr std::size_t kHalf = kMostTrials / 2;
  std::vector<EarlierTrial> chosen(trials.begin(), trials.begin() + kHalf);
  const std::size_t others = trials.size() - kHalf;
  for (std::size_t i = 0; i < kHalf; ++i) chosen.push_back(trials[kHalf + i * (others - 1) / (kHalf - 1)]);
  return chosen;
}

// Uses logarithms if all values have one, otherwise values relative to a typical one.
Eigen::VectorXd latent_values(const EarlierRun& run, const std::vector<EarlierTrial>& trials) {
  std::vector<double> sizes;
  for (const EarlierTrial& trial : trials) sizes.push_back(std::abs(trial.value));
  const bool positive = std::all_of(trials.begin(), trials.end(), [](const auto& trial) { return trial.value > 0.0; });
  const double typical = std::max(median(sizes), 1e-300);
  const double sign = run.maximize ? 1.0 : -1.0;
  Eigen::VectorXd values(static_cast<Eigen::Index>(trials.size()));
  for (Eigen::Index i = 0; i < values.size(); ++i) {
    const double value = trials[static_cast<std::size_t>(i)].value;
    values(i) = sign * (positive ? std::log(value) : value / typical);
  }
  return values;
}

std::vector<space::Configuration> configurations_of(const std::vector<EarlierTrial>& trials) {
  std::vector<space::Configuration> configurations;
  for (const EarlierTrial& trial : trials) configurations.push_back(trial.configuration);
  return configurations;
}

// Returns the run's own predictions or, if it has none, those of `physics`.
Eigen::VectorXd predictions(const std::vector<EarlierTrial>& trials, const Prior& physics) {
  Eigen::VectorXd values = physics.log_values(configurations_of(trials));
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (trials[i].log_predicted) values(static_cast<Eigen::Index>(i)) = *trials[i].log_predicted;
  }
  return values;
}

// Returns 2 rho, clamped to [0, 1].
double agreement(const Eigen::VectorXd& values, const Eigen::VectorXd& predicted) {
  const Eigen::VectorXd y = values.array() - values.mean();
  const Eigen::VectorXd g = predicted.array() - predicted.mean();
  const double norm = y.norm() * g.norm();
  return norm > 0.0 ? std::clamp(2.0 * y.dot(g) / norm, 0.0, 1.0) : 1.0;
}

// Returns R^2 of leave-one-out.
double explained(const surrogate::GaussianProcess& process) {
  constexpr Eigen::Index kFewest = 3;
  const Eigen::VectorXd& values = process.values();
  if (values.size() < kFewest) return 0.0;
  const double all = (values.array() - values.mean()).square().sum();
  const double left = (values - process.leave_one_out().mean).squaredNorm();
  return all > 0.0 ? std::clamp(1.0 - left / all, 0.0, 1.0) : 0.0;
}

class WarmStartPrior final : public Prior {
 public:
  WarmStartPrior(const session::Session& session, const EarlierRun& run, const Prior* physics, std::size_t count)
      : encoder_(space_of(shared(session.space, run))), centre_(1.0 / (1.0 + static_cast<double>(count))) {
    const std::vector<EarlierTrial> trials = telling_trials(run);
    Eigen::VectorXd residuals = latent_values(run, trials);
    if (physics != nullptr) {
      const Eigen::VectorXd predicted = predictions(trials, *physics);
      trust_ = agreement(residuals, predicted);
      residuals -= predicted;
    }
    typical_ = median({residuals.begin(), residuals.end()});
    Rng rng(0, kFitStream);
    surrogate_.fit({encode(configurations_of(trials)), residuals, {}}, rng);
    trust_ *= explained(surrogate_.processes().front());
  }

  double trust() const { return trust_; }

  Eigen::VectorXd log_values(const std::vector<space::Configuration>& configurations) const override {
    const surrogate::Points points = encode(configurations);
    Eigen::VectorXd values(points.size());
    for (Eigen::Index first = 0; first < points.size(); first += kPointsAtATime) {
      const Eigen::Index count = std::min(kPointsAtATime, points.size() - first);
      values.segment(first, count) = trust_ * (surrogate_.predict(points.slice(first, count)).mean.array() - typical_);
    }
    return values;
  }

  Coefficient coefficient() const override { return {centre_, kCoefficientStddev}; }

 private:
  surrogate::Points encode(const std::vector<space::Configuration>& configurations) const {
    const auto count = static_cast<Eigen::Index>(configurations.size());
    surrogate::Points points = surrogate::Points::zero(count, encoder_.ordered_dims(), encoder_.category_dims());
    for (Eigen::Index row = 0; row < count; ++row) {
      const space::EncodedPoint point = encoder_.encode(configurations[static_cast<std::size_t>(row)]);
      for (int column = 0; column < encoder_.ordered_dims(); ++column) {
        points.ordered(row, column) = point.ordered[static_cast<std::size_t>(column)];
      }
      for (int column = 0; column < encoder_.category_dims(); ++column) {
        points.categories(row, column) = point.categories[static_cast<std::size_t>(column)];
      }
    }
    return points;
  }

  space::Encoder encoder_;
  double centre_;
  double typical_ = 0.0;
  double trust_ = 1.0;
  surrogate::Surrogate surrogate_;
};

}  // namespace

std::vector<std::string> shared_parameters(const space::Space& space, const EarlierRun& run) {
  std::vector<std::string> names;
  for (const space::Parameter& parameter : shared(space, run)) names.push_back(parameter.name);
  return names;
}

std::shared_ptr<const Prior> make_warm_start_prior(const session::Session& session, const EarlierRun& run,
                                                   const Prior* physics, std::size_t count) {
  auto prior = std::make_shared<const WarmStartPrior>(session, run, physics, count);
  return prior->trust() >= kLeastTrust ? prior : nullptr;
}

Priors make_priors(const session::Session& session, const session::MemoryFilter& filter, const EarlierRuns& runs) {
  Priors priors;
  const auto physics = make_physics_prior(session, filter);
  if (physics) priors.push_back(physics);
  for (const EarlierRun& run : runs) {
    if (auto prior = make_warm_start_prior(session, run, physics.get(), runs.size()))
      priors.push_back(std::move(prior));
  }
  return priors;
}

}  // namespace krigtune::forecast
