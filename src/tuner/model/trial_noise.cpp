// A run of a trial sees the noise from step to step, and its standard error sem_w shrinks with the steps. What differs
// from run to run (where threads and memory land, clocks, neighbours) it cannot see: the same configuration started
// again gives another value, further away than sem_w says. With v the value,
//
//   sem^2 = sem_w^2 + (f v)^2
//
// f^2 is the variance between runs in the analysis of variance of one random factor (Searle, Casella and McCulloch
// 1992, section 3.6), on relative values: of configurations c that were measured n_c >= 2 times, with mean m_c,
//
//   f^2 = max(0, sum_c sum_i (v_ci - m_c)^2 / m_c^2 / d - mean(sem_ci^2 / m_c^2)),     d = sum_c (n_c - 1)
//
// Few repeats say little about a variance: the default joins in with the weight of three degrees of freedom,
// (3 f_0^2 + d f^2) / (3 + d). The default is what most of the
// configurations of experiments/repeatability are apart on two cores (3 %; pooled 3.7 % beyond what runs state). It is
// meant to be low: what is stated here the surrogate takes for granted, and it learns further noise, common to all
// trials, by itself.
#include "model/trial_noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace krigtune {
namespace {

constexpr double kWeightOfDefault = 3.0;  // degrees of freedom

struct Repeats {
  double value;
  double sem;
};

std::map<std::string, std::vector<Repeats>> runs_by_configuration(const Objective& objective,
                                                                  const Candidates& candidates,
                                                                  const History& history) {
  std::map<std::string, std::vector<Repeats>> runs;
  for (const Trial& trial : history) {
    if (!trial.outcome || !counts(trial)) continue;
    const auto* measured = std::get_if<Measured>(&*trial.outcome);
    const std::optional<double> value = value_of(trial, objective);
    if (measured == nullptr || !(measured->value_sem > 0.0) || !value || !std::isfinite(*value)) continue;
    // Of one clock: what days differ by is no noise (run_effects.cpp).
    runs[fmt::format("{} {}", trial.proposal.run, candidates.key(trial.proposal.configuration))].push_back(
        {*value, measured->value_sem});
  }
  return runs;
}

}  // namespace

TrialNoise::TrialNoise(const Objective& objective, const Candidates& candidates, const History& history) {
  double degrees = 0.0;
  double squares = 0.0;
  double within = 0.0;  // weighted like the squares: by degrees of freedom
  for (const auto& [key, runs] : runs_by_configuration(objective, candidates, history)) {
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
      std::sqrt((kWeightOfDefault * kDefaultFraction * kDefaultFraction + ours) / (kWeightOfDefault + degrees));
}

double TrialNoise::total_sem(double value, double value_sem) const {
  return value_sem > 0.0 ? std::hypot(value_sem, between_fraction_ * value) : 0.0;
}

}  // namespace krigtune
