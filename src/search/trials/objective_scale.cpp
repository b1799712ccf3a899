// Expected improvement of a log-normal value. With h ~ N(delta, s^2) the latent's gain over the incumbent y* and
// d = delta / s:
//
//   maximised:  E[(e^h - 1)+]  = e^(delta + s^2/2) Phi(d + s) - Phi(d)
//   minimised:  E[(1 - e^-h)+] = Phi(d) - e^(-delta + s^2/2) Phi(d - s)
//
// (integrals of the normal density; both are multiplied by y*). They are computed as exp(b) expm1(a - b) from the
// logarithms a and b of the two terms. Where a - b has no digits left, e^h - 1 = h to first order gives s (phi(d) + d
// Phi(d)).
#include "search/trials/objective_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "krigtune/surrogate/acquisition.h"

namespace krigtune::search {
namespace {

constexpr double kLeastDifference = 1e-6;  // below it the first-order form is more exact

double log_relative_improvement(double delta, double stddev, bool maximize) {
  const double d = delta / stddev;
  const double half_variance = 0.5 * stddev * stddev;
  const double a =
      maximize ? delta + half_variance + surrogate::log_normal_cdf(d + stddev) : surrogate::log_normal_cdf(d);
  const double b =
      maximize ? surrogate::log_normal_cdf(d) : -delta + half_variance + surrogate::log_normal_cdf(d - stddev);
  if (a - b < kLeastDifference) return std::log(stddev) + surrogate::log_h(d);
  // exp(x) - 1 overflows for a certain and enormous gain, where it equals exp(x).
  constexpr double kLarge = 40.0;
  return a - b > kLarge ? a : b + std::log(std::expm1(a - b));
}

}  // namespace

ObjectiveScale::ObjectiveScale(const session::Objective& objective, const History& history)
    : maximize_(objective.maximize), logarithmic_(objective.by_ratio) {
  for (const journal::Trial& trial : history) {
    const std::optional<double> value = value_of(trial, objective);
    if (value && *value <= 0.0) logarithmic_ = false;
  }
}

double ObjectiveScale::to_latent(double value) const {
  const double scaled = logarithmic_ ? std::log(value) : value;
  return maximize_ ? scaled : -scaled;
}

double ObjectiveScale::from_latent(double latent) const {
  const double scaled = maximize_ ? latent : -latent;
  return logarithmic_ ? std::exp(scaled) : scaled;
}

double ObjectiveScale::latent_variance(double value, double value_sem) const {
  const double sem = logarithmic_ ? value_sem / value : value_sem;
  return sem * sem;
}

double ObjectiveScale::half_width(double mean, double stddev) const {
  return logarithmic_ ? from_latent(mean) * std::sinh(stddev) : stddev;
}

double ObjectiveScale::latent_stddev(double value, double half_width) const {
  return logarithmic_ ? std::asinh(half_width / value) : half_width;
}

double ObjectiveScale::log_expected_improvement(double mean, double stddev, double best) const {
  const double floored = std::max(stddev, 1e-6);  // the same floor as in the surrogate's log_expected_improvement
  const double delta = mean - best;
  if (!logarithmic_) return std::log(floored) + surrogate::log_h(delta / floored);
  return std::log(from_latent(best)) + log_relative_improvement(delta, floored, maximize_);
}

// A single run of a trial sees the noise from step to step, and its standard error sem_w shrinks with the number of
// steps. It cannot see what differs between runs (memory and thread placement, clocks, neighbours): the same
// configuration started again gives a value that is further away than sem_w says. With v the value,
//   sem^2 = sem_w^2 + (f v)^2
//
// f^2 is the variance between runs in the analysis of variance of one random factor (Searle, Casella and McCulloch
// 1992, section 3.6), on relative values: of configurations c that were measured n_c >= 2 times, with mean m_c,
//
//   f^2 = max(0, sum_c sum_i (v_ci - m_c)^2 / m_c^2 / d - mean(sem_ci^2 / m_c^2)),     d = sum_c (n_c - 1)
//
// Few repeats say little about a variance, so the default f_0 is included with the weight of three degrees of freedom,
// (3 f_0^2 + d f^2) / (3 + d). The default of 3 % is the variation of most configurations of experiments/repeatability
// on two cores (pooled 3.7 % beyond what runs state). It is meant to be low, because the surrogate takes stated noise
// as given and learns further noise, common to all trials, by itself.
namespace {

constexpr double kWeightOfDefault = 3.0;  // degrees of freedom

struct Repeats {
  double value;
  double sem;
};

std::map<std::string, std::vector<Repeats>> runs_by_configuration(const session::Objective& objective,
                                                                  const History& history) {
  std::map<std::string, std::vector<Repeats>> runs;
  for (const journal::Trial& trial : history) {
    if (!trial.outcome || !counts(trial)) continue;
    const auto* measured = std::get_if<trial::Measured>(&*trial.outcome);
    const std::optional<double> value = value_of(trial, objective);
    if (measured == nullptr || !(measured->value_sem > 0.0) || !value || !std::isfinite(*value)) continue;
    // Only within one run: differences between days are not noise (run_effects.cpp).
    runs[fmt::format("{} {}", trial.proposal.run, trial.proposal.configuration.text())].push_back(
        {*value, measured->value_sem});
  }
  return runs;
}

}  // namespace

TrialNoise::TrialNoise(const session::Objective& objective, const History& history) {
  double degrees = 0.0;
  double squares = 0.0;
  double within = 0.0;  // weighted by degrees of freedom, like the squares
  for (const auto& [key, runs] : runs_by_configuration(objective, history)) {
    const auto count = static_cast<double>(runs.size());
    double mean = 0.0;
    for (const Repeats& run : runs) mean += run.value / count;
    if (runs.size() < 2 || mean == 0.0) continue;
    for (const Repeats& run : runs) {
      squares += (run.value - mean) * (run.value - mean) / (mean * mean);
      within += run.sem * run.sem / (mean * mean) * (count - 1.0) / count;
    }
    degrees += count - 1.0;
  }
  const double ours = std::max(0.0, squares - within);  // degrees times f^2
  between_fraction_ =
      std::sqrt((kWeightOfDefault * objective.run_noise * objective.run_noise + ours) / (kWeightOfDefault + degrees));
}

double TrialNoise::total_sem(double value, double value_sem) const {
  return value_sem > 0.0 ? std::hypot(value_sem, between_fraction_ * value) : 0.0;
}

}  // namespace krigtune::search
