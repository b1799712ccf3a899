#pragma once
#include <optional>
#include <string>
#include <vector>

#include "search/candidates/candidates.h"
#include "search/model/job_summary.h"
#include "search/model/trial_model.h"
#include "search/trials/history.h"
#include "space/configuration.h"

namespace krigtune::search {

/// How many times better one configuration is than another according to the surrogate: median and 95 % interval.
struct Gain {
  double factor = 1.0;  ///< below 1: worse
  double lower_95 = 1.0, upper_95 = 1.0;
  bool clear() const { return lower_95 > 1.0 || upper_95 < 1.0; }
};

/// A parameter in which two configurations differ.
struct Change {
  /// The result of reverting only this change:
  enum class Alone {
    kPossible,      ///< a configuration that the surrogate can judge
    kFollows,       ///< no change: the value follows from other parameters (gradient accumulation with a fixed batch)
    kNeedsAnother,  ///< not a configuration: the value requires another of the changes
    kTooLarge,      ///< a configuration that does not fit into memory
  };
  std::string parameter;
  std::optional<space::Value> before;  ///< empty: it did not exist
  std::optional<space::Value> after;   ///< empty: it no longer exists
  Alone alone = Alone::kPossible;
  std::optional<Gain> gain;  ///< kPossible only: gain of the later configuration over itself with this change reverted
};

/// The differences between two configurations. The gains of single changes need not multiply to the total gain, because
/// parameters interact.
struct Changes {
  std::vector<Change> each;  ///< in the order of the later configuration, then parameters that it lacks
  /// The gain of the later configuration over the earlier one. If a recommendation and its baseline were both measured,
  /// it compares what they achieve; otherwise it is the surrogate's, like the gains of single changes.
  std::optional<Gain> together;
};

/// The configuration to train with: the largest posterior mean among the successfully measured ones, with its evidence.
/// With several objectives: the largest of the first one among the members of the front, or the member that the session
/// prefers.
struct Recommendation {
  int trial = 0;  ///< its best successful trial
  space::Configuration configuration;
  double value = 0.0;    ///< mean of its successful measurements, in the objective's units
  int measurements = 1;  ///< number of these measurements
  /// Standard error of the mean, from the scatter or, for a single one, as stated; 0: unknown.
  double value_sem = 0.0;
  double posterior_mean = 0.0;  ///< posterior median, in the objective's units
  double lower_95 = 0.0;        ///< 95 % interval of its true value, in the objective's units
  double upper_95 = 0.0;
  int reference_trial = 0;  ///< reference of the gain: trial 0 or, if that did not succeed, the first successful trial
  double reference_value = 0.0;    ///< mean of the successful measurements of its configuration
  int reference_measurements = 1;  ///< number of these measurements
  double gain = 1.0;  ///< how many times better than the reference: value / reference, or its inverse if minimised
  /// The same by the model of all trials, with its 95 % interval. Empty if the reference is of this configuration, and
  /// if a measured value is not positive.
  std::optional<Gain> gain_by_model = {};
  /// From the session's baseline or, if it has none, from the reference trial's configuration.
  Changes changes;
  std::optional<JobSummary> job = {};  ///< what is believed about the job; empty: the models know nothing of it
};

/// Empty while no trial has succeeded within the limits. Uses the fitted model of that history (fitted_model), or fits
/// its own.
std::optional<Recommendation> recommend(const session::Session& session, const Candidates& candidates,
                                        const History& history, const TrialModel& fitted);
std::optional<Recommendation> recommend(const session::Session& session, const Candidates& candidates,
                                        const History& history, std::uint64_t seed);

/// Returns what a history says about the job, also if no trial succeeded. Empty if the models know nothing of it.
std::optional<JobSummary> job_summary(const session::Objective& objective, const Candidates& candidates,
                                      const History& history);

/// A successfully measured configuration with all its measurements.
struct MeasuredMean {
  double value = 0.0;  ///< mean of the measurements
  int measurements = 0;
  std::size_t best = 0;  ///< index of the best of them in the history
  bool operator==(const MeasuredMean&) const = default;
};
/// Returns them in the order of their first measurements.
std::vector<MeasuredMean> measured_means(const session::Objective& objective, const History& history);

/// Return, for progress reports, the best mean of a configuration so far and the reference trial of gains. Empty while
/// no trial has succeeded.
std::optional<double> best_value(const session::Objective& objective, const History& history);
std::optional<journal::Trial> reference_trial(const session::Objective& objective, const History& history);
/// Returns the number of closed trials since the best value last rose by more than 1 %, for "patience"; 0 before the
/// first success.
int trials_without_gain(const session::Objective& objective, const History& history);
/// Returns how many times `value` is better than `reference`.
double gain_over(const session::Objective& objective, double value, double reference);

/// Returns the gains of the first configuration over each of the others by the fitted model. Empty if a measured value
/// is not positive, because ratios are then meaningless.
std::vector<Gain> gains_over_others(const TrialModel& model, const std::vector<space::Configuration>& configurations);

/// Returns the changes from one configuration to the other, by the fitted model; `history`: the history that it was
/// fitted to.
Changes changes_between(const TrialModel& model, const Candidates& candidates, const History& history,
                        const space::Configuration& before, const space::Configuration& after);

}  // namespace krigtune::search
