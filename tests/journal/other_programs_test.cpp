// What Optuna and other programs write into a journal besides krigtune.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/files.h"
#include "journal/distributions.h"
#include "journal/example_trials.h"
#include "journal/trial_record.h"
#include "trial/temporary_directory.h"

namespace krigtune::other_programs_test {

// Returns the JSON of a distribution of choices, as a string within a line.
std::string choices(const std::string& list) {
  const Json json = {{"name", "CategoricalDistribution"}, {"attributes", {{"choices", Json::parse(list)}}}};
  return Json(json.dump()).dump();
}

class OtherPrograms : public ::testing::Test {
 protected:
  // Adds a line in their form: the operation, then what follows the worker's name.
  void add(int operation, const std::string& rest) const {
    std::ofstream(file_, std::ios::app) << fmt::format("{{\"op_code\": {}, \"worker_id\": \"o\", {}}}\n", operation,
                                                       rest);
  }
  const journal::Trial& last() {
    journal_.refresh();
    return journal_.trials().back();
  }
  std::size_t begin_here() { return static_cast<std::size_t>(begin_next(journal_, example_proposal(1, 8), 2)); }

  TemporaryDirectory dir_;
  std::filesystem::path file_ = dir_ / "journal.log";
  journal::Journal journal_{file_, example_space(), "throughput", true};
};

constexpr const char* kStart = R"("study_id": 0, "datetime_start": "2026-08-23T10:00:00.000000")";

TEST_F(OtherPrograms, TheirTrialsAreCountedAndNotOursToClose) {
  begin_here();
  add(4, kStart);
  EXPECT_EQ(last().proposal.asker, journal::Asker::kHand);
  EXPECT_FALSE(last().outcome.has_value());
  add(5, R"("trial_id": 1, "param_name": "offload", "param_value_internal": 1, "distribution": )" +
             choices(R"(["none", "cpu"])"));
  add(6, R"("trial_id": 1, "state": 1, "values": [7.5], "datetime_complete": "2026-08-23T10:00:00.000000")");
  EXPECT_EQ(last().proposal.configuration.text(), "offload=cpu");
  EXPECT_EQ(std::get<trial::Measured>(*last().outcome).metrics.at("throughput"), 7.5);
  EXPECT_EQ(begin_here(), 2U);
}

TEST_F(OtherPrograms, AQueuedTrialRunsOnlyOnceItIsBegun) {
  add(4,
      R"("study_id": 0, "datetime_start": null, "state": 4, "value": null, "values": null, "distributions": {}, )"
      R"("params": {}, "user_attrs": {}, "system_attrs": {"fixed_params": {"zero_stage": 2}}, "intermediate_values": {})");
  EXPECT_TRUE(last().waiting);
  EXPECT_FALSE(last().outcome.has_value());
  EXPECT_EQ(last().proposal.configuration.text(), "zero_stage=2");
  EXPECT_EQ(last().proposal.asker, journal::Asker::kHand);
  add(6, R"("trial_id": 0, "state": 0, "values": null, "datetime_start": "2026-08-23T11:00:00.000000")");
  add(6, R"("trial_id": 0, "state": 0, "values": null, "datetime_start": "2026-08-23T12:00:00.000000")");
  EXPECT_FALSE(last().waiting);
  EXPECT_EQ(last().started_at, "2026-08-23T11:00:00.000000");
  EXPECT_TRUE(journal_.end(0, trial::Bounded{1.0}, 1.0, 2));
}

TEST_F(OtherPrograms, AQueuedTrialCanBeEndedWithoutHavingBegun) {
  add(4, R"("study_id": 0, "datetime_start": null, "state": 4)");
  EXPECT_TRUE(last().proposal.configuration.empty());
  EXPECT_TRUE(journal_.end(0, trial::Failed{}, 1.0, 2));
  EXPECT_FALSE(last().waiting);
  EXPECT_TRUE(last().outcome.has_value());
}

TEST_F(OtherPrograms, TheirOtherStudiesArePassedOverAndTheirTrialsHaveIds) {
  begin_here();
  add(0, R"("study_name": "mine", "directions": [1, 2])");
  add(0, R"("study_name": "krigtune", "directions": [2])");  // load_if_exists: not a new study
  add(0, R"("study_name": "too", "directions": [1])");
  add(3, R"("study_id": 2, "system_attr": {"study:metric_names": ["loss"]})");
  add(4, R"("study_id": 1, "datetime_start": null)");
  add(8, R"("trial_id": 1, "user_attr": {"configuration": "{}"})");
  add(1, R"("study_id": 1)");
  add(4, R"("study_id": 1, "datetime_start": null)");  // after its end: neither a trial nor an id
  add(6, R"("trial_id": 1, "state": 3, "values": null, "datetime_complete": "2026-08-23T10:00:00.000000")");
  EXPECT_EQ(begin_here(), 1U);
  EXPECT_TRUE(journal_.end(1, trial::Bounded{3.0}, 1.0, 2));
  const std::vector<journal::Trial> trials = journal::read_journal(file_);
  ASSERT_EQ(trials.size(), 2U);
  EXPECT_FALSE(trials[0].outcome.has_value());
  EXPECT_EQ(full_text(trials[1].proposal), full_text(example_proposal(1, 8)));
  EXPECT_EQ(std::get<trial::Bounded>(*trials[1].outcome).at_best, 3.0);
  // Uses the id that Optuna counts: two trials came before it.
  EXPECT_NE(read_text(file_).find(R"("trial_id":2,"param_name":"zero_stage")"), std::string::npos);
}

TEST_F(OtherPrograms, ParametersThatOptunaDropsAreDropped) {
  add(4, kStart);
  add(5, R"("trial_id": 0, "param_name": "offload", "param_value_internal": 1, "distribution": )" +
             choices(R"(["none", "cpu"])"));
  add(4, kStart);
  add(5, R"("trial_id": 1, "param_name": "offload", "param_value_internal": 1, "distribution": )" +
             choices(R"(["cpu", "none", "nvme"])"));
  EXPECT_TRUE(last().proposal.configuration.empty());
  begin_here();
  // krigtune's trial is written with the choices of the first trial; otherwise Optuna would drop it.
  const std::string text = read_text(file_);
  EXPECT_NE(text.rfind("[\\\"none\\\",\\\"cpu\\\"]"), std::string::npos) << text;
}

TEST_F(OtherPrograms, ValuesThatNoConfigurationHasAreLeftOut) {
  add(4, kStart);
  add(5, R"("trial_id": 0, "param_name": "a", "param_value_internal": 0, "distribution": )" + choices("[null, 1]"));
  add(5, R"("trial_id": 0, "param_name": "b", "param_value_internal": 0, "distribution": )" + choices("[[1, 2], 1]"));
  add(5, R"("trial_id": 0, "param_name": "c", "param_value_internal": 5, "distribution": )" + choices("[3, 1]"));
  add(5, R"("trial_id": 0, "param_name": "d", "param_value_internal": 2.5, "distribution": "{\"type\": \"float\"}")");
  add(5, R"("trial_id": 0, "param_name": "e", "param_value_internal": 1, "distribution": )" + choices("[3, 1]"));
  EXPECT_EQ(last().proposal.configuration.text(), "e=1");
}

TEST_F(OtherPrograms, NumbersThatAreNoJsonAreRead) {
  add(4, kStart);
  add(7, R"("trial_id": 0, "step": 1, "intermediate_value": NaN)");
  add(8, R"("trial_id": 0, "user_attr": {"said \" NaN": -Infinity})");
  add(6, R"("trial_id": 0, "state": 1, "values": [Infinity], "datetime_complete": "2026-08-23T10:00:00.000000")");
  EXPECT_EQ(trial::reason_text(last().outcome.value()), "bad_result");
  EXPECT_EQ(begin_here(), 1U);
}

TEST_F(OtherPrograms, TheirAttributesMayMeanAnything) {
  add(4, R"("study_id": 0, "datetime_start": null, "user_attrs": {"configuration": 7, "strategy": [], "asker": {}})");
  for (const char* attribute : {R"("configuration": "{\"a\": null}")", R"("configuration": "[1]")", R"("status": 1)",
                                R"("wall_s": "long")", R"("metric_x": "fast")", R"("peak_memory_bytes": 1e40)",
                                R"("value_sem": null)", R"("hyperparameters": "many")", R"("reason": false)"}) {
    add(8, fmt::format(R"("trial_id": 0, "user_attr": {{{}}})", attribute));
  }
  add(6, R"("trial_id": 0, "state": 1, "values": [2.5], "datetime_complete": "2026-08-23T10:00:00.000000")");
  const auto measured = std::get<trial::Measured>(last().outcome.value());
  EXPECT_EQ(measured.metrics, (std::map<std::string, double>{{"throughput", 2.5}}));
  EXPECT_FALSE(measured.peak_memory.has_value());
  EXPECT_TRUE(last().proposal.configuration.empty());
  add(4, R"("study_id": 0, "datetime_start": null, "user_attrs": {"status": "oom", "predicted": 1, "exit_code": "x"})");
  add(6, R"("trial_id": 1, "state": 3, "values": null, "datetime_complete": "2026-08-23T10:00:00.000000")");
  EXPECT_FALSE(std::get<trial::OutOfMemory>(last().outcome.value()).predicted);
}

TEST_F(OtherPrograms, WhatComesAfterTheEndOfATrialIsDropped) {
  begin_here();
  journal_.end(0, trial::Bounded{1.0}, 1.0, 2);
  const std::string before = full_text(last());
  add(8, R"("trial_id": 0, "user_attr": {"configuration": "{\"zero_stage\":3}"})");
  add(6, R"("trial_id": 0, "state": 1, "values": [9.0], "datetime_complete": "2026-08-23T10:00:00.000000")");
  EXPECT_EQ(full_text(last()), before);
}

TEST_F(OtherPrograms, ATrialThatLacksParametersIsPassedOverUntilItHasThem) {
  begin_here();
  add(4, kStart);
  EXPECT_NE(last().passed_over.find("trial 1 of another program lacks"), std::string::npos);
  EXPECT_TRUE(journal_.complaints().empty());  // its worker may still write them
  const space::Space space = example_space();
  for (const space::Parameter& parameter : space.parameters()) {
    const space::Value value = parameter.continuous() ? space::Value(0.5) : parameter.values.front();
    const Json distribution = journal::first_distribution(parameter, value).value();
    add(5, fmt::format(R"("trial_id": 1, "param_name": "{}", "param_value_internal": {}, "distribution": {})",
                       parameter.name, journal::internal_value(distribution, value).dump(),
                       Json(distribution.dump()).dump()));
  }
  EXPECT_EQ(last().passed_over, "");
  add(4, kStart);
  add(6, R"("trial_id": 2, "state": 3, "values": null, "datetime_complete": "2026-08-23T10:00:00.000000")");
  EXPECT_FALSE(last().passed_over.empty());
  ASSERT_EQ(journal_.complaints().size(), 1U);
  EXPECT_NE(journal_.complaints()[0].find("trial 2 of another program lacks"), std::string::npos);
  EXPECT_EQ(begin_here(), 3U);
}

}  // namespace krigtune::other_programs_test
