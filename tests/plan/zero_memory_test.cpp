// The memory of plans compared with the ZeRO paper and with reports from users of DeepSpeed.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "plan/plan_fixtures.h"

namespace krigtune::zero_memory_test {

// GPTs of the sizes in the ZeRO paper, within 0.1 % of its numbers of parameters.
workload::ModelSpec gpt(std::int64_t layers, std::int64_t hidden, std::int64_t vocab) {
  return {.layers = layers,
          .hidden = hidden,
          .heads = hidden / 128,
          .kv_heads = hidden / 128,
          .ffn_hidden = 4 * hidden,
          .vocab = vocab,
          .seq_len = 1024};
}

double model_states_gb(const workload::ModelSpec& model, std::int64_t stage, std::int64_t ranks) {
  workload::Workload workload;
  workload.model = model;
  workload.precision = workload::Precision::kFp16;
  const plan::MemoryReport report =
      plan::explain(plan::build_plan(workload, cpu_ranks(ranks), knobs(stage, 1, 1, 500'000'000, true)));
  std::int64_t bytes = 0;
  for (const schedule::Term term :
       {schedule::Term::kParameters, schedule::Term::kGradients, schedule::Term::kOptimizerState}) {
    bytes += report.term_bytes[static_cast<std::size_t>(term)];
  }
  return static_cast<double>(bytes) / 1e9;
}

// Whole plans with all layers. The paper gives two to four digits and truncates some, so compare within one unit of the
// last digit.
TEST(ModelStates, AreThoseOfTheZeroPapersTable) {
  const std::map<std::string, workload::ModelSpec> models = {
      {"7.5B", gpt(36, 4096, 60'000)}, {"128B", gpt(158, 8192, 92'000)}, {"1T", gpt(127, 25'600, 45'000)}};
  std::ifstream table(KRIGTUNE_EXPERIMENTS_DATA "/zero_model_states.csv");
  std::string line;
  std::getline(table, line);
  int rows = 0;
  while (std::getline(table, line)) {
    std::vector<std::string> cells;
    std::stringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
    ASSERT_EQ(cells.size(), 6U);
    const std::string& number = cells[4];
    const std::size_t point = number.find('.');
    const double unit = point == std::string::npos ? 1.0 : std::pow(10.0, -double(number.size() - point - 1));
    const double gb = model_states_gb(models.at(cells[1]), std::stoll(cells[3]), std::stoll(cells[2]));
    EXPECT_LE(std::abs(gb - std::stod(number)), unit) << line << ": " << gb;
    ++rows;
  }
  EXPECT_EQ(rows, 31);
}

TEST(ModelStates, OfSgdWithMomentumAreTwelveBytesAParameterAndOfFp32AdamSixteen) {
  const auto states = [](workload::Precision precision, workload::OptimizerKind optimizer) {
    workload::Workload workload = small_workload();
    workload.precision = precision;
    workload.optimizer = optimizer;
    const plan::StepPlan plan = plan::build_plan(workload, cpu_ranks(1), knobs(0, 1, 1, 5'000, false));
    std::int64_t bytes = 0;
    for (const plan::Buffer& buffer : plan.buffers) {
      if (buffer.persistent && buffer.term != schedule::Term::kInputs) bytes += buffer.bytes();
    }
    return static_cast<double>(bytes) / static_cast<double>(plan.padded_parameter_elems);
  };
  EXPECT_EQ(states(workload::Precision::kBf16, workload::OptimizerKind::kSgd), 12.0);
  EXPECT_EQ(states(workload::Precision::kBf16, workload::OptimizerKind::kAdamW), 16.0);
  EXPECT_EQ(states(workload::Precision::kFp32, workload::OptimizerKind::kAdamW), 16.0);
}

// Differences of maximum memory in MiB that users measured with ZeRO 2 in fp16 (github.com/deepspeedai/DeepSpeed issue
// 1302): the second bucket of overlap_comm, and two buckets of another size. Here with a GPT of 1.1e9 parameters and
// sequences of two, so that activations do not matter; its tensors fit into the smallest bucket. Within 1 %.
TEST(DeepSpeed, NeedsTheBucketsThatUsersMeasured) {
  constexpr double kMib = 1024.0 * 1024.0;
  workload::Workload workload;
  workload.model = gpt(90, 1024, 1'000);
  workload.model.seq_len = 2;
  workload.precision = workload::Precision::kFp16;
  workload.dialect = workload::Dialect::kDeepSpeed;
  const auto peak_mib = [&](std::int64_t bucket_elems, bool overlap) {
    return static_cast<double>(
               plan::build_plan(workload, cpu_ranks(2), knobs(2, 1, 1, bucket_elems, overlap)).arena_bytes) /
           kMib;
  };
  const double largest = peak_mib(500'000'000, true);
  const double middle = peak_mib(100'000'000, true);
  EXPECT_LE(std::abs((largest - peak_mib(500'000'000, false)) / 954.0 - 1.0), 0.01);
  EXPECT_LE(std::abs((largest - middle) / 1527.0 - 1.0), 0.01);
  EXPECT_LE(std::abs((middle - peak_mib(10'000'000, true)) / 341.0 - 1.0), 0.01);
}

}  // namespace krigtune::zero_memory_test
