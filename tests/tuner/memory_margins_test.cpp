#include "model/memory_margins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "run/run_trial.h"
#include "uncertain_memory.h"

namespace krigtune {
namespace {

constexpr double kShared = 0.25 / 0.15;  // stddev of the error of all plans
constexpr double kOwn = 1.0;             // of one plan's own
constexpr double kNoise = 0.5;

Trial closed(const Configuration& configuration, std::optional<Bytes> peak) {
  Trial trial;
  trial.proposal.configuration = configuration;
  trial.outcome = Measured{{{"samples_per_s", 1.0}}, 0.0, peak};
  return trial;
}

const MemoryVerdict::Spread& spread_of(const Problem& problem, std::size_t i) {
  return *problem.candidates.to_score({}, 0)->memory[i]->spread;
}

// The nearest above zero, or with `sign` -1 below.
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

double margin_after(const Problem& problem, const History& history, std::size_t i) {
  const CandidateList& list = *problem.candidates.to_score({}, 0);
  return MemoryMargins(problem.candidates, history)
      .at(list.points.slice(static_cast<Eigen::Index>(i), 1), {list.memory[i]})(0);
}

TEST(MemoryMargins, AreAsPlannedBeforeAnythingSpeaksAgainstIt) {
  const Problem problem(uncertain_session());
  const std::size_t roomy = tightest(problem, 1.0);
  for (const History& history : {History{}, History{closed(problem.candidates[roomy], std::nullopt)}}) {
    const MemoryMargins margins(problem.candidates, history);
    EXPECT_FALSE(margins.doubts_plans());
    EXPECT_TRUE(margins.admitted(*problem.candidates.too_large()).empty());
    for (std::size_t i = 0; i < problem.candidates.size(); ++i) {
      EXPECT_DOUBLE_EQ(margin_after(problem, history, i), spread_of(problem, i).margin);
    }
  }
}

// One value of a Gaussian process with a shared offset: the others move by their covariance with it.
TEST(MemoryMargins, AMeasuredPeakMovesAllOfThem) {
  const Problem problem(uncertain_session());
  const std::size_t measured = tightest(problem, 1.0);
  const MemoryVerdict::Spread& spread = spread_of(problem, measured);
  const History history{closed(problem.candidates[measured], times(spread.allocated, 1.0 / 1.5))};
  const double variance = kShared * kShared + kOwn * kOwn;
  const double moved = std::log(1.5) / spread.log_stddev * variance / (variance + kNoise * kNoise);
  EXPECT_NEAR(margin_after(problem, history, measured), spread.margin + moved, 1e-6);
  for (std::size_t i = 0; i < problem.candidates.size(); ++i) {
    const double shift = margin_after(problem, history, i) - spread_of(problem, i).margin;
    EXPECT_GE(shift, moved * kShared * kShared / variance - 1e-6);  // far off: what is shared
    EXPECT_LE(shift, moved + 1e-6);
  }
}

TEST(MemoryMargins, APeakInAnotherUnitOnlySaysThatItRan) {
  const Problem problem(uncertain_session());
  const std::size_t roomy = tightest(problem, 1.0);
  const Bytes in_kib = times(spread_of(problem, roomy).allocated, 1.0 / 1024);
  const History history{closed(problem.candidates[roomy], in_kib)};
  EXPECT_FALSE(MemoryMargins(problem.candidates, history).doubts_plans());
  EXPECT_DOUBLE_EQ(margin_after(problem, history, roomy), spread_of(problem, roomy).margin);
}

TEST(MemoryMargins, LetInWhatIsTooLargeOnceTrialsNeedLessThanPlanned) {
  const Problem problem(uncertain_session());
  const CandidateList& too_large = *problem.candidates.too_large();
  ASSERT_GE(too_large.size(), 3U);
  const std::size_t tight = tightest(problem, -1.0);  // should not fit, might
  const auto admitted = [&](const History& history) {
    return MemoryMargins(problem.candidates, history).admitted(too_large).size();
  };
  const Bytes planned = spread_of(problem, tight).allocated;
  EXPECT_EQ(admitted({closed(problem.candidates[tight], times(planned, 1.2))}), 0U);
  const std::size_t by_running = admitted({closed(problem.candidates[tight], std::nullopt)});
  const std::size_t by_little = admitted({closed(problem.candidates[tight], times(planned, 0.9))});
  const std::size_t by_much = admitted({closed(problem.candidates[tight], times(planned, 0.5))});
  EXPECT_LE(by_little, by_much);
  EXPECT_GT(by_much, by_running);
}

TEST(MemoryMargins, NothingIsTooLargeByMoreThanAFactorOfTwo) {
  const Problem problem(uncertain_session());
  const CandidateList& too_large = *problem.candidates.too_large();
  for (std::size_t i = 0; i < too_large.size(); ++i) {
    EXPECT_EQ(too_large.memory[i]->verdict, Verdict::kTooLarge);
    const double beyond = -too_large.memory[i]->spread->widest_margin * too_large.memory[i]->spread->log_stddev;
    EXPECT_GT(beyond, 0.0);
    EXPECT_LE(beyond, std::log(2.0));
    EXPECT_FALSE(problem.candidates.contains(too_large.configurations[i]));
  }
}

// The session believes that all needs 1.5 times as much; the program tells its peaks, which are as planned without
// that.
TEST(Bayes, FindsItsWayPastPlansThatAreTooHigh) {
  const Problem truth(uncertain_session());
  const Problem wrong(uncertain_session(R"("peak_factor": 1.5)"), Problem::WithPhysics{});
  ASSERT_LT(wrong.candidates.size(), truth.candidates.size());
  const auto answer = [&](const Configuration& c) -> Outcome {
    const MemoryVerdict memory = *truth.filter.check(c);
    if (memory.spread->margin < 0.0) return OutOfMemory{};
    const double micro_batch = as_number(*c.find("micro_batch"));
    return Measured{{{"samples_per_s", std::sqrt(micro_batch)}}, 0.0, memory.spread->allocated};
  };
  const History history = wrong.drive(StrategyKind::kBayes, 1, 12, answer);
  const auto asked_too_large = std::count_if(history.begin(), history.end(), [&](const Trial& trial) {
    return !wrong.candidates.contains(trial.proposal.configuration);
  });
  const auto failed =
      std::count_if(history.begin(), history.end(), [](const Trial& trial) { return !ran(*trial.outcome); });
  EXPECT_GE(asked_too_large, 1);
  EXPECT_FALSE(std::all_of(history.begin(), history.end(), [&](const Trial& trial) {
    return wrong.candidates.contains(trial.proposal.configuration) || !ran(*trial.outcome);
  }));
  EXPECT_LE(failed, 3);
}

TEST(RunTrial, RunsTheBaselineOfAnotherProgramWhateverIsPlanned) {
  const Problem problem(uncertain_session());
  const CandidateList& too_large = *problem.candidates.too_large();
  ASSERT_GT(too_large.configurations.size(), 0u);
  FakeRunner runner([](const Configuration&) { return Measured{{{"samples_per_s", 1.0}}, 0.0, std::nullopt}; });
  Proposal proposal;
  proposal.configuration = too_large.configurations.front();
  proposal.strategy = kTryStrategy;
  EXPECT_TRUE(std::holds_alternative<OutOfMemory>(run_trial(problem.filter, runner, proposal, "unused")));
  EXPECT_TRUE(runner.asked.empty());
  proposal.strategy = kBaselineStrategy;
  EXPECT_TRUE(std::holds_alternative<Measured>(run_trial(problem.filter, runner, proposal, "unused")));
  EXPECT_EQ(runner.asked.size(), 1u);
}

}  // namespace
}  // namespace krigtune
