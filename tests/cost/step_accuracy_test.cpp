// Predicted step times compared with published tables. The limits are a little looser than what docs/accuracy.md
// states.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "published_runs.h"
#include "scores.h"

namespace krigtune::accuracy::step_accuracy_test {

using Steps = std::vector<const MeasuredStep*>;

std::map<std::string, Steps> by_space(const std::vector<MeasuredStep>& steps) {
  std::map<std::string, Steps> spaces;
  for (const MeasuredStep& step : steps) spaces[step.space].push_back(&step);
  return spaces;
}

struct Expected {
  double mape, mean_spearman;
  double without_mape, without_mean_spearman;  ///< without the rows to which something was fitted
};

void append(std::vector<double>& to, const std::vector<double>& values) {
  to.insert(to.end(), values.begin(), values.end());
}

void expect_accuracy(const std::vector<MeasuredStep>& steps, std::size_t smallest, const Expected& expected) {
  std::vector<double> all_measured, all_predicted, all_without, ranks, ranks_without;
  for (const auto& [space, members] : by_space(steps)) {
    if (members.size() < smallest) continue;
    const std::vector<double> seconds = measured(members);
    const std::vector<double> predicted = predict(members, cost::TimeCalibration{});
    const std::vector<double> without = predict(members, without_table(steps.front().table));
    ranks.push_back(spearman(predicted, seconds));
    ranks_without.push_back(spearman(without, seconds));
    append(all_measured, seconds);
    append(all_predicted, predicted);
    append(all_without, without);
  }
  const auto mean = [](const std::vector<double>& values) {
    double sum = 0.0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  };
  EXPECT_LE(score(all_predicted, all_measured).mape, expected.mape);
  EXPECT_LE(score(all_without, all_measured).mape, expected.without_mape);
  EXPECT_GE(mean(ranks), expected.mean_spearman);
  EXPECT_GE(mean(ranks_without), expected.without_mean_spearman);
}

const std::filesystem::path kData = KRIGTUNE_EXPERIMENTS_DATA;

TEST(StepAccuracy, OfMegatronDeepSpeedOnOneNode) {
  expect_accuracy(vtrain_single_node(kData), 12, {0.13, 0.85, 0.26, 0.75});
}
TEST(StepAccuracy, OfMegatronDeepSpeedOnManyNodes) {
  expect_accuracy(vtrain_multi_node(kData), 12, {0.125, 0.75, 0.125, 0.75});
}
TEST(StepAccuracy, OfFsdp) { expect_accuracy(llmfoundry(kData), 12, {0.055, 0.99, 0.09, 0.99}); }
TEST(StepAccuracy, OfNanotron) { expect_accuracy(ultrascale(kData), 12, {0.4, 0.87, 0.55, 0.71}); }
TEST(StepAccuracy, OfMegatronOnB200) { expect_accuracy(simumax(kData), 12, {0.125, 0.98, 0.125, 0.98}); }
TEST(StepAccuracy, OfMegatronOnHundredsOfGpus) { expect_accuracy(korthikanti(kData), 6, {0.03, 0.99, 0.03, 0.99}); }

// Runs of others, each asked as its source describes it (experiments/accuracy): at least so many have a prediction, and
// the mean error is no more than this.
TEST(StepAccuracy, OfPublishedRunsOfEachKind) {
  struct Limit {
    std::size_t rows;
    double mape;
  };
  const std::map<std::string, Limit> limits = {
      {"dense, bf16", {45, 0.12}},       {"dense, bf16, interleaved", {28, 0.115}},
      {"dense, fp8", {83, 0.075}},       {"dense, fp4", {18, 0.135}},
      {"context parallel", {45, 0.095}}, {"experts, bf16", {127, 0.167}},
      {"experts, fp8", {131, 0.133}},    {"hybrids, fp8", {39, 0.16}},
      {"hybrids, fp4", {16, 0.2}},       {"hybrids, bf16", {3, 0.165}},
      {"adapters", {8, 0.157}}};
  std::map<std::string, std::vector<double>> predicted, published;
  for (const PublishedRun& run : published_runs(kData)) {
    if (!run.not_asked.empty() || !(run.seconds > 0.0) || limits.count(run.group) == 0) continue;
    const auto step = cost::StepCostModel(run.workload, run.cluster).if_modelled(run.configuration);
    if (!step) continue;
    predicted[run.group].push_back(step->step_time_s);
    published[run.group].push_back(run.seconds);
  }
  for (const auto& [group, limit] : limits) {
    EXPECT_GE(predicted[group].size(), limit.rows) << group;
    EXPECT_LE(score(predicted[group], published[group]).mape, limit.mape) << group;
  }
}

TEST(StepAccuracy, IsNotWorseAfterCalibrationOnFiveRows) {
  for (const auto& read : {vtrain_single_node, vtrain_multi_node, llmfoundry, simumax}) {
    const std::vector<MeasuredStep> steps = read(kData);
    double before = 0.0;
    double after = 0.0;
    double spaces = 0.0;
    for (const auto& [space, members] : by_space(steps)) {
      if (members.size() < 12) continue;
      const Split parts = split(members);
      before += score(predict(parts.rest, cost::TimeCalibration{}), measured(parts.rest)).mape;
      after += score(predict(parts.rest, calibrate(parts.drawn)), measured(parts.rest)).mape;
      spaces += 1.0;
    }
    EXPECT_LE(after / spaces, before / spaces + 0.002) << steps.front().table;
  }
}

MeasuredStep first(std::vector<MeasuredStep> steps) { return std::move(steps.front()); }

TEST(StepAccuracy, CollectivesOfNanotronsTensorGroupsAreAFloorThatGrowsWithThem) {
  const MeasuredStep step = first(ultrascale(kData));
  const cost::Machine machine = cost::make_machine(step.workload, step.cluster);  // with 8 GPUs per node
  plan::Operation collective;
  collective.kind = schedule::OpKind::kAllReduce;
  collective.group = schedule::Group::kTensor;
  const cost::FrameworkTraits& traits = cost::traits_of(workload::Framework::kNanotron);
  EXPECT_DOUBLE_EQ(cost::issue_time_s(machine, collective, 8, 1), traits.issue_s);
  EXPECT_DOUBLE_EQ(cost::issue_time_s(machine, collective, 8, 2), traits.issue_s + 8.0 * traits.pipelined_issue_s);
  EXPECT_DOUBLE_EQ(cost::issue_time_s(machine, collective, 32, 1), traits.issue_s + 3.0 * traits.internode_issue_s);
  collective.group = schedule::Group::kData;
  EXPECT_DOUBLE_EQ(cost::issue_time_s(machine, collective, 32, 2), traits.issue_s);
}

// The products of a layer are 3 h^2 + h^2 + 4 h^2 and, after the activation and not recomputed, 4 h^2.
TEST(StepAccuracy, FsdpComputesTwoThirdsOfAForwardAgain) {
  MeasuredStep step = first(llmfoundry(kData));
  const auto recompute_s = [&](workload::Framework framework) {
    step.workload.framework = framework;
    step.configuration.set("activation_checkpointing", std::string("full"));
    cost::Machine machine = cost::make_machine(step.workload, step.cluster);
    for (workload::ClassRate& rate : machine.rates) rate = {};
    machine.rates[static_cast<std::size_t>(workload::OpClass::kProduct)].flops_per_s = 1e12;
    return cost::StepCostModel(step.workload, step.cluster, machine)(step.configuration).recompute_s;
  };
  EXPECT_NEAR(recompute_s(workload::Framework::kFsdp) / recompute_s(workload::Framework::kMegatron), 2.0 / 3.0, 1e-6);
}

TEST(StepAccuracy, FactorsOfACalibrationAreFactorsOnTimes) {
  const MeasuredStep step = first(ultrascale(kData));
  const cost::Machine plain = cost::make_machine(step.workload, step.cluster);
  const cost::Machine slow = cost::make_machine(step.workload, step.cluster, {2.0, 3.0, 4.0, 5.0, 6.0, 7.0});
  const auto ratio = [&](workload::OpClass of, double flops, double bytes) {
    const double launch_s = plain.rate(of).launch_s;
    return (slow.rate(of).seconds(flops, bytes) - launch_s) / (plain.rate(of).seconds(flops, bytes) - launch_s);
  };
  EXPECT_NEAR(ratio(workload::OpClass::kProduct, 1e12, 0.0), 2.0, 1e-9);
  EXPECT_NEAR(ratio(workload::OpClass::kAttention, 1e12, 0.0), 2.0, 1e-9);
  EXPECT_NEAR(ratio(workload::OpClass::kMemory, 0.0, 1e9), 3.0, 1e-9);
  EXPECT_NEAR(ratio(workload::OpClass::kOptimizer, 0.0, 1e9), 3.0, 1e-9);
  EXPECT_NEAR(ratio(workload::OpClass::kCopy, 0.0, 1e9), 6.0, 1e-9);
  const plan::GroupSpan span{8, 1, 8};
  EXPECT_NEAR(cost::collective_time_s(slow, schedule::OpKind::kAllReduce, span, 1 << 24) /
                  cost::collective_time_s(plain, schedule::OpKind::kAllReduce, span, 1 << 24),
              4.0, 1e-9);
  EXPECT_NEAR(slow.issue_s / plain.issue_s, 5.0, 1e-9);
  EXPECT_NEAR(slow.step_overhead_s - plain.step_overhead_s, 7.0, 1e-9);
}

TEST(StepAccuracy, RanksBetterWhereTheModelIsRight) {
  const std::vector<double> a = {1.0, 2.0, 3.0, 4.0, 5.0};
  const std::vector<double> b = {1.0, 2.0, 4.0, 3.0, 5.0};
  EXPECT_NEAR(spearman(a, b), 0.9, 1e-12);  // 1 - 6 * 2 / (5 * 24)
  EXPECT_NEAR(spearman(a, std::vector<double>(b.rbegin(), b.rend())), -0.9, 1e-12);
}

}  // namespace krigtune::accuracy::step_accuracy_test
