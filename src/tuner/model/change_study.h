#pragma once
#include "krigtune/tuner/changes.h"
#include "model/trial_model.h"

namespace krigtune {

/// Gains of the first configuration over each of the others, by the fitted model. Empty where a measured value is not
/// positive: nothing is so many times better then.
std::vector<Gain> gains_over_others(const TrialModel& model, const Candidates& candidates,
                                    const std::vector<Configuration>& configurations);

/// The changes from one configuration to the other. Of the fitted model; `history`: what it was fitted to.
Changes changes_between(const TrialModel& model, const Candidates& candidates, const History& history,
                        const Configuration& before, const Configuration& after);

}  // namespace krigtune
