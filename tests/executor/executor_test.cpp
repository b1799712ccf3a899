// The session's block "executor", and what each trial needs.
#include "executor/executor.h"

#include <gtest/gtest.h>

#include "core/json.h"
#include "executor/local.h"
#include "user_error.h"

namespace krigtune::executor_test {
namespace {

executor::ExecutorSpec read(const std::string& text) {
  return executor::read_executor(parse_json(text, "s.json"), "s.json", "/executor", {});
}

space::Space space_of(const std::string& json, std::int64_t ranks = 8) {
  space::JobFacts facts;
  facts.ranks = ranks;
  return {space::read_parameters(parse_json(json, "s.json"), "s.json", "/space"), facts};
}

space::Configuration sized(std::int64_t tp, std::int64_t pp) {
  return {{"tensor_parallel", tp}, {"pipeline_parallel", pp}};
}

constexpr const char* kSizes = R"({"tensor_parallel": [2, 4], "pipeline_parallel": [1, 2]})";

}  // namespace

TEST(Executor, IsReadAndWritten) {
  const auto spec = std::get<executor::LocalSpec>(read(R"({"kind": "local", "slots": 2, "gpus_per_trial": 4})"));
  EXPECT_EQ(spec.slots, 2);
  EXPECT_EQ(spec.gpus_per_trial, "4");
  EXPECT_EQ(executor::to_json(executor::ExecutorSpec(spec)).dump(),
            R"({"kind":"local","slots":2,"gpus_per_trial":"4"})");
  EXPECT_EQ(std::get<executor::LocalSpec>(read("{}")).slots, 1);
  executor::ExecutorSpec more = read("{}");
  executor::set_jobs(more, 3);
  EXPECT_EQ(std::get<executor::LocalSpec>(more).slots, 3);
}

TEST(Executor, RefusesWhatIsNoneAtItsKey) {
  EXPECT_NE(user_error_of([] { read(R"({"kind": "lokal"})"); }).find("/executor/kind: 'lokal' is not an executor"),
            std::string::npos);
  EXPECT_NE(user_error_of([] { read(R"({"slots": 0})"); }).find("/executor/slots"), std::string::npos);
  EXPECT_NE(user_error_of([] { read(R"({"gpus_per_trial": true})"); }).find("/executor/gpus_per_trial"),
            std::string::npos);
  EXPECT_NE(user_error_of([] { read(R"({"slot": 2})"); }).find("slots"), std::string::npos);
  EXPECT_NE(user_error_of([] {
              executor::executor_of_kind("slurp", "--executor");
            }).find("--executor: unknown executor 'slurp'"),
            std::string::npos);
}

TEST(Executor, ChecksTheSizeOfTrialsOverTheWholeSpace) {
  const space::Space space = space_of(kSizes);
  const auto complaint = [&](const std::string& gpus) {
    const Json json = {{"gpus_per_trial", gpus}};
    const executor::ExecutorSpec spec = executor::read_executor(json, "s.json", "/executor", {});
    return user_error_of([&] { executor::check_executor(spec, space, JsonObject(json, "s.json", "/executor")); });
  };
  EXPECT_EQ(complaint("tensor_parallel * pipeline_parallel"), "no error");
  EXPECT_EQ(complaint("auto"), "no error");
  EXPECT_NE(complaint("tensor_paralel").find("/executor/gpus_per_trial"), std::string::npos);
  EXPECT_NE(complaint("tensor_parallel / 4").find("is not a possible number of GPUs"),
            std::string::npos);  // 0.5 of some
  EXPECT_NE(complaint("tensor_parallel *").find("/executor/gpus_per_trial"), std::string::npos);
  EXPECT_NE(complaint("trial").find("'trial'"), std::string::npos);
}

TEST(TrialSizes, FollowTheConfiguration) {
  executor::MachineParts machine;
  machine.cores = {{0}};
  for (int gpu = 0; gpu < 8; ++gpu) machine.gpus.push_back({gpu, -1});
  executor::LocalSpec local;
  local.slots = 8;
  local.gpus_per_trial = "tensor_parallel * pipeline_parallel";
  const auto executor = executor::make_slots(local, machine, "run");
  const executor::TrialSizes sizes(local, {}, space_of(kSizes), *executor, 60.0);
  EXPECT_EQ(sizes.least().gpus_per_node, 2);
  const trial::TrialNeeds needs = sizes.of(sized(4, 2));
  EXPECT_EQ(needs.ranks, 8);
  EXPECT_EQ(needs.nodes, 1);
  EXPECT_EQ(needs.gpus_per_node, 8);
  EXPECT_EQ(needs.timeout_s, 60.0);
}

TEST(TrialSizes, OfTheirOwnAccordAreTheMachineDividedByItsSlots) {
  executor::MachineParts machine;
  machine.cores = {{0}};
  for (int gpu = 0; gpu < 8; ++gpu) machine.gpus.push_back({gpu, -1});
  executor::LocalSpec local;
  local.slots = 2;
  const auto executor = executor::make_slots(local, machine, "run");
  const executor::TrialSizes sizes(local, {}, space_of(kSizes), *executor, 60.0);
  EXPECT_EQ(sizes.of(sized(2, 1)).gpus_per_node, 4);
  EXPECT_EQ(sizes.least().gpus_per_node, 4);
}

// DeepSpeed launches all ranks of the session, whatever the slots are.
TEST(TrialSizes, AreTheClustersWhereATrialLaunchesAllItsRanks) {
  executor::MachineParts machine;
  machine.cores = {{0}};
  for (int gpu = 0; gpu < 8; ++gpu) machine.gpus.push_back({gpu, -1});
  executor::LocalSpec local;
  local.slots = 4;
  const auto executor = executor::make_slots(local, machine, "run");
  workload::ClusterSpec cluster;
  cluster.gpus_per_node = 4;
  const space::Space space = space_of(kSizes);
  EXPECT_EQ(executor::TrialSizes(local, cluster, space, *executor, 60.0, true).least().gpus_per_node, 4);
  EXPECT_EQ(executor::TrialSizes(local, cluster, space, *executor, 60.0, false).least().gpus_per_node, 2);
  local.gpus_per_trial = "2";
  EXPECT_NE(user_error_of([&] {
              executor::TrialSizes(local, cluster, space, *executor, 60.0, true);
            }).find("each trial launches the 4 ranks"),
            std::string::npos);
  cluster.nodes = 2;
  local.gpus_per_trial = "auto";
  EXPECT_NE(user_error_of([&] {
              executor::TrialSizes(local, cluster, space, *executor, 60.0, true);
            }).find("launches ranks on 2 nodes"),
            std::string::npos);
  cluster.nodes = 1;
  machine.gpus.clear();  // ranks are on processors
  local.gpus_per_trial = "auto";
  const auto of_cores = executor::make_slots(local, machine, "run");
  EXPECT_EQ(executor::TrialSizes(local, cluster, space, *of_cores, 60.0, true).least().gpus_per_node, 0);
}

}  // namespace krigtune::executor_test
