#include "run/rival.h"

#include <algorithm>
#include <cmath>

#include "krigtune/tuner/tuner.h"
#include "model/trial_noise.h"

namespace krigtune {

std::optional<Rival> rival_of(const Session& session, const Candidates& candidates, const History& history,
                              const Trial& trial) {
  if (trial.proposal.strategy == kBaselineStrategy || trial.proposal.strategy == kTryStrategy) return std::nullopt;
  const std::string key = candidates.key(trial.proposal.configuration);
  const Trial* best = nullptr;
  for (const Trial& other : history) {
    const std::optional<double> value = value_of(other, session.objective);
    if (!value) continue;
    if (candidates.key(other.proposal.configuration) == key) return std::nullopt;
    if (other.proposal.run != trial.proposal.run) continue;  // by another clock
    if (best == nullptr || session.objective.better(*value, *value_of(*best, session.objective))) best = &other;
  }
  if (best == nullptr) return std::nullopt;
  const double value = *value_of(*best, session.objective);
  const TrialNoise noise(session.objective, candidates, history);
  const double between = noise.between_fraction() * value;
  // Of the best one's run, and of the run that is compared with it.
  const double of_the_best = std::hypot(std::get<Measured>(*best->outcome).value_sem, between);
  return Rival{session.objective.field, session.objective.maximize, value, std::hypot(of_the_best, between)};
}

}  // namespace krigtune
