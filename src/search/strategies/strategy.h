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

/// Why a strategy asks nothing.
enum class Idle {
  kAllTried,  ///< every configuration was asked
  kThrough,   ///< what is left it does not want
  kWaits,     ///< what comes next depends on trials that are pending
};

/// Proposes what to try next.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// A pure function of the history and of what the strategy was made with. Never a configuration that is pending or
  /// was closed, but for one that was measured and is asked again on purpose, to settle which is the best:
  /// Proposal::repeat_of says so. Empty: why_idle() says why.
  virtual std::optional<journal::Proposal> ask(const History& history) const = 0;
  /// Call only after `ask` returned nothing for this history.
  virtual Idle why_idle(const History& /*history*/) const { return Idle::kAllTried; }
  /// One line for people on what it leaves out; empty: nothing.
  virtual std::string left_out(const History& /*history*/) const { return ""; }
};

struct StrategyOptions {
  std::uint64_t seed = 1;
  int trials = 30;                       ///< the budget: `grid` chooses its sub-grid by it
  bool repeats = true;                   ///< `bayes` measures configurations again where their order is within noise
  Eigen::Index most_exact = kMostExact;  ///< `bayes`: of TrialModel; more than there are trials: exact always
};

// One maker a strategy. `session` and `candidates` must outlive what it makes.
std::unique_ptr<Strategy> make_bayes(const session::Session& session, const Candidates& candidates,
                                     const StrategyOptions&);
std::unique_ptr<Strategy> make_random(const session::Session& session, const Candidates& candidates,
                                      const StrategyOptions&);
std::unique_ptr<Strategy> make_grid(const session::Session& session, const Candidates& candidates,
                                    const StrategyOptions&);
std::unique_ptr<Strategy> make_stagewise(const session::Session& session, const Candidates& candidates,
                                         const StrategyOptions&);

enum class StrategyKind { kBayes, kRandom, kGrid, kStagewise };

/// The registry: a strategy is its maker, its enumerator and its row here. Sessions, the command line, `compare` and
/// the journal know it by its name.
struct RegisteredStrategy {
  StrategyKind kind;
  const char* name;
  std::unique_ptr<Strategy> (*make)(const session::Session&, const Candidates&, const StrategyOptions&);
  /// False when every seed asks the same: such a strategy is compared with one run.
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
/// Throws UserError with the nearest name; `where` says where the word stood.
StrategyKind strategy_kind_from(const std::string& word, const std::string& where);
std::vector<StrategyKind> all_strategies();
std::vector<std::string> strategy_names();

std::unique_ptr<Strategy> make_strategy(StrategyKind kind, const session::Session& session,
                                        const Candidates& candidates, const StrategyOptions& options);
bool depends_on_seed(StrategyKind kind, const session::Session& session);

// What strategies share.

/// One flag a candidate of the list: it may still be asked.
std::vector<bool> unseen(const Candidates& candidates, const CandidateList& list, const History& history);

/// The candidate as a proposal, with what the plan knows of it.
journal::Proposal propose(const CandidateList& list, std::size_t index, StrategyKind kind);
journal::Proposal propose(const space::Configuration& configuration, StrategyKind kind);
/// One drawn at random that was not asked; empty: none was found.
std::optional<journal::Proposal> propose_drawn(const Candidates& candidates, const History& history, Rng& rng,
                                               StrategyKind kind);

}  // namespace krigtune::search
