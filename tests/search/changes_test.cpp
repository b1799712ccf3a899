// The gain of each change from the baseline to the recommended configuration.
#include <gtest/gtest.h>

#include <cmath>

#include "search/fixtures.h"
#include "search/model/best.h"

namespace krigtune::changes_test {

double number(const space::Configuration& configuration, const char* name) {
  return space::as_number(*configuration.find(name));
}

class GainOfChanges : public testing::Test {
 protected:
  // a gains 8 % for each step, and 1.5 times that with b = "y"; c has no effect.
  static double speed(const space::Configuration& c) {
    return std::exp(0.08 * number(c, "a")) * (space::to_string(*c.find("b")) == "y" ? 1.5 : 1.0);
  }
  GainOfChanges()
      : problem_(
            plain_session(R"({"a": {"min": 0, "max": 9}, "b": ["x", "y"], "c": {"min": 0, "max": 4}, "d": [1]})")) {
    history_ = problem_.drive(search::StrategyKind::kRandom, 1, 40,
                              [&](const space::Configuration& c) { return measured(problem_.session, speed(c)); });
  }
  Problem problem_;
  search::History history_;
};

TEST_F(GainOfChanges, GivesEachChangeFromTheBaselineItsOwnGain) {
  problem_.session.baseline =
      space::Configuration{{"a", std::int64_t{0}}, {"b", "x"}, {"c", std::int64_t{0}}, {"d", std::int64_t{1}}};
  const std::optional<search::Recommendation> best =
      search::recommend(problem_.session, problem_.candidates, history_, 1);
  ASSERT_TRUE(best);
  const search::Changes& changes = best->changes;
  ASSERT_GE(changes.each.size(), 2u) << "d stays, c may";
  EXPECT_EQ(changes.each[0].parameter, "a");
  EXPECT_EQ(space::as_number(*changes.each[0].before), 0.0);
  EXPECT_EQ(space::as_number(*changes.each[0].after), 9.0);
  ASSERT_TRUE(changes.each[0].gain && changes.each[1].gain && changes.together);
  EXPECT_LE(std::abs(changes.each[0].gain->factor / std::exp(0.72) - 1.0), 0.05);
  EXPECT_EQ(changes.each[1].parameter, "b");
  EXPECT_LE(std::abs(changes.each[1].gain->factor / 1.5 - 1.0), 0.05);
  EXPECT_LE(std::abs(changes.together->factor / (1.5 * std::exp(0.72)) - 1.0), 0.08);
  for (const search::Change& change : changes.each) {
    ASSERT_TRUE(change.gain) << change.parameter;
    EXPECT_TRUE(change.gain->lower_95 <= change.gain->factor && change.gain->factor <= change.gain->upper_95);
  }
  EXPECT_TRUE(changes.each[0].gain->clear());
}

// The surrogate alone extends the fast ones to the slow baseline, and calls this 1.55 times.
TEST(GainOverTheBaseline, IsWhatBothAchieve) {
  const Problem problem(plain_session(R"({"batch": {"min": 1, "max": 32}})"));
  session::Session session = problem.session;
  search::History history;
  for (const std::int64_t batch : {1, 32, 17, 9, 31}) {
    journal::Trial trial;
    trial.number = static_cast<int>(history.size());
    trial.proposal.configuration = space::Configuration({{"batch", batch}});
    trial.outcome = measured(session, 800.0 * static_cast<double>(batch) / static_cast<double>(batch + 5));
    history.push_back(trial);
  }
  session.baseline = history.front().proposal.configuration;
  const std::optional<search::Recommendation> best = search::recommend(session, problem.candidates, history, 1);
  ASSERT_TRUE(best && best->changes.together && best->gain_by_model);
  const search::Gain& gain = *best->changes.together;
  EXPECT_EQ(gain.factor, best->gain_by_model->factor) << "the baseline is the reference";
  EXPECT_LE(gain.lower_95, best->gain);
  EXPECT_GE(gain.upper_95, best->gain);
  EXPECT_LE(std::abs(gain.factor / best->gain - 1.0), 0.03);
  EXPECT_LE(gain.upper_95 / gain.lower_95, 1.3);
}

// Gains are relative to the first trial that succeeded then, and so is the model's; the changes begin at the baseline.
TEST(GainOverTheReference, IsOverTheFirstSuccessWhereTheBaselineFailed) {
  const Problem problem(plain_session(R"({"batch": {"min": 1, "max": 32}})"));
  session::Session session = problem.session;
  search::History history;
  for (const std::int64_t batch : {24, 1, 32, 17, 9, 31}) {
    journal::Trial trial;
    trial.number = static_cast<int>(history.size());
    trial.proposal.configuration = space::Configuration({{"batch", batch}});
    trial.proposal.strategy = history.empty() ? search::kBaselineStrategy : "bayes";
    trial.outcome = measured(session, 800.0 * static_cast<double>(batch) / static_cast<double>(batch + 5));
    history.push_back(trial);
  }
  history.front().outcome = trial::OutOfMemory{};
  session.baseline = history.front().proposal.configuration;
  const std::optional<search::Recommendation> best = search::recommend(session, problem.candidates, history, 1);
  ASSERT_TRUE(best && best->gain_by_model && best->changes.together);
  EXPECT_EQ(best->reference_trial, 1);
  EXPECT_GE(best->gain, 5.0);
  EXPECT_LE(std::abs(best->gain_by_model->factor / best->gain - 1.0), 0.05);
  EXPECT_LE(best->gain_by_model->lower_95, best->gain);
  EXPECT_GE(best->gain_by_model->upper_95, best->gain);
  EXPECT_LE(best->changes.together->factor, 2.0) << "over batch 24, which did not run";
}

// Of more than 256 trials the model knows a selection, from which the baseline may be missing.
TEST(GainOverTheBaseline, IsWhatBothAchieveAmongManyTrialsToo) {
  Problem problem(plain_session(R"({"a": {"min": 0, "max": 99}, "b": {"min": 0, "max": 9}})"));
  const auto speed = [](const space::Configuration& c) {
    const bool is_baseline = number(c, "a") == 50 && number(c, "b") == 5;
    return is_baseline ? 20.0 : 100.0 + number(c, "a") + number(c, "b");
  };
  search::History history = problem.drive(search::StrategyKind::kRandom, 1, 400, [&](const space::Configuration& c) {
    return measured(problem.session, speed(c));
  });
  const space::Configuration baseline = {{"a", std::int64_t{50}}, {"b", std::int64_t{5}}};
  problem.session.baseline = baseline;
  history.front().proposal.configuration = baseline;
  history.front().proposal.strategy = search::kBaselineStrategy;
  history.front().outcome = measured(problem.session, speed(baseline));
  const std::optional<search::Recommendation> best = search::recommend(problem.session, problem.candidates, history, 1);
  ASSERT_TRUE(best && best->changes.together);
  EXPECT_LE(std::abs(best->changes.together->factor / best->gain - 1.0), 0.05) << best->gain;
}

TEST_F(GainOfChanges, HasNoGainForWhatHasNoMeaningAlone) {
  const Problem problem(plain_session(
      R"({"mode": ["slow", "fast"], "depth": {"min": 1, "max": 4, "when": "mode == \"fast\""},
          "lazy": [false, true]})"));
  const auto speed_of = [](const space::Configuration& c) {
    return 1.0 + (space::to_string(*c.find("mode")) == "fast" ? number(c, "depth") : 0.0) + 0.5 * number(c, "lazy");
  };
  search::History history = problem.drive(search::StrategyKind::kRandom, 1, 10, [&](const space::Configuration& c) {
    return measured(problem.session, speed_of(c));
  });
  session::Session session = problem.session;
  session.baseline = space::Configuration{{"mode", "slow"}, {"lazy", false}};
  const std::optional<search::Recommendation> best = search::recommend(session, problem.candidates, history, 1);
  ASSERT_TRUE(best);
  ASSERT_EQ(best->changes.each.size(), 3u) << best->configuration.text();
  EXPECT_EQ(best->changes.each[0].alone, search::Change::Alone::kPossible) << "mode back to slow takes depth with it";
  EXPECT_TRUE(best->changes.each[0].gain);
  EXPECT_EQ(best->changes.each[1].parameter, "depth");
  EXPECT_FALSE(best->changes.each[1].before);
  EXPECT_EQ(best->changes.each[1].alone, search::Change::Alone::kNeedsAnother);
  EXPECT_FALSE(best->changes.each[1].gain);
  // Once the configuration with this change reverted is known to run out of memory, that is the gain of the change.
  space::Configuration without = best->configuration;
  without.set("lazy", false);
  journal::Trial failed = history.back();
  failed.number += 1;
  failed.proposal.configuration = without;
  failed.outcome = trial::OutOfMemory{};
  history.push_back(failed);
  const std::optional<search::Recommendation> again = search::recommend(session, problem.candidates, history, 1);
  ASSERT_TRUE(again);
  ASSERT_EQ(again->changes.each.size(), 3u);
  EXPECT_EQ(again->changes.each[2].parameter, "lazy");
  EXPECT_EQ(again->changes.each[2].alone, search::Change::Alone::kTooLarge);
}

TEST_F(GainOfChanges, TakesBackTogetherWhatAConstraintTies) {
  const char* space = R"({"micro_batch": [1, 2, 4, 8], "accumulate": [1, 2, 4, 8], "bucket": [1, 2]})";
  session::Session session = plain_session(space);
  space::JobFacts facts;
  facts.well_known = false;
  session.space = space::Space(space::read_parameters(parse_json(space, "test"), "test", "/space"), facts,
                               {space::Expression::parse("micro_batch * accumulate == 8")});
  session.baseline = space::Configuration{
      {"micro_batch", std::int64_t{1}}, {"accumulate", std::int64_t{8}}, {"bucket", std::int64_t{1}}};
  const Problem problem(session);
  const search::History history =
      problem.drive(search::StrategyKind::kRandom, 1, 8, [&](const space::Configuration& c) {
        return measured(session, std::pow(number(c, "micro_batch"), 0.5) * number(c, "bucket"));
      });
  const std::optional<search::Recommendation> best = search::recommend(session, problem.candidates, history, 1);
  ASSERT_TRUE(best);
  ASSERT_EQ(best->changes.each.size(), 3u);
  const search::Change& micro_batch = best->changes.each[0];
  ASSERT_TRUE(micro_batch.gain);
  EXPECT_LE(std::abs(micro_batch.gain->factor / std::sqrt(8.0) - 1.0), 0.05);
  EXPECT_EQ(best->changes.each[1].parameter, "accumulate");
  EXPECT_EQ(best->changes.each[1].alone, search::Change::Alone::kFollows);
  EXPECT_FALSE(best->changes.each[1].gain);
  ASSERT_TRUE(best->changes.each[2].gain);
  EXPECT_LE(std::abs(best->changes.each[2].gain->factor / 2.0 - 1.0), 0.05);
}

}  // namespace krigtune::changes_test
