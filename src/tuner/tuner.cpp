#include "krigtune/tuner/tuner.h"

#include <cassert>

namespace krigtune {

Tuner::Tuner(const Session& session, const Candidates& candidates, const Strategy& strategy, const Clock& clock,
             History history)
    : session_(session), candidates_(candidates), strategy_(strategy), clock_(clock), history_(std::move(history)) {}

std::optional<Trial> Tuner::ask() {
  const double begun_s = clock_.now_s();
  Trial trial;
  trial.number = static_cast<int>(history_.size());
  if (session_.baseline && counted_trials(history_) == 0) {
    trial.proposal.configuration = *session_.baseline;
    trial.proposal.strategy = kBaselineStrategy;
    trial.proposal.predicted_memory = candidates_.memory_of(*session_.baseline);
  } else {
    std::optional<Proposal> proposal = strategy_.ask(history_);
    if (!proposal) return std::nullopt;
    trial.proposal = std::move(*proposal);
  }
  trial.proposal.suggest_s = clock_.now_s() - begun_s;
  history_.push_back(trial);
  return trial;
}

void Tuner::tell(int trial, Outcome outcome, double wall_s) {
  Trial& closed = history_.at(static_cast<std::size_t>(trial));
  assert(!closed.outcome && "a trial is closed once");
  closed.outcome = std::move(outcome);
  closed.wall_s = wall_s;
}

void Tuner::set_started(int trial, std::string started_at) {
  history_.at(static_cast<std::size_t>(trial)).started_at = std::move(started_at);
}

}  // namespace krigtune
