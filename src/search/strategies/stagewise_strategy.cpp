#include <fmt/format.h>

#include <algorithm>

#include "search/candidates/candidate_list.h"
#include "search/stagewise/stagewise_walk.h"
#include "search/strategies/strategy.h"

namespace krigtune::search {
namespace {

/// Walks DeepSpeed's algorithm again for each suggestion, with answers from the history as far as it goes.
class StagewiseStrategy final : public Strategy {
 public:
  StagewiseStrategy(const session::Session& session, const Candidates& candidates, std::uint64_t seed)
      : candidates_(candidates),
        objective_(session.objective),
        options_(session.stagewise),
        seed_(seed),
        cells_(session, candidates) {}

  std::optional<journal::Proposal> ask(const History& history) const override {
    const Answers answers = walk(history);
    return answers.question() ? std::optional(propose(*answers.question(), StrategyKind::kStagewise)) : std::nullopt;
  }

  Idle why_idle(const History& history) const override {
    if (walk(history).waits()) return Idle::kWaits;
    return left(history) == 0 ? Idle::kAllTried : Idle::kNoProposal;
  }

  std::string left_out(const History& history) const override {
    const std::ptrdiff_t count = left(history);
    return candidates_.listed() && count > 0
               ? fmt::format("its algorithm leaves out {} of {} configurations", count, candidates_.size())
               : "";
  }

 private:
  // Layouts are independent, so while one waits, the next one is walked.
  Answers walk(const History& history) const {
    Answers answers(candidates_, objective_, history);
    const StagewiseProblem problem{cells_, candidates_.space(), objective_, options_, seed_};
    for (const Layout& layout : cells_.layouts()) {
      walk_layout(problem, layout, answers);
      if (answers.question()) break;
    }
    return answers;
  }

  // Returns the number of candidates that were not asked. Without a list there are always some.
  std::ptrdiff_t left(const History& history) const {
    if (!candidates_.listed()) return 1;
    const std::vector<bool> open = unseen(candidates_, *candidates_.to_score(history, 0), history);
    return std::count(open.begin(), open.end(), true);
  }

  const Candidates& candidates_;
  session::Objective objective_;
  session::StagewiseOptions options_;
  std::uint64_t seed_;
  StageCells cells_;
};

}  // namespace

std::unique_ptr<Strategy> make_stagewise(const session::Session& session, const Candidates& candidates,
                                         const StrategyOptions& options) {
  return std::make_unique<StagewiseStrategy>(session, candidates, options.seed);
}

}  // namespace krigtune::search
