#include "run/tuner.h"

#include <algorithm>
#include <cassert>
#include <unordered_set>

#include "run/current_run.h"
#include "search/candidates/candidate_list.h"
#include "search/model/best.h"

namespace krigtune {

Proposer::Proposer(const Session& session, const Candidates& candidates, const Strategy& strategy, const Clock& clock,
                   std::vector<Configuration> tries, CurrentRun run)
    : session_(session),
      candidates_(candidates),
      strategy_(strategy),
      clock_(clock),
      tries_(std::move(tries)),
      run_(std::move(run)) {}

std::optional<Proposal> Proposer::next(const History& history) const {
  const double begun_s = clock_.now_s();
  std::optional<Proposal> proposal = of_the_user(history);
  if (!proposal) proposal = strategy_.ask(history);
  if (!proposal) return std::nullopt;
  if (std::optional<Proposal> again = leader_again(session_, candidates_, history, run_)) {
    again->outlook = proposal->outlook;
    proposal = std::move(again);
  }
  proposal->run = std::max(run_.number, latest_run(history));
  proposal->machine = run_.machine;
  if (const auto memory = candidates_.filter().planned(proposal->configuration)) {
    proposal->predicted_memory = memory->predicted;
  }
  proposal->trials_without_gain = trials_without_gain(session_.objective, history);
  proposal->suggest_s = clock_.now_s() - begun_s;
  return proposal;
}

std::optional<Proposal> Proposer::of_the_user(const History& history) const {
  const auto proposal_of = [&](const Configuration& configuration, const char* strategy) {
    Proposal proposal;
    proposal.configuration = configuration;
    proposal.strategy = strategy;
    return proposal;
  };
  const bool baseline_was_asked = std::any_of(history.begin(), history.end(), [](const Trial& trial) {
    return counts(trial) && trial.proposal.strategy == kBaselineStrategy;
  });
  if (session_.baseline && !baseline_was_asked) return proposal_of(*session_.baseline, kBaselineStrategy);
  if (tries_.empty()) return std::nullopt;
  const std::unordered_set<std::string> asked = asked_keys(candidates_, history);
  const auto left = std::find_if(tries_.begin(), tries_.end(), [&](const Configuration& configuration) {
    return asked.count(candidates_.key(configuration)) == 0;
  });
  return left == tries_.end() ? std::nullopt : std::optional(proposal_of(*left, kTryStrategy));
}

std::optional<Trial> Tuner::ask() {
  std::optional<Proposal> proposal = proposer_.next(history_);
  if (!proposal) return std::nullopt;
  Trial trial;
  trial.number = static_cast<int>(history_.size());
  trial.proposal = std::move(*proposal);
  history_.push_back(trial);
  return trial;
}

void Tuner::tell(int trial, Outcome outcome, double wall_s) {
  Trial& closed = history_.at(static_cast<std::size_t>(trial));
  assert(!closed.outcome && "a trial is closed once");
  closed.outcome = std::move(outcome);
  closed.wall_s = wall_s;
}

}  // namespace krigtune
