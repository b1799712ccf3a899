#include "search/strategies/strategy.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "search/candidates/candidate_list.h"
#include "search/strategies/strategy.h"

namespace krigtune::search {
namespace {

const RegisteredStrategy& registered(StrategyKind kind) {
  return *std::find_if(kStrategies.begin(), kStrategies.end(),
                       [kind](const RegisteredStrategy& entry) { return entry.kind == kind; });
}

}  // namespace

const char* to_string(StrategyKind kind) { return registered(kind).name; }

StrategyKind strategy_kind_from(const std::string& word, const std::string& where) {
  for (const RegisteredStrategy& entry : kStrategies) {
    if (word == entry.name) return entry.kind;
  }
  throw UserError(fmt::format("{}: unknown strategy '{}'", where, word), suggestion(word, strategy_names()));
}

std::vector<StrategyKind> all_strategies() {
  std::vector<StrategyKind> kinds;
  for (const RegisteredStrategy& entry : kStrategies) kinds.push_back(entry.kind);
  return kinds;
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const RegisteredStrategy& entry : kStrategies) names.emplace_back(entry.name);
  return names;
}

std::unique_ptr<Strategy> make_strategy(StrategyKind kind, const session::Session& session,
                                        const Candidates& candidates, const StrategyOptions& options) {
  return registered(kind).make(session, candidates, options);
}

bool depends_on_seed(StrategyKind kind, const session::Session& session) {
  return registered(kind).depends_on_seed(session);
}

std::vector<bool> unseen(const Candidates& candidates, const CandidateList& list, const History& history) {
  std::vector<bool> open(list.size(), true);
  for (const std::string& key : asked_keys(candidates, history)) {
    const auto found = list.index.find(key);
    if (found != list.index.end()) open[found->second] = false;
  }
  return open;
}

journal::Proposal propose(const CandidateList& list, std::size_t index, StrategyKind kind) {
  journal::Proposal proposal;
  proposal.configuration = list.configurations[index];
  proposal.strategy = to_string(kind);
  return proposal;
}

journal::Proposal propose(const space::Configuration& configuration, StrategyKind kind) {
  journal::Proposal proposal;
  proposal.configuration = configuration;
  proposal.strategy = to_string(kind);
  return proposal;
}

std::optional<journal::Proposal> propose_drawn(const Candidates& candidates, const History& history, Rng& rng,
                                               StrategyKind kind) {
  const std::unordered_set<std::string> asked = asked_keys(candidates, history);
  const std::optional<space::Configuration> drawn = candidates.draw(
      rng, [&](const space::Configuration& configuration) { return asked.count(candidates.key(configuration)) > 0; });
  return drawn ? std::optional(propose(*drawn, kind)) : std::nullopt;
}

}  // namespace krigtune::search
