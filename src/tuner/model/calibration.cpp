// A surrogate with hyperparameters fitted to ten trials is surer than it should be, and real clusters have rows that
// are 2 to 30 times slower than their neighbours for reasons that nobody models. Each trial tests a prediction that was
// made before it was run (the prequential principle: Dawid 1984, "Statistical theory: the prequential approach"), so
// the session itself says how wide its intervals must be. With z_i the error of trial i's prediction in the surrogate's
// standard deviations,
//
//   z_i ~ Student t with nu = 4 degrees of freedom and scale s,   s^2 starts as if kPriorTrials trials had said s = 1
//   s^2 = (kPriorTrials + sum_i w_i z_i^2) / (kPriorTrials + n),   w_i = (nu + 1) / (nu + z_i^2 / s^2)
//
// (the EM algorithm for t errors: Lange, Little & Taylor 1989, "Robust statistical modeling using the t distribution"),
// and the factor makes a normal interval of 90 % as wide as that of s t, but never narrower than the surrogate says:
// three trials near their predictions are no reason to be surer. Errors beyond 6 count as 6: one link that retransmits
// widens intervals, and does not end all knowledge.
#include "model/calibration.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "krigtune/tuner/best.h"

namespace krigtune {
namespace {

constexpr double kDegrees = 4.0;                 // nu
constexpr double kPriorTrials = 3.0;             // that the prior is worth
constexpr double kLargestError = 6.0;            // z
constexpr double kWidthRatio = 2.1318 / 1.6449;  // 95 % points of t with 4 degrees of freedom and of the normal
constexpr int kMostSteps = 50;

// Errors in standard deviations that nobody had widened.
std::vector<double> prediction_errors(const Objective& objective, const ObjectiveScale& scale, const History& history) {
  std::vector<double> errors;
  for (const Trial& trial : history) {
    const Proposal& proposal = trial.proposal;
    const std::optional<double> value = value_of(trial, objective);
    if (!value || proposal.repeat_of || !proposal.predicted_value || !proposal.predicted_stddev) continue;
    const double predicted = *proposal.predicted_value;
    if (scale.logarithmic() && !(predicted > 0.0)) continue;
    const double stddev = scale.latent_stddev(predicted, *proposal.predicted_stddev) / proposal.widening;
    const double error = (scale.to_latent(*value) - scale.to_latent(predicted)) / stddev;
    if (std::isfinite(error)) errors.push_back(std::min(std::abs(error), kLargestError));
  }
  return errors;
}

double student_scale(const std::vector<double>& errors) {
  double square = 1.0;
  for (int step = 0; step < kMostSteps; ++step) {
    double sum = kPriorTrials;
    for (const double error : errors) sum += (kDegrees + 1.0) / (kDegrees + error * error / square) * error * error;
    square = sum / (kPriorTrials + static_cast<double>(errors.size()));
  }
  return std::sqrt(square);
}

}  // namespace

double learned_widening(const Objective& objective, const ObjectiveScale& scale, const History& history) {
  return std::max(1.0, kWidthRatio * student_scale(prediction_errors(objective, scale, history)));
}

}  // namespace krigtune
