#include "run/rival.h"

#include <cmath>

#include "search/model/limit_models.h"
#include "search/trials/objective_scale.h"

namespace krigtune::run {

std::optional<trial::Rival> rival_of(const session::Session& session, const search::Candidates& candidates,
                                     const search::History& history, const journal::Trial& trial) {
  if (trial.proposal.strategy == search::kBaselineStrategy || trial.proposal.strategy == search::kTryStrategy)
    return std::nullopt;
  const std::string key = candidates.key(trial.proposal.configuration);
  const journal::Trial* best = nullptr;
  for (const journal::Trial& other : history) {
    const std::optional<double> value = search::value_of(other, session.objective);
    if (!value || !search::broken_limits(session, other).empty()) continue;
    if (candidates.key(other.proposal.configuration) == key) return std::nullopt;
    if (other.proposal.run != trial.proposal.run) continue;  // timed by another clock
    if (best == nullptr || session.objective.better(*value, *search::value_of(*best, session.objective))) best = &other;
  }
  if (best == nullptr) return std::nullopt;
  const double value = *search::value_of(*best, session.objective);
  const search::TrialNoise noise(session.objective, history);
  const double between = noise.between_fraction() * value;
  // The noise between runs affects both the best trial and the run that is compared with it.
  const double of_the_best = std::hypot(std::get<trial::Measured>(*best->outcome).value_sem, between);
  return trial::Rival{session.objective.field, session.objective.maximize, value, std::hypot(of_the_best, between)};
}

}  // namespace krigtune::run
