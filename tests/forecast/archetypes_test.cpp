// What a job may be before any trial: the guesses themselves, without the search that weighs them.
#include "forecast/archetypes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "core/json.h"
#include "cost/time/step_cost.h"
#include "forecast/forecast.h"
#include "session/memory_filter.h"

namespace krigtune::archetypes_test {

using forecast::JobGuess;
using workload::Framework;

// `facts`: keys of the session before its space.
session::Session without_workload(const std::string& facts, const std::string& space) {
  const std::string text = "{" + facts + R"("baseline": null, "space": )" + space + R"(,
      "objective": {"metric": "tokens_per_second"}, "runner": {"kind": "command", "argv": ["true", "{config}"]}})";
  return session::read_session(parse_json(text, "s"), "s", ".");
}

constexpr const char* kSpace = R"({"tensor_parallel": [1, 2, 4], "pipeline_parallel": [1, 2, 3],
                                   "micro_batch": [1, 2, 6], "zero_stage": [0, 1]})";
constexpr const char* kH100s =
    R"("cluster": {"nodes": 3, "gpus_per_node": 8, "gpu": "h100-80gb", "network": "ib-hdr-200"}, )";

double total(const std::vector<JobGuess>& jobs) {
  return std::accumulate(jobs.begin(), jobs.end(), 0.0,
                         [](double sum, const JobGuess& job) { return sum + job.probability; });
}

// Returns the probability of each number of ranks.
std::map<std::int64_t, double> by_ranks(const std::vector<JobGuess>& jobs) {
  std::map<std::int64_t, double> found;
  for (const JobGuess& job : jobs) found[job.cluster.ranks()] += job.probability;
  return found;
}

std::map<Framework, double> by_framework(const std::vector<JobGuess>& jobs) {
  std::map<Framework, double> found;
  for (const JobGuess& job : jobs) found[job.workload.framework] += job.probability;
  return found;
}

TEST(Archetypes, ProbabilitiesOfUsualJobsAddUpToOne) {
  for (const char* facts : {"", kH100s, R"("framework": "nanotron", )", R"("cluster": {"gpus_per_node": 8}, )"}) {
    for (const char* space : {kSpace, R"({"micro_batch": [1, 2], "gradient_accumulation_steps": [1, 2, 4]})"}) {
      const std::vector<JobGuess> jobs = forecast::usual_jobs(without_workload(facts, space));
      ASSERT_FALSE(jobs.empty()) << facts;
      EXPECT_NEAR(total(jobs), 1.0, 1e-12) << facts << space;
      for (const JobGuess& job : jobs) {
        EXPECT_GT(job.probability, 0.0);
        EXPECT_FALSE(job.is_told);
      }
    }
  }
}

TEST(Archetypes, AreInAscendingOrderOfTheModelsSize) {
  const std::vector<JobGuess> jobs = forecast::usual_jobs(without_workload(kH100s, kSpace));
  const auto is_smaller = [](const JobGuess& a, const JobGuess& b) {
    return workload::parameter_count(a.workload.model) < workload::parameter_count(b.workload.model);
  };
  EXPECT_TRUE(std::is_sorted(jobs.begin(), jobs.end(), is_smaller));
  const auto smallest = static_cast<double>(workload::parameter_count(jobs.front().workload.model));
  const auto largest = static_cast<double>(workload::parameter_count(jobs.back().workload.model));
  EXPECT_LT(smallest, 0.5e9);
  EXPECT_GT(largest, 4e11);
}

// By brute force: a batch is possible if it consists of whole micro-batches on each replica of every configuration that
// the ranks can run, and the smallest guess is the smallest of those.
TEST(Archetypes, TheSmallestBatchDividesForEveryConfiguration) {
  const session::Session session = without_workload(kH100s, kSpace);
  const auto divides = [&](std::int64_t batch) {
    bool all = true;
    session.space.for_each([&](const space::Configuration& one) {
      const std::int64_t split = one.integer("tensor_parallel", 1) * one.integer("pipeline_parallel", 1);
      if (24 % split != 0) return true;
      all = batch % (24 / split * one.integer("micro_batch", 1)) == 0;
      return all;
    });
    return all;
  };
  std::int64_t smallest = 1;
  while (!divides(smallest)) ++smallest;
  std::set<std::int64_t> batches;
  for (const JobGuess& job : forecast::usual_jobs(session)) batches.insert(job.workload.train_batch_size.value_or(0));
  EXPECT_EQ(batches, (std::set<std::int64_t>{smallest, 4 * smallest}));
}

TEST(Archetypes, LeaveTheBatchOpenWhereMicroStepsVary) {
  const std::vector<JobGuess> jobs = forecast::usual_jobs(
      without_workload(kH100s, R"({"micro_batch": [1, 2], "gradient_accumulation_steps": [1, 2, 4]})"));
  for (const JobGuess& job : jobs) EXPECT_FALSE(job.workload.train_batch_size.has_value());
}

TEST(Archetypes, EveryConfigurationHasAStepTimeInSomeJob) {
  const session::Session session = without_workload("", kSpace);
  const std::vector<JobGuess> jobs = forecast::usual_jobs(session);
  session.space.for_each([&](const space::Configuration& one) {
    const bool is_modelled = std::any_of(jobs.begin(), jobs.end(), [&](const JobGuess& job) {
      return cost::StepCostModel(job.workload, job.cluster).if_modelled(forecast::as_training_step(one)).has_value();
    });
    EXPECT_TRUE(is_modelled) << one.text();
    return true;
  });
}

// Predictions are shared by this number.
TEST(Archetypes, EqualNumbersOfPhysicsMeanEqualJobs) {
  const std::string told = R"("workload": {"model": {"layers": 4, "hidden": 512, "heads": 8, "vocab": 1000,
      "seq_len": 512}, "precision": "bf16", "framework": "krigtune", "train_batch_size": 48}, )";
  const std::string own_names = R"({"a": [1, 2, 4, 8], "b": [1, 2, 4, 8, 16], "c": [0, 1]})";
  const std::vector<std::vector<JobGuess>> lists = {
      forecast::usual_jobs(without_workload("", kSpace)), forecast::usual_jobs(without_workload("", own_names)),
      forecast::around_the_told_job(without_workload(told + kH100s, R"({"micro_batch": [1, 2], "zero_stage": [0]})"))};
  for (const std::vector<JobGuess>& jobs : lists) {
    std::map<std::size_t, std::string> of_numbers;
    std::map<std::string, std::size_t> of_texts;
    for (std::size_t i = 0; i<jobs.size(); i += jobs.size()> 700 ? 7 : 1) {
      const std::string text = to_json(jobs[i].workload).dump() + to_json(jobs[i].cluster).dump();
      EXPECT_EQ(of_numbers.emplace(jobs[i].physics, text).first->second, text);
      EXPECT_EQ(of_texts.emplace(text, jobs[i].physics).first->second, jobs[i].physics);
    }
    EXPECT_GT(of_numbers.size(), 10U);
  }
}

TEST(Archetypes, ANamedClusterIsTheOnlyOne) {
  for (const JobGuess& job : forecast::usual_jobs(without_workload(kH100s, kSpace))) {
    EXPECT_EQ(job.cluster.nodes, 3);
    EXPECT_EQ(job.cluster.gpus_per_node, 8);
    EXPECT_EQ(job.cluster.network->inter.name, "ib-hdr-200");
  }
}

// The ranks are known although the GPU is not.
TEST(Archetypes, ToldRanksAreNotGuessedWithoutAGpu) {
  const std::vector<JobGuess> jobs =
      forecast::usual_jobs(without_workload(R"("cluster": {"nodes": 2, "gpus_per_node": 6}, )", kSpace));
  EXPECT_EQ(by_ranks(jobs).size(), 1U);
  for (const JobGuess& job : jobs) {
    EXPECT_EQ(job.cluster.nodes, 2);
    EXPECT_EQ(job.cluster.gpus_per_node, 6);
    EXPECT_TRUE(job.cluster.device.has_value());
  }
}

TEST(Archetypes, UnknownRanksAreAsManyAsTheSpaceNeedsOrFourTimes) {
  // The splits have 1, 2, 3, 4, 6, 8 and 12 ranks, of which 24 is the least common multiple.
  const std::map<std::int64_t, double> wanted = {{24, 0.6}, {96, 0.4}};
  for (const char* facts :
       {"", R"("cluster": "local", )", R"("cluster": {"gpus_per_node": 1, "ranks_assumed": true}, )",
        R"("cluster": {"gpus_per_node": 4, "gpu": "a100-40gb", "ranks_assumed": true}, )"}) {
    const std::vector<JobGuess> jobs = forecast::usual_jobs(without_workload(facts, kSpace));
    const std::map<std::int64_t, double> ranks = by_ranks(jobs);
    ASSERT_EQ(ranks.size(), wanted.size()) << facts;
    for (const auto& [count, probability] : wanted) EXPECT_NEAR(ranks.at(count), probability, 1e-12) << facts;
    const bool is_a100 = std::string(facts).find("a100") != std::string::npos;
    for (const JobGuess& job : jobs) EXPECT_EQ(job.cluster.device->id, is_a100 ? "a100-40gb" : "h100-80gb");
  }
}

TEST(Archetypes, ANamedFrameworkIsTheLikeliest) {
  const auto named = by_framework(forecast::usual_jobs(without_workload(R"("framework": "fsdp", )", kSpace)));
  EXPECT_EQ(named.size(), 4U);
  EXPECT_NEAR(named.at(Framework::kFsdp), 0.7, 1e-12);
  EXPECT_NEAR(named.at(Framework::kMegatron), 0.1, 1e-12);
  const auto open = by_framework(forecast::usual_jobs(without_workload("", kSpace)));
  for (const auto& [framework, probability] : open) EXPECT_NEAR(probability, 0.25, 1e-12);
}

TEST(Archetypes, NeedASpeedAndAParameterOfATrainingStep) {
  EXPECT_TRUE(forecast::usual_jobs(without_workload("", R"({"workers": [1, 2], "micro_batch": [4]})")).empty());
  const auto with_objective = [](const std::string& objective) {
    return session::read_session(
        parse_json(R"({"baseline": null, "space": {"mbs": [1, 2]}, "objective": )" + objective +
                       R"(, "runner": {"kind": "command", "argv": ["true", "{config}"]}})",
                   "s"),
        "s", ".");
  };
  const auto knows = [&](const std::string& objective) {
    return !forecast::usual_jobs(with_objective(objective)).empty();
  };
  EXPECT_TRUE(knows(R"({"metric": "throughput"})"));
  EXPECT_TRUE(knows(R"({"metric": "speed", "direction": "maximize", "unit": "tok/s"})"));
  EXPECT_TRUE(knows(R"({"metric": "time", "direction": "minimize", "unit": "ms/step"})"));
  EXPECT_FALSE(knows(R"({"metric": "speed", "direction": "minimize", "unit": "tok/s"})"));
  EXPECT_FALSE(knows(R"({"metric": "loss", "direction": "minimize"})"));
}

session::Session told(const std::string& runner) {
  return session::read_session(parse_json(R"({
      "workload": {"model": {"layers": 24, "hidden": 2048, "heads": 16, "vocab": 50304, "seq_len": 2048},
                   "precision": "bf16", "framework": "deepspeed", "train_batch_size": 256},
      "cluster": {"gpus_per_node": 8, "gpu": "a100-80gb"}, "baseline": null,
      "space": {"zero_stage": [0, 1], "micro_batch": [1, 2]}, "runner": )" +
                                              runner + "}",
                                          "s"),
                               "s", ".");
}

TEST(Archetypes, TheToldJobIsFirstAndLikeliest) {
  const session::Session session = told(R"({"kind": "command", "argv": ["true", "{config}"]})");
  const std::vector<JobGuess> jobs = forecast::around_the_told_job(session);
  EXPECT_NEAR(total(jobs), 1.0, 1e-12);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_EQ(jobs[i].is_told, i == 0);
    EXPECT_LE(jobs[i].probability, (i == 0 ? 1.0 : 0.5) * jobs.front().probability);
    EXPECT_EQ(jobs[i].cluster.ranks(), 8);
    EXPECT_EQ(jobs[i].workload.train_batch_size, 256);
  }
  EXPECT_EQ(jobs.front().workload.model, session.workload->model);
  EXPECT_EQ(jobs.front().workload.framework, Framework::kDeepSpeed);
  EXPECT_FALSE(jobs.front().trains_adapters);
  std::map<std::int64_t, double> by_layers;
  double adapters = 0.0;
  for (const JobGuess& job : jobs)
    (job.trains_adapters ? adapters : by_layers[job.workload.model.layers]) += job.probability;
  EXPECT_NEAR(by_layers.at(24), 0.8, 1e-12);
  EXPECT_NEAR(by_layers.at(12), 0.08, 1e-12);
  EXPECT_NEAR(by_layers.at(48), 0.08, 1e-12);
  EXPECT_NEAR(adapters, 0.04, 1e-12);
}

TEST(Archetypes, TheVirtualClockRunsTheToldJob) {
  const std::vector<JobGuess> jobs = forecast::around_the_told_job(told(R"({"kind": "simulate"})"));
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_TRUE(jobs.front().is_told);
  EXPECT_EQ(jobs.front().probability, 1.0);
}

TEST(Archetypes, OtherNamesAreTranslatedForTheTrainingStep) {
  space::Configuration own;
  own.set("tp", std::int64_t{2});
  own.set("pp", std::int64_t{3});
  own.set("mbs", std::int64_t{4});
  own.set("gradient_checkpointing", true);
  own.set("workers", std::int64_t{5});
  const space::Configuration step = forecast::as_training_step(own);
  EXPECT_EQ(step.integer("tensor_parallel", 0), 2);
  EXPECT_EQ(step.integer("pipeline_parallel", 0), 3);
  EXPECT_EQ(step.integer("micro_batch", 0), 4);
  EXPECT_EQ(step.text(), forecast::as_training_step(step).text());
  EXPECT_EQ(space::to_string(*step.find("activation_checkpointing")), "full");
  EXPECT_FALSE(step.has("workers"));
  EXPECT_FALSE(step.has("tp"));
  own.set("gradient_checkpointing", false);
  EXPECT_EQ(space::to_string(*forecast::as_training_step(own).find("activation_checkpointing")), "none");
}

// With a workload, other names are predicted as the usual ones.
TEST(OtherNames, AreForecastAsTheUsualOnes) {
  const auto session_with = [](const std::string& space) {
    return without_workload(R"("workload": {"model": {"layers": 8, "hidden": 1024, "heads": 16, "vocab": 50304,
        "seq_len": 2048}, "precision": "bf16", "framework": "megatron", "train_batch_size": 64}, "cluster": {"nodes": 1,
        "gpus_per_node": 8, "gpu": "h100-80gb", "network": "ib-hdr-200"}, )",
                            space);
  };
  const session::Session usual = session_with(R"({"tensor_parallel": [1, 2, 4], "micro_batch": [1, 2, 4]})");
  const session::Session other = session_with(R"({"tp": [1, 2, 4], "mbs": [1, 2, 4]})");
  const session::MemoryFilter filter_of_usual(usual);
  const session::MemoryFilter filter_of_other(other);
  const forecast::Forecaster of_usual(usual, filter_of_usual);
  const forecast::Forecaster of_other(other, filter_of_other);
  std::set<double> speeds;
  other.space.for_each([&](const space::Configuration& one) {
    const forecast::Forecast found = of_other(one);
    const forecast::Forecast expected = of_usual(session::modelled_part(one));
    EXPECT_TRUE(found.value.has_value()) << one.text();
    EXPECT_EQ(found.value, expected.value) << one.text();
    EXPECT_EQ(forecast::sequences_per_step(other, one), 64) << one.text();
    speeds.insert(found.value.value_or(0.0));
    return true;
  });
  EXPECT_EQ(speeds.size(), 9u);
}

}  // namespace krigtune::archetypes_test
