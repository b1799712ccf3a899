#include "stagewise/answers.h"

#include <cmath>
#include <limits>

#include "krigtune/tuner/run_effects.h"

namespace krigtune {
namespace {

std::optional<Tried> tried_of(const Trial& trial, const RunEffects& effects) {
  if (!trial.outcome) return std::nullopt;
  std::optional<double> value = effects.value_of(trial);
  if (const auto* bounded = std::get_if<Bounded>(&*trial.outcome)) {
    value = bounded->at_best * effects.factor(trial.proposal.run);
  }
  return value && std::isfinite(*value) ? Tried{true, *value} : Tried{};
}

}  // namespace

Answers::Answers(const Candidates& candidates, const Objective& objective, const History& history)
    : candidates_(candidates) {
  const RunEffects effects(objective, history);
  for (const Trial& trial : history) {
    if (!counts(trial)) continue;
    const std::optional<Tried> tried = tried_of(trial, effects);
    std::optional<Tried>& known = known_[candidates.key(trial.proposal.configuration)];
    const bool is_better =
        tried && (!known || (tried->ran && (!known->ran || objective.better(tried->value, known->value))));
    if (is_better) known = tried;
  }
}

std::optional<Tried> Answers::operator()(const Configuration& configuration) {
  const auto found = known_.find(candidates_.key(configuration));
  if (found == known_.end()) {
    if (!question_) question_ = configuration;
    return std::nullopt;
  }
  waits_ = waits_ || !found->second;
  return found->second;
}

double gain(const Objective& objective, double from, double to) {
  const double difference = objective.maximize ? to - from : from - to;
  if (difference == 0.0) return 0.0;
  return from == 0.0 ? std::copysign(std::numeric_limits<double>::infinity(), difference) : difference / std::abs(from);
}

}  // namespace krigtune
