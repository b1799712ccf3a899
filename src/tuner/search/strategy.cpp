#include "krigtune/tuner/strategy.h"

#include <fmt/format.h>

#include <algorithm>

#include "candidates/candidate_list.h"
#include "krigtune/core/error.h"
#include "krigtune/core/text.h"
#include "search/strategies.h"

namespace krigtune {
namespace {

const RegisteredStrategy& registered(StrategyKind kind) {
  return *std::find_if(kStrategies.begin(), kStrategies.end(),
                       [kind](const RegisteredStrategy& entry) { return entry.kind == kind; });
}

bool has_failed_by(const Trial& trial, FailureReason reason) {
  const auto* failed = trial.outcome ? std::get_if<Failed>(&*trial.outcome) : nullptr;
  return failed != nullptr && failed->reason == reason;
}

}  // namespace

bool is_interrupted(const Trial& trial) { return has_failed_by(trial, FailureReason::kInterrupted); }

bool counts(const Trial& trial) {
  return !trial.waiting && !is_interrupted(trial) && !has_failed_by(trial, FailureReason::kEnvironment);
}

int closed_trials(const History& history) {
  return static_cast<int>(
      std::count_if(history.begin(), history.end(), [](const Trial& trial) { return trial.outcome && counts(trial); }));
}

int counted_trials(const History& history) {
  return static_cast<int>(std::count_if(history.begin(), history.end(), counts));
}

std::optional<double> value_of(const Trial& trial, const Objective& objective) {
  const auto* measured = trial.outcome ? std::get_if<Measured>(&*trial.outcome) : nullptr;
  if (measured == nullptr) return std::nullopt;
  const auto found = measured->metrics.find(objective.field);
  return found == measured->metrics.end() ? std::nullopt : std::optional(found->second);
}

const char* to_string(StrategyKind kind) { return registered(kind).name; }

StrategyKind strategy_kind_from(const std::string& word, const std::string& where) {
  std::vector<std::string> names;
  for (const RegisteredStrategy& entry : kStrategies) {
    if (word == entry.name) return entry.kind;
    names.emplace_back(entry.name);
  }
  throw UserError(fmt::format("{}: unknown strategy '{}'", where, word), suggestion(word, names));
}

std::vector<StrategyKind> all_strategies() {
  std::vector<StrategyKind> kinds;
  for (const RegisteredStrategy& entry : kStrategies) kinds.push_back(entry.kind);
  return kinds;
}

std::unique_ptr<Strategy> make_strategy(StrategyKind kind, const Session& session, const Candidates& candidates,
                                        const StrategyOptions& options) {
  return registered(kind).make(session, candidates, options);
}

bool depends_on_seed(StrategyKind kind, const Session& session) { return registered(kind).depends_on_seed(session); }

std::vector<bool> unseen(const Candidates& candidates, const CandidateList& list, const History& history) {
  std::vector<bool> open(list.size(), true);
  for (const std::string& key : asked_keys(candidates, history)) {
    const auto found = list.index.find(key);
    if (found != list.index.end()) open[found->second] = false;
  }
  return open;
}

Proposal propose(const CandidateList& list, std::size_t index, StrategyKind kind) {
  Proposal proposal;
  proposal.configuration = list.configurations[index];
  proposal.strategy = to_string(kind);
  return proposal;
}

Proposal propose(const Configuration& configuration, StrategyKind kind) {
  Proposal proposal;
  proposal.configuration = configuration;
  proposal.strategy = to_string(kind);
  return proposal;
}

std::optional<Proposal> propose_drawn(const Candidates& candidates, const History& history, Rng& rng,
                                      StrategyKind kind) {
  const std::unordered_set<std::string> asked = asked_keys(candidates, history);
  const std::optional<Configuration> drawn = candidates.draw(
      rng, [&](const Configuration& configuration) { return asked.count(candidates.key(configuration)) > 0; });
  return drawn ? std::optional(propose(*drawn, kind)) : std::nullopt;
}

}  // namespace krigtune
