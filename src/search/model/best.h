#pragma once
#include <optional>
#include <string>
#include <vector>

#include "search/candidates/candidates.h"
#include "search/model/trial_model.h"
#include "search/trials/history.h"
#include "space/configuration.h"

namespace krigtune::search {

/// How many times better one configuration is than another, by the surrogate: the median and its 95 % interval.
struct Gain {
  double factor = 1.0;  ///< below 1: worse
  double lower_95 = 1.0, upper_95 = 1.0;
  bool clear() const { return lower_95 > 1.0 || upper_95 < 1.0; }
};

/// One parameter that two configurations do not agree about.
struct Change {
  /// What taking back this change alone leads to.
  enum class Alone {
    kPossible,      ///< a configuration of which the surrogate knows something
    kFollows,       ///< nothing: it follows from other parameters (gradient accumulation at a kept batch)
    kNeedsAnother,  ///< no configuration: it has a meaning only with another of the changes
    kTooLarge,      ///< one that does not fit into memory
  };
  std::string parameter;
  std::optional<space::Value> before;  ///< empty: it did not exist
  std::optional<space::Value> after;   ///< empty: it does not exist any more
  Alone alone = Alone::kPossible;
  std::optional<Gain> gain;  ///< of the later configuration over itself with this change taken back; kPossible only
};

/// What lies between two configurations. Gains of single changes need not multiply to that of all together: parameters
/// work on each other.
struct Changes {
  std::vector<Change> each;      ///< in the order of the later configuration, then what it lacks
  std::optional<Gain> together;  ///< of the later configuration over the earlier one
};

/// The configuration to train with: the largest posterior mean among those measured ok, with its evidence.
struct Recommendation {
  int trial = 0;  ///< its best ok trial
  space::Configuration configuration;
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

/// Empty while no trial is ok. Of the fitted model of that history (fitted_model), or by a fit of its own.
std::optional<Recommendation> recommend(const session::Session& session, const Candidates& candidates,
                                        const History& history, const TrialModel& fitted);
std::optional<Recommendation> recommend(const session::Session& session, const Candidates& candidates,
                                        const History& history, std::uint64_t seed);

/// A configuration that was measured ok, all its measurements together.
struct MeasuredMean {
  double value = 0.0;  ///< their mean
  int measurements = 0;
  std::size_t best = 0;  ///< index into the history: the best of them
  bool operator==(const MeasuredMean&) const = default;
};
/// In the order of their first measurements.
std::vector<MeasuredMean> measured_means(const session::Objective& objective, const History& history);

/// For progress: the best mean of a configuration so far, and the trial that gains are relative to. Empty while none is
/// ok.
std::optional<double> best_value(const session::Objective& objective, const History& history);
std::optional<journal::Trial> reference_trial(const session::Objective& objective, const History& history);
/// Closed trials since that best value last rose by more than 1 %: what "patience" counts. 0 before the first ok trial.
int trials_without_gain(const session::Objective& objective, const History& history);
/// How many times `value` is better than `reference`.
double gain_over(const session::Objective& objective, double value, double reference);

/// Gains of the first configuration over each of the others, by the fitted model. Empty where a measured value is not
/// positive: nothing is so many times better then.
std::vector<Gain> gains_over_others(const TrialModel& model, const Candidates& candidates,
                                    const std::vector<space::Configuration>& configurations);

/// The changes from one configuration to the other. Of the fitted model; `history`: what it was fitted to.
Changes changes_between(const TrialModel& model, const Candidates& candidates, const History& history,
                        const space::Configuration& before, const space::Configuration& after);

}  // namespace krigtune::search
