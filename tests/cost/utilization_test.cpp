#include "cost/utilization.h"

#include <gtest/gtest.h>

#include "core/json.h"

namespace krigtune::utilization_test {

workload::ClusterSpec a100s(std::int64_t gpus) {
  const Json json = {{"nodes", gpus / 8}, {"gpus_per_node", 8}, {"gpu", "a100-80gb"}, {"network", "ib-hdr-200"}};
  return workload::read_cluster(json, "test", "/cluster");
}

workload::Workload gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  const Json json = {
      {"model", {{"layers", layers}, {"hidden", hidden}, {"heads", heads}, {"vocab", 51200}, {"seq_len", 2048}}},
      {"precision", "fp16"}};
  return workload::read_workload(json, "test", "/workload");
}

// Korthikanti et al. 2022 (arXiv:2205.05198), table 5: iteration time with sequence parallelism and selective
// recomputation on A100s of 312 TFLOP/s, and the MFU that the table states, to a tenth of a per cent.
TEST(Utilization, IsWhatKorthikantiEtAlPrintForTheirFourModels) {
  const struct {
    std::int64_t layers, hidden, heads, gpus, sequences;
    double step_time_s, mfu;
  } kRuns[] = {{48, 6144, 64, 8, 4, 1.10, 0.415},
               {96, 12288, 96, 64, 64, 13.75, 0.514},
               {105, 20480, 128, 280, 280, 37.83, 0.560},
               {128, 25600, 160, 512, 512, 71.49, 0.563}};
  for (const auto& run : kRuns) {
    const auto used = cost::utilization_of(gpt(run.layers, run.hidden, run.heads), a100s(run.gpus),
                                           schedule::Checkpointing::kNone, run.sequences, run.step_time_s);
    ASSERT_TRUE(used.has_value());
    // The first time is printed with three digits: half a unit of the last one is 0.5 % of it.
    EXPECT_LE(std::abs(used->mfu / run.mfu - 1.0), 0.006) << run.layers;
    EXPECT_EQ(used->hfu, used->mfu) << "nothing is said to be computed again";
    EXPECT_LT(used->mfu, cost::kTooGoodMfu);
  }
}

// Computed by hand for GPT-3 175B on 64 GPUs, with 64 sequences in 13.75 s:
//   6 P_mat per token = 72 L h^2 + 6 V h = 1047451926528,  12 L s h per token = 28991029248
TEST(Utilization, CountsAttentionOrLeavesItOut) {
  const auto used = cost::utilization_of(gpt(96, 12288, 96), a100s(64), schedule::Checkpointing::kNone, 64, 13.75);
  ASSERT_TRUE(used.has_value());
  EXPECT_NEAR(used->tokens_per_s_per_gpu, 64.0 * 2048.0 / 13.75 / 64.0, 1e-9);
  EXPECT_NEAR(used->mfu_without_attention, 1047451926528.0 * 2048.0 / 13.75 / 312e12, 1e-12);
  EXPECT_NEAR(used->mfu, (1047451926528.0 + 28991029248.0) * 2048.0 / 13.75 / 312e12, 1e-12);
}

// Narayanan et al. 2021 (arXiv:2104.04473), equation 3 and table 1: 145.6B parameters, 1536 A100s, 2304 sequences, full
// recomputation, 148 TFLOP/s per GPU. Their F = 96 B s L h^2 (1 + s / 6h + V / 16 L h) = 5.641682e18 then takes
// 24.817366 s.
TEST(Utilization, OfTheHardwareCountsFullRecomputationAsNarayananEtAl) {
  const auto used =
      cost::utilization_of(gpt(80, 12288, 96), a100s(1536), schedule::Checkpointing::kFull, 2304, 24.8173657580627);
  ASSERT_TRUE(used.has_value());
  EXPECT_NEAR(used->hfu, 148.0 / 312.0, 1e-9);
  EXPECT_LT(used->mfu, used->hfu);
}

TEST(Utilization, OfSelectiveRecomputationDependsOnWhatIsComputedAgain) {
  workload::Workload workload = gpt(96, 12288, 96);
  const auto hfu = [&] {
    const auto used = cost::utilization_of(workload, a100s(64), schedule::Checkpointing::kSelective, 64, 13.75);
    return used->hfu / used->mfu;
  };
  EXPECT_EQ(hfu(), 1.0) << "beside flash attention no product is computed again";
  workload.model.attention = workload::Attention::kEager;
  EXPECT_NEAR(hfu(), 1.0 + 28991029248.0 / 3.0 / (1047451926528.0 + 28991029248.0), 1e-12);
}

TEST(Utilization, IsNotKnownWithoutAGpuOrATime) {
  const workload::Workload workload = gpt(96, 12288, 96);
  const auto local = workload::read_cluster("local", "test", "/cluster");
  EXPECT_FALSE(cost::utilization_of(workload, local, schedule::Checkpointing::kNone, 64, 13.75));
  EXPECT_FALSE(cost::utilization_of(workload, a100s(64), schedule::Checkpointing::kNone, 64, 0.0));
}

}  // namespace krigtune::utilization_test
