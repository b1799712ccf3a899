// A user's program that includes only the installed headers of krigtune.
#include "krigtune/tuning.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>

#include "trial/temporary_directory.h"

namespace krigtune::tuning_test {

constexpr const char* kSmallSpace = R"({
  "space": {"depth": [1, 2, 3, 4, 5, 6], "mode": ["slow", "fast"]},
  "objective": {"metric": "score", "direction": "maximize"},
  "baseline": {"depth": 1, "mode": "slow"}
})";

class TuningTest : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& text) const {
    const std::filesystem::path path = folder_.path() / "session.json";
    std::ofstream(path) << text;
    return path;
  }
  std::filesystem::path runs() const { return folder_.path() / "runs"; }

  // 10 at depth 4 and fast; all other configurations are far worse.
  static double score(const ParameterValues& configuration) {
    double depth = 0.0;
    bool fast = false;
    for (const auto& [name, value] : configuration) {
      if (name == "depth") depth = static_cast<double>(std::get<std::int64_t>(value));
      if (name == "mode") fast = std::get<std::string>(value) == "fast";
    }
    return (fast ? 10.0 : 5.0) - std::abs(depth - 4.0);
  }

  template <class Call>
  static std::string refusal(const Call& call) {
    try {
      call();
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }

  TemporaryDirectory folder_;
};

// The peak is told as a field of its own, and the limit is of the metric.
TEST_F(TuningTest, TakesTheToldPeakForALimitOfMemory) {
  Tuning tuning(file(R"({"space": {"depth": [1, 2, 3]}, "baseline": null, "runner": {"kind": "none"},
                         "objective": {"metric": "score", "direction": "maximize"},
                         "limits": ["peak_memory_bytes <= 100"]})"),
                runs());
  for (const auto& [value, peak] : std::vector<std::pair<double, std::int64_t>>{{5.0, 90}, {7.0, 110}}) {
    const auto trial = tuning.ask();
    ASSERT_TRUE(trial);
    TrialResult result = TrialResult::ok(value);
    result.peak_memory_bytes = peak;
    tuning.tell(trial->number, result);
  }
  ASSERT_TRUE(tuning.best());
  EXPECT_EQ(tuning.best()->value, 5.0) << "the faster one breaks the limit";
}

TEST_F(TuningTest, TakesANumberForEachOfSeveralObjectives) {
  Tuning tuning(file(R"({"space": {"depth": [1, 2, 3]}, "baseline": null, "runner": {"kind": "none"},
                         "objectives": [{"metric": "score", "direction": "maximize"},
                                        {"metric": "power_w", "direction": "minimize"}]})"),
                runs());
  const auto trial = tuning.ask();
  ASSERT_TRUE(trial);
  TrialResult result = TrialResult::ok(5.0);
  EXPECT_NE(refusal([&] { tuning.tell(trial->number, result); }).find("'power_w', which the session needs"),
            std::string::npos);
  result.metrics["power_w"] = 250.0;
  tuning.tell(trial->number, result);
  ASSERT_TRUE(tuning.best());
  EXPECT_EQ(tuning.best()->value, 5.0);
}

TEST_F(TuningTest, AsksEveryConfigurationOfASmallSpaceOnceAndKnowsTheBest) {
  Tuning tuning(file(kSmallSpace), runs());
  std::set<ParameterValues> asked;
  while (const auto trial = tuning.ask()) {
    EXPECT_TRUE(asked.insert(trial->configuration).second) << trial->number;
    if (asked.size() == 1) {
      EXPECT_EQ(std::get<std::int64_t>(trial->configuration.front().second), 1);  // the baseline
    }
    tuning.tell(trial->number, TrialResult::ok(score(trial->configuration)));
    ASSERT_LE(asked.size(), 12U);
  }
  const auto best = tuning.best();
  ASSERT_TRUE(best);
  EXPECT_EQ(best->value, 10.0);
  EXPECT_EQ(best->configuration, (ParameterValues{{"depth", std::int64_t{4}}, {"mode", std::string("fast")}}));
  EXPECT_NEAR(best->gain, 10.0 / 2.0, 1e-12);  // the baseline scored 2
}

TEST_F(TuningTest, GoesOnWhereAnotherProcessEnded) {
  int next = 0;
  {
    Tuning tuning(file(kSmallSpace), runs());
    for (; next < 3; ++next) {
      const auto trial = tuning.ask();
      ASSERT_TRUE(trial);
      EXPECT_EQ(trial->number, next);
      tuning.tell(trial->number, TrialResult::ok(score(trial->configuration)));
    }
  }
  Tuning again(folder_.path() / "session.json", runs());
  const auto trial = again.ask();
  ASSERT_TRUE(trial);
  EXPECT_EQ(trial->number, next);
  EXPECT_TRUE(again.best());
}

TEST_F(TuningTest, TakesFailuresForResults) {
  Tuning tuning(file(kSmallSpace), runs());
  const auto first = tuning.ask();
  const auto second = tuning.ask();
  ASSERT_TRUE(first && second);
  tuning.tell(first->number, TrialResult::out_of_memory());
  tuning.tell(second->number, TrialResult::failed("Segmentation fault"));
  EXPECT_FALSE(tuning.best());
  EXPECT_NE(refusal([&] { tuning.tell(first->number, TrialResult::ok(1.0)); }).find("closed already: oom"),
            std::string::npos);
}

TEST_F(TuningTest, SaysInOneLineWhatIsWrong) {
  const std::string unknown = refusal([&] { Tuning(file(R"({"space": {"a": [1]}, "budgets": {}})"), runs()); });
  EXPECT_NE(unknown.find("budget"), std::string::npos) << unknown;
  EXPECT_EQ(unknown.find('\n'), std::string::npos);
  Tuning tuning(file(kSmallSpace), runs());
  ASSERT_TRUE(tuning.ask());
  EXPECT_NE(refusal([&] { tuning.tell(0, TrialResult::ok(std::nan(""))); }).find("is not a value of 'score'"),
            std::string::npos);
  EXPECT_NE(refusal([&] { tuning.tell(7, TrialResult::ok(1.0)); }).find("there is no trial 7"), std::string::npos);
}

TEST_F(TuningTest, AnswersWhatIsKnownBeforeAnythingRuns) {
  const PlanAnswer unknown = Tuning(file(kSmallSpace), runs()).plan();
  EXPECT_EQ(unknown.looked_at, 12);
  EXPECT_FALSE(unknown.fastest_step_time_s);
  // Activations of 64 sequences in 48 layers take several times the 32 GiB of a V100.
  const PlanAnswer known = Tuning(file(R"({
    "workload": {"model": {"preset": "gpt2-1.5b"}, "precision": "fp16"},
    "cluster": {"nodes": 1, "gpus_per_node": 8, "gpu": "v100-32gb", "interconnect": "nvlink2"},
    "space": {"zero_stage": [0, 3], "micro_batch": [1, 64]},
    "runner": {"kind": "none"}
  })"),
                                  runs())
                               .plan();
  EXPECT_EQ(known.looked_at, 4);
  EXPECT_EQ(known.fit + known.uncertain + known.too_large, 4);
  EXPECT_GE(known.too_large, 1);
  ASSERT_TRUE(known.fastest_step_time_s);
  EXPECT_GT(*known.fastest_step_time_s, 0.0);
  EXPECT_FALSE(known.fastest.empty());
}

}  // namespace krigtune::tuning_test
