// What optimizers keep in plans and in frameworks' memory, beside what the real ones keep (experiments/kept).
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "core/csv.h"
#include "core/files.h"
#include "plan/op_traits.h"
#include "plan/plan_fixtures.h"

namespace krigtune::optimizers_test {
namespace {

using workload::OptimizerKind;
using workload::OptimizerStates;

workload::Workload job(OptimizerKind optimizer, workload::Precision precision, OptimizerStates states) {
  workload::Workload workload;
  workload.model = {
      .layers = 2, .hidden = 64, .heads = 4, .kv_heads = 4, .ffn_hidden = 256, .vocab = 512, .seq_len = 32};
  workload.precision = precision;
  workload.optimizer = optimizer;
  workload.training.states = states;
  return workload;
}

// Of the moments, or of the masters, for each parameter.
double state_bytes(const workload::Workload& workload, bool masters, std::int64_t ranks = 1) {
  const plan::StepPlan plan =
      plan::build_plan(workload, cpu_ranks(ranks), {{"micro_batch", std::int64_t{1}}, {"zero_stage", std::int64_t{1}}});
  std::int64_t bytes = 0;
  for (const plan::Buffer& buffer : plan.buffers) {
    const bool is_master = buffer.name == "master parameters";
    if (buffer.term == schedule::Term::kOptimizerState && is_master == masters) bytes += buffer.bytes();
  }
  return static_cast<double>(bytes * ranks) / static_cast<double>(workload::parameter_count(workload.model));
}

// The model of experiments/kept/states.py.
workload::Workload measured_job(OptimizerKind optimizer, bool bf16) {
  workload::Workload workload =
      job(optimizer, bf16 ? workload::Precision::kBf16 : workload::Precision::kFp32, OptimizerStates::kAsModel);
  workload::ModelSpec& model = workload.model;
  model = {.layers = 2, .hidden = 256, .heads = 8, .kv_heads = 4, .ffn_hidden = 688, .vocab = 2048, .seq_len = 32};
  model.gated_mlp = true;
  model.tied_embeddings = false;
  model.norm = workload::Norm::kRmsNorm;
  model.positions = workload::Positions::kRotary;
  return workload;
}

// Of the products with which the optimizer makes its update.
double update_flops(const workload::Workload& workload, std::int64_t ranks = 1) {
  const plan::StepPlan plan =
      plan::build_plan(workload, cpu_ranks(ranks), {{"micro_batch", std::int64_t{1}}, {"zero_stage", std::int64_t{1}}});
  double flops = 0.0;
  for (const plan::Operation& operation : plan.operations)
    if (operation.kind == schedule::OpKind::kOrthogonalize) flops += operation.flops;
  return flops;
}

TEST(Optimizers, KeepWhatTheRealOnesDo) {
  const std::filesystem::path file = std::filesystem::path(KRIGTUNE_EXPERIMENTS) / "results/kept/states.csv";
  const std::map<std::string, OptimizerKind> kinds = {
      {"AdamW", OptimizerKind::kAdamW},         {"SGD with momentum", OptimizerKind::kSgd},
      {"AdamW8bit", OptimizerKind::kAdamW8bit}, {"Lion8bit", OptimizerKind::kLion8bit},
      {"Lion", OptimizerKind::kLion},           {"Adafactor", OptimizerKind::kAdafactor},
      {"SGD", OptimizerKind::kSgdPlain},        {"Muon", OptimizerKind::kMuon}};
  std::size_t compared = 0;
  for (const auto& row : parse_csv(read_text(file), file.string()).rows) {
    const bool bf16 = row[3] == "bfloat16";
    const workload::Workload workload = measured_job(kinds.at(row[0]), bf16);
    EXPECT_NEAR(state_bytes(workload, false), std::stod(row[4]), 0.05) << row[0] << ' ' << row[3];
    // Queries, keys and values are taken as one matrix, and so are gate and up.
    EXPECT_NEAR(update_flops(workload), std::stod(row[5]), 0.01 * std::stod(row[5])) << row[0];
    ++compared;
  }
  EXPECT_EQ(compared, 2 * kinds.size());
}

// Mixed precision keeps an fp32 copy of the weights and moments in fp32; weights in 16 bits alone keep neither.
TEST(Optimizers, StatesInTheModelsTypeHaveNoMasters) {
  const auto bytes = [](OptimizerStates states, bool masters) {
    return state_bytes(job(OptimizerKind::kAdamW, workload::Precision::kBf16, states), masters);
  };
  EXPECT_NEAR(bytes(OptimizerStates::kFp32, true), 4.0, 0.05);
  EXPECT_NEAR(bytes(OptimizerStates::kFp32, false), 8.0, 0.05);
  EXPECT_EQ(bytes(OptimizerStates::kAsModel, true), 0.0);
  EXPECT_NEAR(bytes(OptimizerStates::kAsModel, false), 4.0, 0.05);
  const workload::Workload eight = job(OptimizerKind::kAdamW8bit, workload::Precision::kBf16, OptimizerStates::kFp32);
  EXPECT_NEAR(state_bytes(eight, true, 2), 4.0, 0.1);
  EXPECT_NEAR(state_bytes(eight, false, 2), 2.0, 0.1);
}

TEST(Optimizers, EachHasItsUpdate) {
  const std::map<OptimizerKind, schedule::OpKind> updates = {{OptimizerKind::kAdamW, schedule::OpKind::kAdamW},
                                                             {OptimizerKind::kSgd, schedule::OpKind::kSgd},
                                                             {OptimizerKind::kAdamW8bit, schedule::OpKind::kAdamW8bit},
                                                             {OptimizerKind::kLion, schedule::OpKind::kLion},
                                                             {OptimizerKind::kLion8bit, schedule::OpKind::kLion},
                                                             {OptimizerKind::kAdafactor, schedule::OpKind::kAdafactor},
                                                             {OptimizerKind::kSgdPlain, schedule::OpKind::kSgdPlain}};
  for (const auto& [optimizer, kind] : updates) {
    const workload::Workload workload = job(optimizer, workload::Precision::kBf16, OptimizerStates::kFp32);
    const plan::StepPlan plan = plan::build_plan(workload, cpu_ranks(1), {{"micro_batch", std::int64_t{1}}});
    std::int64_t elems = 0;
    for (const plan::Operation& operation : plan.operations) {
      if (plan::is_update(operation.kind)) {
        EXPECT_EQ(operation.kind, kind);
        for (std::size_t i = 0; i < operation.operands.size(); ++i) {
          if (plan::traits_of(kind).operand(i, operation.operands.size()).name == "parameter")
            elems += operation.operands[i].range.elems;
        }
      }
    }
    EXPECT_EQ(elems, workload::parameter_count(workload.model)) << plan::to_string(kind);
    EXPECT_EQ(plan::traits_of(kind).predicted_only, workload::traits_of(optimizer).predicted_only);
  }
}

// Muon's own update is that of the matrices of the blocks, and AdamW's that of all else.
TEST(Optimizers, MuonUpdatesTheMatricesOfBlocks) {
  const workload::Workload workload = measured_job(OptimizerKind::kMuon, true);
  const plan::StepPlan plan = plan::build_plan(workload, cpu_ranks(1), {{"micro_batch", std::int64_t{1}}});
  std::int64_t by_muon = 0;
  std::int64_t by_adamw = 0;
  for (const plan::Operation& operation : plan.operations) {
    const bool is_muon = operation.kind == schedule::OpKind::kSgdPlain;
    if (!is_muon && operation.kind != schedule::OpKind::kAdamW) continue;
    const std::size_t group = plan::traits_of(operation.kind).group.size();
    for (std::size_t i = 0; i + 1 < operation.operands.size(); i += group)
      (is_muon ? by_muon : by_adamw) += operation.operands[i].range.elems;
  }
  const std::int64_t matrices = 2 * (256 * (256 + 2 * 128) + 256 * 256 + 3 * 256 * 688);
  EXPECT_EQ(by_muon, matrices);
  EXPECT_EQ(by_muon + by_adamw, workload::parameter_count(workload.model));
  EXPECT_NEAR(4.0 * update_flops(workload, 4), update_flops(workload), 1.0);
}

TEST(Optimizers, StatesMayHaveTypesOfTheirOwn) {
  using workload::StateType;
  workload::Workload workload = job(OptimizerKind::kAdamW, workload::Precision::kBf16, OptimizerStates::kFp32);
  workload.training.state_types = {StateType::kBf16, StateType::kFp8, StateType::kFp16, StateType::kFp32};
  EXPECT_NEAR(state_bytes(workload, true), 2.0, 0.05);
  EXPECT_NEAR(state_bytes(workload, false), 2.0 + 1.0, 0.05);
}

}  // namespace
}  // namespace krigtune::optimizers_test
