// Predicted step times against the published tables: what docs/accuracy.md states, a little looser.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "scores.h"

namespace krigtune::accuracy {
namespace {

using Steps = std::vector<const MeasuredStep*>;

std::map<std::string, Steps> by_space(const std::vector<MeasuredStep>& steps) {
  std::map<std::string, Steps> spaces;
  for (const MeasuredStep& step : steps) spaces[step.space].push_back(&step);
  return spaces;
}

struct Expected {
  double mape, mean_spearman;
  double without_mape, without_mean_spearman;  ///< without what was fitted on the table
};

void expect_accuracy(const std::vector<MeasuredStep>& steps, std::size_t smallest, const Expected& expected) {
  Steps rows;
  std::vector<double> ranks, ranks_without;
  for (const auto& [space, members] : by_space(steps)) {
    if (members.size() < smallest) continue;
    rows.insert(rows.end(), members.begin(), members.end());
    ranks.push_back(spearman(predict(members, TimeCalibration{}), measured(members)));
    ranks_without.push_back(spearman(predict(members, without_table(steps.front().table)), measured(members)));
  }
  const auto mean = [](const std::vector<double>& values) {
    double sum = 0.0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  };
  EXPECT_LE(score(predict(rows, TimeCalibration{}), measured(rows)).mape, expected.mape);
  EXPECT_LE(score(predict(rows, without_table(steps.front().table)), measured(rows)).mape, expected.without_mape);
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
TEST(StepAccuracy, OfMegatronOnB200) { expect_accuracy(simumax(kData), 12, {0.095, 0.98, 0.095, 0.98}); }
TEST(StepAccuracy, OfMegatronOnHundredsOfGpus) { expect_accuracy(korthikanti(kData), 6, {0.05, 0.99, 0.05, 0.99}); }

TEST(StepAccuracy, IsNotWorseAfterCalibrationOnFiveRows) {
  for (const auto& read : {vtrain_single_node, vtrain_multi_node, llmfoundry, simumax}) {
    const std::vector<MeasuredStep> steps = read(kData);
    double before = 0.0;
    double after = 0.0;
    double spaces = 0.0;
    for (const auto& [space, members] : by_space(steps)) {
      if (members.size() < 12) continue;
      const Split parts = split(members);
      before += score(predict(parts.rest, TimeCalibration{}), measured(parts.rest)).mape;
      after += score(predict(parts.rest, calibrate(parts.drawn)), measured(parts.rest)).mape;
      spaces += 1.0;
    }
    EXPECT_LE(after / spaces, before / spaces + 0.002) << steps.front().table;
  }
}

TEST(StepAccuracy, RanksBetterWhereTheModelIsRight) {
  const std::vector<double> a = {1.0, 2.0, 3.0, 4.0, 5.0};
  const std::vector<double> b = {1.0, 2.0, 4.0, 3.0, 5.0};
  EXPECT_NEAR(spearman(a, b), 0.9, 1e-12);  // 1 - 6 * 2 / (5 * 24)
  EXPECT_NEAR(spearman(a, std::vector<double>(b.rbegin(), b.rend())), -0.9, 1e-12);
}

}  // namespace
}  // namespace krigtune::accuracy
