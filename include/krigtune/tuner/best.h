#pragma once
#include <optional>
#include <vector>

#include "krigtune/tuner/candidates.h"
#include "krigtune/tuner/changes.h"
#include "krigtune/tuner/history.h"

namespace krigtune {

/// The configuration to train with: the largest posterior mean among those measured ok, with its evidence.
struct Recommendation {
  int trial = 0;  ///< its best ok trial
  Configuration configuration;
  double value = 0.0;           ///< mean of its ok measurements, in the objective's units
  int measurements = 1;         ///< how many these are
  double value_sem = 0.0;       ///< standard error of the mean: by their scatter, of a single one as stated; 0: unknown
  double posterior_mean = 0.0;  ///< posterior median, likewise
  double lower_95 = 0.0;        ///< of what it achieves, likewise
  double upper_95 = 0.0;
  int reference_trial = 0;  ///< what gains are relative to: trial 0, or the first ok trial where trial 0 is not ok
  double reference_value = 0.0;
  double gain = 1.0;  ///< how many times better than the reference: value / reference, or its inverse when minimised
  /// From the session's baseline, or where it has none the reference trial's configuration.
  Changes changes;
};

/// Empty while no trial is ok.
std::optional<Recommendation> recommend(const Session& session, const Candidates& candidates, const History& history,
                                        std::uint64_t seed);

/// A configuration that was measured ok, all its measurements together.
struct MeasuredMean {
  double value = 0.0;  ///< their mean
  int measurements = 0;
  std::size_t best = 0;  ///< index into the history: the best of them
  bool operator==(const MeasuredMean&) const = default;
};
/// In the order of their first measurements.
std::vector<MeasuredMean> measured_means(const Objective& objective, const History& history);

/// For progress: the best mean of a configuration so far, and the trial that gains are relative to. Empty while none is
/// ok.
std::optional<double> best_value(const Objective& objective, const History& history);
std::optional<Trial> reference_trial(const Objective& objective, const History& history);
/// Closed trials since that best value last rose by more than 1 %: what "patience" counts. 0 before the first ok trial.
int trials_without_gain(const Objective& objective, const History& history);
/// How many times `value` is better than `reference`.
double gain_over(const Objective& objective, double value, double reference);

}  // namespace krigtune
