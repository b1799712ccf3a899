#include "search/strategies/choice.h"

#include <algorithm>

#include "search/strategies/strategy.h"

namespace krigtune::search {
namespace {

constexpr int kSpreadTrials = 3;
constexpr double kLeastShareOfPlanned = 0.5;
constexpr double kLeastShareOfLearned = 2.0 / 3.0;
constexpr double kLeastOfDoubted = 0.05;

bool has_uncertain(const CandidateList& list) {
  return std::any_of(list.memory.begin(), list.memory.end(), [](const std::optional<plan::MemoryVerdict>& memory) {
    return memory && memory->verdict != plan::Verdict::kFits;
  });
}

}  // namespace

bool may_fail(const TrialModel& model, const CandidateList& list) {
  return model.has_failures() || model.job_plans_memory() || has_uncertain(list);
}

Eigen::VectorXd success_probability(const TrialModel& model, const CandidateList& list, const LimitModels& limits) {
  const Eigen::VectorXd within = limits.probability(list);
  if (!may_fail(model, list)) return within;
  return model.probability(list.points, model.memory_of(list)).cwiseProduct(within);
}

std::vector<bool> open_candidates(const Candidates& candidates, const CandidateList& list, const History& history,
                                  const Eigen::VectorXd& probability) {
  std::vector<bool> open = unseen(candidates, list, history);
  for (std::size_t i = 0; i < open.size(); ++i) {
    const std::optional<plan::MemoryVerdict>& memory = list.memory[i];
    const bool is_doubted = memory && memory->verdict == plan::Verdict::kTooLarge;
    if (is_doubted && probability(static_cast<Eigen::Index>(i)) < kLeastOfDoubted) open[i] = false;
  }
  return open;
}

void drop_unlikely(const TrialModel& model, std::vector<bool>& allowed, const Eigen::VectorXd& probability,
                   const std::vector<bool>& safe) {
  const double share = model.plans_memory() ? kLeastShareOfPlanned : kLeastShareOfLearned;
  double best = 0.0;
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    if (safe[i]) best = std::max(best, probability(static_cast<Eigen::Index>(i)));
  }
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    if (probability(static_cast<Eigen::Index>(i)) < share * best) allowed[i] = false;
  }
}

bool spreads_first_trials(const TrialModel& model, const History& history, const session::Session& session) {
  return !model.has_priors() && counted_trials(history) < kSpreadTrials + (session.baseline ? 1 : 0);
}

}  // namespace krigtune::search
