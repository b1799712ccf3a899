#include "run/tuner.h"

#include <algorithm>
#include <cassert>
#include <unordered_set>

#include "run/current_run.h"
#include "run/repeats.h"
#include "search/candidates/candidate_list.h"
#include "search/model/front.h"

namespace krigtune::run {

namespace {

// A trial that was ended early says too little for a guess that has the same configuration.
bool spares_a_guess(const journal::Trial& trial) {
  const bool is_bounded = trial.outcome && std::holds_alternative<trial::Bounded>(*trial.outcome);
  return search::counts(trial) && !is_bounded;
}

}  // namespace

const journal::Trial* trial_of_try(const search::Candidates& candidates, const search::History& history,
                                   const space::Configuration& configuration) {
  const std::string key = candidates.key(configuration);
  const auto trial = std::find_if(history.begin(), history.end(), [&](const journal::Trial& other) {
    return spares_a_guess(other) && candidates.key(other.proposal.configuration) == key;
  });
  return trial == history.end() ? nullptr : &*trial;
}

Proposer::Proposer(const session::Session& session, const search::Candidates& candidates,
                   const search::Strategy& strategy, const Clock& clock, std::vector<space::Configuration> tries,
                   CurrentRun run)
    : session_(session),
      candidates_(candidates),
      strategy_(strategy),
      clock_(clock),
      tries_(std::move(tries)),
      run_(std::move(run)) {}

std::optional<journal::Proposal> Proposer::next(const search::History& history) const {
  const double begun_s = clock_.now_s();
  std::optional<journal::Proposal> proposal = of_the_user(history);
  if (!proposal) proposal = strategy_.ask(history);
  if (!proposal) return std::nullopt;
  if (std::optional<journal::Proposal> again = leader_again(session_, candidates_, history, run_)) {
    again->outlook = proposal->outlook;
    proposal = std::move(again);
  }
  complete(*proposal, history, begun_s);
  return proposal;
}

std::optional<journal::Proposal> Proposer::next_repeat(const search::History& history, int times) const {
  const double begun_s = clock_.now_s();
  std::optional<journal::Proposal> proposal = run::next_repeat(session_, candidates_, history, times, run_.seed);
  if (proposal) complete(*proposal, history, begun_s);
  return proposal;
}

void Proposer::complete(journal::Proposal& proposal, const search::History& history, double begun_s) const {
  proposal.run = std::max(run_.number, latest_run(history));
  proposal.machine = run_.machine;
  if (const auto memory = candidates_.filter().planned(proposal.configuration)) {
    proposal.predicted_memory = memory->predicted;
  }
  proposal.trials_without_gain = search::trials_without_progress(session_, history);
  proposal.suggest_s = clock_.now_s() - begun_s;
}

std::optional<journal::Proposal> Proposer::of_the_user(const search::History& history) const {
  const auto proposal_of = [&](const space::Configuration& configuration, const char* strategy) {
    journal::Proposal proposal;
    proposal.configuration = configuration;
    proposal.strategy = strategy;
    return proposal;
  };
  const bool baseline_was_asked = std::any_of(history.begin(), history.end(), [](const journal::Trial& trial) {
    return search::counts(trial) && trial.proposal.strategy == search::kBaselineStrategy;
  });
  if (session_.baseline && !baseline_was_asked) return proposal_of(*session_.baseline, search::kBaselineStrategy);
  if (tries_.empty()) return std::nullopt;
  std::unordered_set<std::string> spared;
  for (const journal::Trial& trial : history) {
    if (spares_a_guess(trial)) spared.insert(candidates_.key(trial.proposal.configuration));
  }
  const auto left = std::find_if(tries_.begin(), tries_.end(), [&](const space::Configuration& configuration) {
    return spared.count(candidates_.key(configuration)) == 0;
  });
  return left == tries_.end() ? std::nullopt : std::optional(proposal_of(*left, search::kTryStrategy));
}

std::optional<journal::Trial> Tuner::ask() {
  std::optional<journal::Proposal> proposal = proposer_.next(history_);
  if (!proposal) return std::nullopt;
  journal::Trial trial;
  trial.number = static_cast<int>(history_.size());
  trial.proposal = std::move(*proposal);
  history_.push_back(trial);
  return trial;
}

void Tuner::tell(int trial, trial::Outcome outcome, double wall_s) {
  journal::Trial& closed = history_.at(static_cast<std::size_t>(trial));
  assert(!closed.outcome && "a trial is closed once");
  closed.outcome = std::move(outcome);
  closed.wall_s = wall_s;
}

}  // namespace krigtune::run
