// What parameters may mean whose names say nothing.
#include "forecast/roles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "core/json.h"
#include "cost/time/step_cost.h"
#include "forecast/archetypes.h"
#include "forecast/hypotheses.h"
#include "session/memory_filter.h"
#include "session/session.h"

namespace krigtune::roles_test {

using forecast::RoleGuess;
using forecast::Roles;

session::Session session_of(const std::string& space, const std::string& metric = "tokens_per_second",
                            const std::string& constraints = "[]") {
  const std::string text = R"({"baseline": null, "space": )" + space + R"(, "constraints": )" + constraints +
                           R"(, "objective": {"metric": ")" + metric +
                           R"("}, "runner": {"kind": "command", "argv": ["true", "{config}"]}})";
  return session::read_session(parse_json(text, "s"), "s", ".");
}

std::vector<RoleGuess> guesses_of(const session::Session& session) {
  return forecast::possible_roles(session.space, forecast::listed_numbers(session.space));
}

std::vector<RoleGuess> guesses(const std::string& space) { return guesses_of(session_of(space)); }

double probability_of(const std::vector<RoleGuess>& guesses, const Roles& roles) {
  for (const RoleGuess& guess : guesses) {
    if (guess.roles == roles) return guess.probability;
  }
  return 0.0;
}

constexpr const char* kOwnNames = R"({"a": [1, 2, 4, 8], "b": [1, 2, 4, 8, 16, 32], "c": [0, 1]})";

TEST(Roles, AreFoundByValuesAndEachOnlyOnce) {
  const std::vector<RoleGuess> all = guesses(kOwnNames);
  ASSERT_FALSE(all.empty());
  double sum = 0.0;
  double before = 1.0;
  for (const RoleGuess& guess : all) {
    std::set<std::string> taken;
    for (const auto& [name, role] : guess.roles) EXPECT_TRUE(taken.insert(role).second) << role;
    EXPECT_GE(guess.roles.size(), 2U);
    EXPECT_LE(guess.probability, before);
    before = guess.probability;
    sum += guess.probability;
  }
  EXPECT_NEAR(sum, 1.0, 1e-12);
  const Roles likely = {{"a", "tensor_parallel"}, {"b", "micro_batch"}, {"c", "zero_stage"}};
  EXPECT_DOUBLE_EQ(probability_of(all, likely), all.front().probability);
  EXPECT_GT(probability_of(all, {{"a", "pipeline_parallel"}, {"b", "micro_batch"}}), 0.0);
  // 32 ranks are more than a node has.
  EXPECT_LE(probability_of(all, {{"a", "micro_batch"}, {"b", "tensor_parallel"}, {"c", "zero_stage"}}),
            0.3 * all.front().probability);
}

// With 32 ranks and batches of 64: a * b divides the ranks, and c * 32 / (a * b) the batch. The parameters have the
// same values, so only what is missing tells c from the others.
TEST(Roles, FollowFromWhichCombinationsAreMissing) {
  const std::string values = "[1, 2, 4, 8, 16, 32]";
  const std::string space = R"({"a": )" + values + R"(, "b": )" + values + R"(, "c": )" + values + "}";
  const std::vector<RoleGuess> all = guesses(space);
  const double by_values =
      probability_of(all, {{"a", "tensor_parallel"}, {"b", "pipeline_parallel"}, {"c", "micro_batch"}});
  EXPECT_LT(by_values, 0.2);
  const std::vector<RoleGuess> told =
      guesses_of(session_of(space, "tokens_per_second", R"(["a * b <= 32", "64 * a * b % (32 * c) == 0"])"));
  ASSERT_GE(told.size(), 2U);
  const Roles meant = {{"a", "tensor_parallel"}, {"b", "pipeline_parallel"}, {"c", "micro_batch"}};
  const Roles swapped = {{"a", "pipeline_parallel"}, {"b", "tensor_parallel"}, {"c", "micro_batch"}};
  EXPECT_DOUBLE_EQ(probability_of(told, meant), told.front().probability);
  EXPECT_DOUBLE_EQ(probability_of(told, meant), probability_of(told, swapped));
  EXPECT_GT(probability_of(told, meant) + probability_of(told, swapped), 0.7);
}

// Factors of three may be anything, unless the batch explains them.
TEST(Roles, MayBeNumbersThatAreNoPowersOfTwo) {
  const std::string space = R"({"a": [1, 2, 4], "b": [1, 2, 4], "c": [1, 2, 3, 6, 12]})";
  const Roles meant = {{"a", "tensor_parallel"}, {"b", "pipeline_parallel"}, {"c", "micro_batch"}};
  // 4 ranks, batches of 12.
  const std::vector<RoleGuess> told =
      guesses_of(session_of(space, "tokens_per_second", R"(["a * b <= 4", "12 * a * b % (4 * c) == 0"])"));
  EXPECT_GT(probability_of(told, meant), 0.2);
  EXPECT_LT(probability_of(guesses(space), meant), 0.1);
}

TEST(Roles, AreNotSeenInOtherValues) {
  EXPECT_TRUE(guesses(R"({"x": [3, 5, 7], "y": [0.5, 0.7]})").empty());
  EXPECT_TRUE(guesses(R"({"x": [1, 2, 4, 8]})").empty()) << "one parameter alone may be anything";
  EXPECT_TRUE(guesses(R"({"x": {"type": "real", "min": 1, "max": 8}, "y": ["red", "green"]})").empty());
  // More parameters of this kind than a training step has.
  std::string many = "{";
  for (int i = 0; i < 12; ++i) many += "\"p" + std::to_string(i) + "\": [1, 2, 4],";
  many.back() = '}';
  EXPECT_TRUE(guesses(many).empty());
}

TEST(Roles, AreReadAsTheStepReadsThem) {
  const space::Configuration own = {{"a", std::int64_t{4}}, {"b", std::int64_t{2}}, {"c", true}};
  const space::Configuration step = forecast::as_training_step(
      own, {{"a", "tensor_parallel"}, {"b", "micro_batch"}, {"c", "activation_checkpointing"}});
  EXPECT_EQ(step.integer("tensor_parallel", 0), 4);
  EXPECT_EQ(step.integer("micro_batch", 0), 2);
  ASSERT_NE(step.find("activation_checkpointing"), nullptr);
  EXPECT_EQ(space::to_string(*step.find("activation_checkpointing")), "full");
  EXPECT_EQ(step.find("a"), nullptr);
}

// A hypothesis with roles predicts what the step takes under the usual names.
TEST(Roles, PredictAsTheUsualNames) {
  const session::Session own = session_of(kOwnNames);
  const session::MemoryFilter filter(own);
  const auto hypotheses = forecast::Hypotheses::of(own, filter);
  ASSERT_NE(hypotheses, nullptr);
  EXPECT_TRUE(hypotheses->guess_roles());
  const Roles meant = {{"a", "tensor_parallel"}, {"b", "micro_batch"}, {"c", "zero_stage"}};
  const std::vector<space::Configuration> one = {
      {{"a", std::int64_t{2}}, {"b", std::int64_t{4}}, {"c", std::int64_t{1}}}};
  const space::Configuration usual = {
      {"tensor_parallel", std::int64_t{2}}, {"micro_batch", std::int64_t{4}}, {"zero_stage", std::int64_t{1}}};
  double no_step = 0.0;
  std::size_t compared = 0;
  for (std::size_t h = 0; h < hypotheses->all().size(); ++h) {
    const forecast::Hypothesis& hypothesis = hypotheses->all()[h];
    if (!hypothesis.job) no_step += hypothesis.probability;
    if (!hypothesis.job || hypotheses->roles(*hypothesis.job) != meant) continue;
    const workload::Workload& job = hypotheses->workload(*hypothesis.job);
    const cost::StepCostModel model(job, hypotheses->cluster(*hypothesis.job));
    const auto cost = model.if_modelled(usual);
    if (!cost) continue;
    const auto tokens = static_cast<double>(*job.train_batch_size * job.model.seq_len);
    EXPECT_NEAR(hypotheses->log_values({h}, one)(0, 0), std::log(tokens / cost->step_time_s), 1e-9);
    ++compared;
  }
  EXPECT_GT(compared, 0U);
  EXPECT_NEAR(no_step, 0.25, 1e-12);
}

// Some of the parameters are in no step under any meaning, and many meanings share their steps. Each hypothesis and
// configuration on its own would take six times as many predictions, or, without what meanings share, twice as many.
TEST(Roles, ShareThePredictionsOfEqualSteps) {
  const session::Session own = session_of(R"({"a": [1, 2, 4], "b": [1, 2, 4, 8], "c": [0, 1], "d": [5, 7],
                                              "e": ["red", "green", "blue"]})");
  const session::MemoryFilter filter(own);
  const auto hypotheses = forecast::Hypotheses::of(own, filter);
  std::vector<space::Configuration> all;
  own.space.for_each([&](const space::Configuration& one) {
    all.push_back(one);
    return true;
  });
  ASSERT_EQ(all.size(), 24U * 6U);
  std::vector<std::size_t> with_physics;
  constexpr std::size_t kJobsOfAMeaning = 36;  // nine models in four settings; all of them would take seconds
  for (std::size_t h = 0; h < hypotheses->all().size(); ++h) {
    if (hypotheses->all()[h].job && h % kJobsOfAMeaning < 4) with_physics.push_back(h);
  }
  const Eigen::MatrixXd values = hypotheses->log_values(with_physics, all);
  EXPECT_TRUE(values.allFinite());
  const auto without_sharing = static_cast<double>(with_physics.size() * all.size());
  EXPECT_LE(static_cast<double>(hypotheses->predictions()), 0.7 / 6.0 * without_sharing);
  const std::size_t before = hypotheses->predictions();
  EXPECT_TRUE(hypotheses->log_values(with_physics, all) == values);
  EXPECT_EQ(hypotheses->predictions(), before);
}

// A metric that is no known speed says nothing about a training step.
TEST(Roles, NeedAKnownMetric) {
  const session::Session own = session_of(kOwnNames, "tokens_per_second");
  EXPECT_FALSE(forecast::usual_jobs(own).empty());
  const std::string text = std::string(R"({"baseline": null, "space": )") + kOwnNames +
                           R"(, "objective": {"metric": "score", "direction": "maximize"},
                              "runner": {"kind": "command", "argv": ["true", "{config}"]}})";
  EXPECT_TRUE(forecast::usual_jobs(session::read_session(parse_json(text, "s"), "s", ".")).empty());
}

}  // namespace krigtune::roles_test
