#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/statistics.h"
#include "run/runner_pool.h"
#include "search/model/trial_success.h"
#include "search/uncertain_memory.h"

namespace krigtune::memory_margins_test {

journal::Trial closed(const space::Configuration& configuration, std::optional<Bytes> peak) {
  journal::Trial trial;
  trial.proposal.configuration = configuration;
  trial.outcome = trial::Measured{{{"samples_per_s", 1.0}}, 0.0, peak};
  return trial;
}

const plan::MemoryVerdict::Spread& spread_of(const Problem& problem, std::size_t i) {
  return *problem.candidates.to_score({}, 0)->memory[i]->spread;
}

// Returns the nearest margin above zero, or with `sign` -1 below zero.
std::size_t tightest(const Problem& problem, double sign) {
  std::size_t found = problem.candidates.size();
  double least = 1e9;
  for (std::size_t i = 0; i < problem.candidates.size(); ++i) {
    const double margin = sign * spread_of(problem, i).margin;
    if (margin > 0.0 && margin < least) found = i;
    if (margin > 0.0) least = std::min(least, margin);
  }
  return found;
}

Bytes times(Bytes bytes, double factor) {
  return {static_cast<std::int64_t>(static_cast<double>(bytes.count) * factor)};
}

double margin_after(const Problem& problem, const search::History& history, std::size_t i) {
  const search::CandidateList& list = *problem.candidates.to_score({}, 0);
  return search::MemoryMargins(problem.candidates, history).at({list.memory[i]})(0);
}

TEST(MemoryMargins, AreAsPlannedBeforeAnythingIsTold) {
  const Problem problem(uncertain_session());
  EXPECT_FALSE(search::MemoryMargins(problem.candidates, {}).shape());
  for (std::size_t i = 0; i < problem.candidates.size(); ++i) {
    EXPECT_DOUBLE_EQ(margin_after(problem, {}, i), spread_of(problem, i).margin);
  }
}

TEST(MemoryMargins, AMeasuredPeakMovesAllOfThem) {
  const Problem problem(uncertain_session());
  const std::size_t measured = tightest(problem, 1.0);
  const plan::MemoryVerdict::Spread& spread = spread_of(problem, measured);
  const search::History less{closed(problem.candidates[measured], times(spread.allocated, 1.0 / 1.5))};
  const search::History more{closed(problem.candidates[measured], times(spread.allocated, 1.5))};
  EXPECT_GT(margin_after(problem, less, measured), spread.margin + 1.0);
  EXPECT_LT(margin_after(problem, more, measured), spread.margin - 1.0);
  for (std::size_t i = 0; i < problem.candidates.size(); ++i) {
    // Compares bytes: if states are almost everything, the stddevs of the margins differ by more than one peak says.
    const auto log_bytes = [&](const search::History& history) {
      return search::MemoryMargins(problem.candidates, history).shape()->needed(spread_of(problem, i).moments).mean;
    };
    EXPECT_LT(log_bytes(less), log_bytes(more)) << problem.candidates[i].text();
  }
}

TEST(MemoryMargins, FollowTheSidesOnWhichTrialsLay) {
  const Problem problem(uncertain_session());
  const std::size_t tight = tightest(problem, -1.0);  // should not fit, but might
  const double planned = spread_of(problem, tight).margin;
  EXPECT_GT(margin_after(problem, {closed(problem.candidates[tight], std::nullopt)}, tight), planned);
  const std::size_t roomy = tightest(problem, 1.0);
  journal::Trial ran_out = closed(problem.candidates[roomy], std::nullopt);
  ran_out.outcome = trial::OutOfMemory{};
  EXPECT_LT(margin_after(problem, {ran_out}, roomy), spread_of(problem, roomy).margin);
}

TEST(MemoryMargins, AFailureOfUnknownCauseSaysNothing) {
  const Problem problem(uncertain_session());
  const std::size_t roomy = tightest(problem, 1.0);
  journal::Trial crashed = closed(problem.candidates[roomy], std::nullopt);
  crashed.outcome = trial::Failed{trial::FailureReason::kCrash, 1, ""};
  EXPECT_FALSE(search::MemoryMargins(problem.candidates, {crashed}).shape());
}

// A trial that says that it ran out of memory corrects the plans of all configurations. What the corrected plans say
// fits is not doubted once more for being tight.
TEST(TrialSuccess, LearnsOnceThatMemoryIsTight) {
  const Problem problem(uncertain_session());
  const search::CandidateList& list = *problem.candidates.to_score({}, 0);
  journal::Trial failed = closed(problem.candidates[tightest(problem, 1.0)], std::nullopt);
  failed.outcome = trial::OutOfMemory{};
  const search::History history{failed};
  const search::TrialSuccess success(problem.candidates, history);
  int tight = 0;
  for (std::size_t i = 0; i < problem.candidates.size(); ++i) {
    const double margin = margin_after(problem, history, i);
    if (margin < 0.5 || margin > 1.76) continue;
    ++tight;
    const double probability =
        success.probability(list.points.slice(static_cast<Eigen::Index>(i), 1), {list.memory[i]})(0);
    EXPECT_GT(probability, 0.7 * normal_cdf(margin)) << problem.candidates[i].text();
  }
  EXPECT_GE(tight, 2);
}

// The session assumes that everything needs 1.5 times as much. The program reports its peaks, which are as planned
// without that factor.
TEST(Bayes, FindsItsWayPastPlansThatAreTooHigh) {
  const Problem truth(uncertain_session());
  const Problem wrong(uncertain_session(R"("peak_factor": 1.5)"), Problem::WithPhysics{});
  const auto answer = [&](const space::Configuration& c) -> trial::Outcome {
    const plan::MemoryVerdict memory = *truth.filter.check(c);
    if (memory.spread->margin < 0.0) return trial::OutOfMemory{};
    const double micro_batch = space::as_number(*c.find("micro_batch"));
    return trial::Measured{{{"samples_per_s", std::sqrt(micro_batch)}}, 0.0, memory.spread->allocated};
  };
  const search::History history = wrong.drive(search::StrategyKind::kBayes, 1, 12, answer);
  const auto unlikely_as_planned = std::count_if(history.begin(), history.end(), [&](const journal::Trial& trial) {
    return trial::ran(*trial.outcome) && wrong.filter.check(trial.proposal.configuration)->probability_fits < 0.3;
  });
  const auto failed = std::count_if(history.begin(), history.end(),
                                    [](const journal::Trial& trial) { return !trial::ran(*trial.outcome); });
  EXPECT_GE(unlikely_as_planned, 1);
  EXPECT_LE(failed, 3);
}

std::vector<space::Configuration> too_large_ones(const Problem& problem) {
  std::vector<space::Configuration> found;
  problem.candidates.space().for_each([&](const space::Configuration& configuration) {
    if (!problem.filter.may_fit(configuration)) found.push_back(configuration);
    return true;
  });
  return found;
}

TEST(RunTrial, RunsTheBaselineOfAnotherProgramWhateverIsPlanned) {
  const Problem problem(uncertain_session());
  const std::vector<space::Configuration> too_large = too_large_ones(problem);
  ASSERT_FALSE(too_large.empty());
  FakeRunner runner([](const space::Configuration&) {
    return trial::Measured{{{"samples_per_s", 1.0}}, 0.0, std::nullopt};
  });
  journal::Proposal proposal;
  proposal.configuration = too_large.front();
  proposal.strategy = search::kTryStrategy;
  EXPECT_TRUE(std::holds_alternative<trial::OutOfMemory>(run::run_trial(problem.filter, runner, proposal, "unused")));
  EXPECT_TRUE(runner.asked.empty());
  proposal.strategy = search::kBaselineStrategy;
  EXPECT_TRUE(std::holds_alternative<trial::Measured>(run::run_trial(problem.filter, runner, proposal, "unused")));
  EXPECT_EQ(runner.asked.size(), 1u);
}

}  // namespace krigtune::memory_margins_test
