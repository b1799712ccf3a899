#include "answer/answer.h"

#include <gtest/gtest.h>

#include "result/report_fixtures.h"

namespace krigtune::answer_test {

using answer::Answer;
using answer::answer_of;

Answer answer_for(const search::History& history, const search::Recommendation& best = recommendation()) {
  return answer_of(bench_session(), history, best);
}

journal::Trial failed(int number, trial::FailureReason reason, double wall_s) {
  journal::Trial made = trial_record(number, configuration(0, 2, false), trial::Failed{reason, 1, ""});
  made.wall_s = wall_s;
  return made;
}

TEST(Answer, CountsTheTrialsThatCountByHowTheyEnded) {
  search::History history = all_outcomes();
  history.push_back(failed(7, trial::FailureReason::kInterrupted, 100.0));
  history.push_back(failed(8, trial::FailureReason::kEnvironment, 100.0));
  history.push_back(trial_record(9, configuration(0, 4, false), measured_samples(1.0)));
  history.back().passed_over = "lost";
  history.push_back(failed(10, trial::FailureReason::kTimeout, 100.0));
  history.push_back(trial_record(11, configuration(3, 4, true), measured_samples(125.0), search::kRepeatStrategy));
  const answer::TrialCounts trials = answer::count_trials(history);
  EXPECT_EQ(trials.closed, 8);
  EXPECT_EQ(trials.of_budget, 7) << "the repetition is not of the budget";
  EXPECT_EQ(trials.by_status,
            (std::vector<std::pair<std::string, int>>{{"ok", 3}, {"oom", 2}, {"failed", 2}, {"bounded", 1}}));
  std::vector<std::string> classes;
  int sum = 0;
  for (const answer::ClassCount& one : trials.by_class) {
    classes.push_back(one.name + " " + std::to_string(one.count) + " from " + std::to_string(one.first));
    sum += one.count;
  }
  EXPECT_EQ(classes, (std::vector<std::string>{"ok 3 from 0", "failed (timeout) 2 from 3", "oom 1 from 1",
                                               "oom (predicted) 1 from 2", "bounded 1 from 4"}));
  EXPECT_EQ(sum, trials.closed);
}

TEST(Answer, OfNothingCountsNothingAndKnowsNoBest) {
  const Answer none = answer_of(bench_session(), {}, std::nullopt);
  EXPECT_EQ(none.trials.closed, 0);
  EXPECT_TRUE(none.trials.by_class.empty());
  EXPECT_EQ(none.trials.by_status.size(), 4U);
  EXPECT_FALSE(none.best || none.reference || none.runner_up || none.raw_best);
  EXPECT_FALSE(none.has_interval());
  EXPECT_EQ(none.gpu_hours, 0.0);
}

TEST(Answer, TakesTheTimeOfEveryClosedTrialAsSpent) {
  search::History history = all_outcomes();  // six closed trials of 2.5 s on two ranks
  EXPECT_DOUBLE_EQ(*answer_for(history).gpu_hours, 6 * 2.5 * 2 / 3600.0);
  history.push_back(failed(7, trial::FailureReason::kInterrupted, 900.0));
  history.push_back(failed(8, trial::FailureReason::kEnvironment, 900.0));
  EXPECT_DOUBLE_EQ(*answer_for(history).gpu_hours, (6 * 2.5 + 1800.0) * 2 / 3600.0);
  session::Session simulated = bench_session();
  simulated.runner = runner::SimulateSpec();
  EXPECT_FALSE(answer_of(simulated, history, recommendation()).gpu_hours);
}

TEST(Answer, CallsTheReferenceTheUsersOwnWhereItMeasuredTheBaseline) {
  search::History history = all_outcomes();
  EXPECT_TRUE(answer_for(history).reference->is_own);
  // The baseline was lost with its node and measured again as trial 5.
  history[0].outcome = trial::Failed{trial::FailureReason::kEnvironment, 1, ""};
  history[5].proposal.strategy = search::kBaselineStrategy;
  const Answer again = answer_of(bench_session(), history, std::nullopt);
  EXPECT_EQ(again.reference->trial, 5);
  EXPECT_TRUE(again.reference->is_own);
  // Trial 0 was asked by another program: it is the reference, and is not the baseline.
  history = all_outcomes();
  history[0].proposal.strategy = "optuna";
  EXPECT_FALSE(answer_for(history).reference->is_own);
}

TEST(Answer, SaysWhyGainsAreNotRelativeToTheBaseline) {
  const auto note = [](const session::Session& session, const search::History& history) {
    return answer_of(session, history, std::nullopt).reference_note;
  };
  const std::string rest = "; gains are relative to trial 1, the first that succeeded";
  search::History history = {
      trial_record(0, configuration(2, 2, false), trial::OutOfMemory{std::nullopt, true}, "baseline"),
      trial_record(1, configuration(3, 2, false), measured_samples(50.0))};
  EXPECT_EQ(note(bench_session(), all_outcomes()), "");
  EXPECT_EQ(note(bench_session(), history), "the baseline failed" + rest);
  history[0].outcome.reset();
  EXPECT_EQ(note(bench_session(), history), "the baseline has no result yet" + rest);
  history[0].outcome = trial::Failed{trial::FailureReason::kInterrupted, 1, ""};
  EXPECT_EQ(note(bench_session(), history), "the baseline has no result yet" + rest);
  history[0].proposal.strategy = "optuna";
  EXPECT_EQ(note(bench_session(), history), "the baseline was not tried" + rest);
  session::Session without = bench_session();
  without.baseline.reset();
  EXPECT_EQ(note(without, history), "the session has no baseline" + rest);
}

TEST(Answer, KnowsTheReferencesConfigurationInARepetitionOfIt) {
  search::History history = all_outcomes();
  history.push_back(trial_record(7, configuration(2, 2, false), measured_samples(130.0), search::kRepeatStrategy));
  search::Recommendation best = recommendation();
  EXPECT_FALSE(answer_for(history, best).is_reference);
  best.trial = 7;  // the baseline's best measurement
  best.configuration = history[7].proposal.configuration;
  EXPECT_TRUE(answer_for(history, best).is_reference);
  EXPECT_FALSE(answer_of(bench_session(), history, std::nullopt).is_reference);
}

TEST(TrialGains, AreRelativeToTheReferenceAndEmptyForTrialsWithoutAValue) {
  const search::History history = all_outcomes();  // trial 0 measured 100, trial 5 measured 125
  const answer::TrialGains gains(bench_session().objective, history);
  ASSERT_TRUE(gains.reference());
  EXPECT_EQ(gains.reference()->trial, 0);
  EXPECT_TRUE(gains.reference()->is_own);
  EXPECT_DOUBLE_EQ(gains(history[0]).value(), 1.0);
  EXPECT_DOUBLE_EQ(gains(history[5]).value(), 1.25);
  EXPECT_FALSE(gains(history[1])) << "it ran out of memory";
  EXPECT_FALSE(gains(history[4])) << "it has a bound only";
  const answer::TrialGains over_the_best(bench_session().objective, history, answer::Reference{5, false});
  EXPECT_DOUBLE_EQ(over_the_best(history[0]).value(), 0.8);
  const answer::TrialGains none(bench_session().objective, {});
  EXPECT_FALSE(none.reference());
  EXPECT_FALSE(none(history[0]));
}

TEST(Answer, HasARunnerUpThatIsWithinNoiseInsideTheIntervalOfTheBestOnly) {
  for (const auto& [value, expected] : {std::pair(121.0, true), std::pair(119.0, false), std::pair(130.0, true)}) {
    search::History history = all_outcomes();
    history.push_back(trial_record(7, configuration(1, 2, true), measured_samples(value)));
    const auto next = answer_for(history).runner_up;
    ASSERT_TRUE(next.has_value());
    EXPECT_EQ(next->trial, 7);
    EXPECT_EQ(next->within_noise, expected) << value;
  }
}

TEST(Answer, KnowsTheBestSingleMeasurement) {
  search::History history = all_outcomes();
  EXPECT_EQ(answer_for(history).raw_best->trial, 5);
  EXPECT_TRUE(answer_for(history).raw_best->is_recommended);
  history.push_back(trial_record(7, configuration(1, 2, true), measured_samples(126.0)));
  EXPECT_EQ(answer_for(history).raw_best->trial, 7);
  EXPECT_EQ(answer_for(history).raw_best->value, 126.0);
  EXPECT_FALSE(answer_for(history).raw_best->is_recommended);
}

TEST(Answer, HasTheLastOutlookThatAProposalStated) {
  search::History history = all_outcomes();
  EXPECT_FALSE(answer_for(history).outlook);
  history[3].proposal.outlook = journal::Outlook();
  history[4].proposal.outlook = journal::Outlook();
  history[4].proposal.outlook->regret_bound = 0.25;
  EXPECT_EQ(answer_for(history).outlook->trial, 4);
  EXPECT_EQ(answer_for(history).outlook->outlook.regret_bound, 0.25);
}

// The same configuration was measured in two runs, and the second value is 1.8 times worse.
TEST(Answer, RemarksThatTheMachineHasBecomeSlower) {
  search::History history = {trial_record(0, configuration(2, 2, false), measured_samples(18.0), "baseline"),
                             trial_record(1, configuration(2, 2, false), measured_samples(10.0))};
  EXPECT_TRUE(answer_of(bench_session(), history, std::nullopt).remarks.empty());
  history[1].proposal.run = 1;
  const std::vector<answer::Remark> remarks = answer_of(bench_session(), history, std::nullopt).remarks;
  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_STREQ(remarks.front().name, "machine");
  EXPECT_NE(remarks.front().text.find("1.8 times slower"), std::string::npos);
}

TEST(Answer, SaysHowManyTrialsBrokeTheLimits) {
  session::Session session = bench_session();
  session::Objective limit{"power_w", false, "power_w"};
  limit.limit = 300.0;
  session.limits = {limit};
  search::History history;
  for (const double power_w : {290.0, 310.0, 320.0}) {
    trial::Outcome outcome = measured_samples(10.0);
    std::get<trial::Measured>(outcome).metrics["power_w"] = power_w;
    history.push_back(trial_record(static_cast<int>(history.size()), configuration(2, 2, false), std::move(outcome)));
  }
  history.push_back(failed(3, trial::FailureReason::kTimeout, 100.0));
  const std::vector<answer::Remark> remarks = answer_of(session, history, recommendation()).remarks;
  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_STREQ(remarks.front().name, "limits");
  EXPECT_EQ(remarks.front().text, "the best configuration keeps to power_w <= 300; 2 of 3 trials that ran did not");
  EXPECT_TRUE(answer_of(session, history, std::nullopt).remarks.empty()) << "then no configuration does";
}

TEST(Answer, NamesTheEmulatedNetwork) {
  const session::Session session = bench_session(R"({"gpus_per_node": 2, "emulate_network": "eth-25"})");
  EXPECT_EQ(answer_of(session, {}, std::nullopt).emulated_network, "emulated network eth-25");
  EXPECT_EQ(answer_of(bench_session(), {}, std::nullopt).emulated_network, "");
}

}  // namespace krigtune::answer_test
