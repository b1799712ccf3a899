#include "search/candidates/candidate_list.h"
#include "search/strategies/strategy.h"

namespace krigtune::search {
namespace {

/// Draws uniformly from the configurations that were not asked yet.
class RandomStrategy final : public Strategy {
 public:
  RandomStrategy(const Candidates& candidates, std::uint64_t seed) : candidates_(candidates), seed_(seed) {}

  std::optional<journal::Proposal> ask(const History& history) const override {
    Rng rng(seed_, static_cast<std::uint64_t>(counted_trials(history)));
    if (!candidates_.listed()) return propose_drawn(candidates_, history, rng, StrategyKind::kRandom);
    const std::shared_ptr<const CandidateList> list = candidates_.to_score(history, seed_);
    const std::vector<bool> open = unseen(candidates_, *list, history);
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (open[i]) left.push_back(i);
    }
    if (left.empty()) return std::nullopt;
    return propose(*list, left[rng.below(left.size())], StrategyKind::kRandom);
  }

 private:
  const Candidates& candidates_;
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<Strategy> make_random(const session::Session&, const Candidates& candidates,
                                      const StrategyOptions& options) {
  return std::make_unique<RandomStrategy>(candidates, options.seed);
}

}  // namespace krigtune::search
