#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "search/candidates/candidates.h"
#include "search/model/relevant_trials.h"
#include "search/trials/history.h"

namespace krigtune::search {

/// Why a strategy proposes nothing.
enum class Idle {
  kAllTried,    ///< every configuration was asked
  kNoProposal,  ///< it does not want any of the remaining ones
  kWaits,       ///< the next proposal depends on pending trials
};

/// Proposes what to try next.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// A pure function of the history and of the constructor's arguments. It never proposes a pending or closed
  /// configuration, with one exception: a measured configuration may be repeated to decide which one is best, and
  /// Proposal::repeat_of then says so. Empty: why_idle() has the reason.
  virtual std::optional<journal::Proposal> ask(const History& history) const = 0;
  /// Call only after `ask` returned nothing for this history.
  virtual Idle why_idle(const History& /*history*/) const { return Idle::kAllTried; }
  /// Returns one line for people about what it leaves out; empty if nothing.
  virtual std::string left_out(const History& /*history*/) const { return ""; }
};

struct StrategyOptions {
  std::uint64_t seed = 1;
  int trials = 30;                       ///< the budget; `grid` uses it to choose its sub-grid
  bool repeats = true;                   ///< `bayes` repeats measurements of configurations whose order is within noise
  Eigen::Index most_exact = kMostExact;  ///< for TrialModel of `bayes`; if there are fewer trials, the model is exact
};

// One maker per strategy. `session` and `candidates` must outlive the result.
std::unique_ptr<Strategy> make_bayes(const session::Session& session, const Candidates& candidates,
                                     const StrategyOptions&);
std::unique_ptr<Strategy> make_random(const session::Session& session, const Candidates& candidates,
                                      const StrategyOptions&);
std::unique_ptr<Strategy> make_grid(const session::Session& session, const Candidates& candidates,
                                    const StrategyOptions&);
std::unique_ptr<Strategy> make_stagewise(const session::Session& session, const Candidates& candidates,
                                         const StrategyOptions&);

enum class StrategyKind { kBayes, kRandom, kGrid, kStagewise };

/// The registry: a strategy consists of its maker, its enumerator and its row here. Sessions, the command line,
/// `compare` and the journal use its name.
struct RegisteredStrategy {
  StrategyKind kind;
  const char* name;
  std::unique_ptr<Strategy> (*make)(const session::Session&, const Candidates&, const StrategyOptions&);
  /// False if every seed gives the same proposals; such a strategy is compared with a single run.
  bool (*depends_on_seed)(const session::Session&);
};
inline constexpr std::array kStrategies = {
    RegisteredStrategy{StrategyKind::kBayes, "bayes", make_bayes, [](const session::Session&) { return true; }},
    RegisteredStrategy{StrategyKind::kRandom, "random", make_random, [](const session::Session&) { return true; }},
    RegisteredStrategy{StrategyKind::kGrid, "grid", make_grid,
                       [](const session::Session& session) { return session.grid.order == session::GridOrder::kSeed; }},
    RegisteredStrategy{StrategyKind::kStagewise, "stagewise", make_stagewise,
                       [](const session::Session& session) {
                         const session::StagewiseOptions& options = session.stagewise;
                         return !options.fast && options.tuner != session::SpaceTuner::kGridSearch;
                       }},
};

const char* to_string(StrategyKind kind);
/// Throws UserError with the nearest name; `where` says where the word was given.
StrategyKind strategy_kind_from(const std::string& word, const std::string& where);
std::vector<StrategyKind> all_strategies();
std::vector<std::string> strategy_names();

std::unique_ptr<Strategy> make_strategy(StrategyKind kind, const session::Session& session,
                                        const Candidates& candidates, const StrategyOptions& options);
bool depends_on_seed(StrategyKind kind, const session::Session& session);

// Shared by the strategies:

/// Returns one flag per candidate of the list: whether it may still be asked.
std::vector<bool> unseen(const Candidates& candidates, const CandidateList& list, const History& history);

/// Makes a proposal of the candidate, with the plan's information about it.
journal::Proposal propose(const CandidateList& list, std::size_t index, StrategyKind kind);
journal::Proposal propose(const space::Configuration& configuration, StrategyKind kind);
/// Proposes a random configuration that was not asked; empty if none was found.
std::optional<journal::Proposal> propose_drawn(const Candidates& candidates, const History& history, Rng& rng,
                                               StrategyKind kind);

}  // namespace krigtune::search
