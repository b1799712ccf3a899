// Matrix products that read numbers of 8 or 4 bits: what they keep, and how long they take.
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "core/error.h"
#include "cost/memory/memory_model.h"
#include "cost/time/step_cost.h"
#include "cost/utilization.h"
#include "plan/memory.h"
#include "workload/workload.h"

namespace krigtune::narrow_products_test {
namespace {

constexpr std::int64_t kTokens = 2048;

workload::Workload llama(const std::string& precision, std::int64_t experts = 0) {
  Json json = {{"model",
                {{"layers", 4},
                 {"hidden", 1024},
                 {"heads", 16},
                 {"kv_heads", 4},
                 {"ffn_hidden", 4096},
                 {"vocab", 32000},
                 {"seq_len", kTokens},
                 {"tied_embeddings", false},
                 {"gated_mlp", true},
                 {"norm", "rmsnorm"},
                 {"positions", "rotary"}}},
               {"precision", precision},
               {"framework", "megatron"}};
  if (experts > 0) json["model"]["experts"] = {{"count", experts}, {"per_token", 2}, {"ffn_hidden", 1024}};
  return workload::read_workload(json, "test", "/workload");
}

workload::ClusterSpec one(const std::string& gpu) {
  return workload::read_cluster(Json{{"nodes", 1}, {"gpus_per_node", 1}, {"gpu", gpu}}, "test", "/cluster");
}

const space::Configuration kOneSequence = {{"zero_stage", std::int64_t{0}}, {"micro_batch", std::int64_t{1}}};

std::int64_t bytes_of(const workload::Workload& workload, schedule::Term term) {
  const cost::MemoryModel memory(workload, one("h100-80gb"), {});
  return memory.estimate(kOneSequence).term_bytes[static_cast<std::size_t>(term)];
}

// Of each layer the outputs of two norms and of the activation; attention's own tensors remain in 16 bits.
TEST(NarrowProducts, KeepTheirInputsInOneByte) {
  const std::int64_t whole = bytes_of(llama("bf16"), schedule::Term::kActivations);
  const std::int64_t narrow = bytes_of(llama("fp8-tensorwise"), schedule::Term::kActivations);
  EXPECT_EQ(whole - narrow, 4 * kTokens * (1024 + 1024 + 4096));
}

TEST(NarrowProducts, OfExpertsKeepWhatTheRouterSendsThemInOneByte) {
  const std::int64_t whole = bytes_of(llama("bf16", 8), schedule::Term::kActivations);
  const std::int64_t narrow = bytes_of(llama("mxfp8", 8), schedule::Term::kActivations);
  EXPECT_EQ(whole - narrow, 4 * kTokens * (1024 + 1024 + 2 * (1024 + 1024)));
}

TEST(NarrowProducts, HaveTwoCopiesOfTheBlocksMatrices) {
  const std::int64_t of_a_layer = 1024 * (1024 + 2 * 256 + 1024 + 3 * 4096);
  const std::int64_t whole = bytes_of(llama("bf16"), schedule::Term::kParameters);
  EXPECT_EQ(bytes_of(llama("mxfp8"), schedule::Term::kParameters) - whole, 4 * of_a_layer * 2);
  EXPECT_EQ(bytes_of(llama("nvfp4"), schedule::Term::kParameters) - whole, 4 * of_a_layer);
}

// Where nothing but products takes time, those of the blocks take the share of their rate, and the head's remain.
TEST(NarrowProducts, TakeTimeByTheirOwnRate) {
  constexpr double kRate = 1e14;
  const auto seconds = [](double times) {
    cost::Machine machine;
    machine.rates[static_cast<std::size_t>(workload::OpClass::kProduct)].flops_per_s = kRate;
    if (times > 1.0) {
      machine.narrow_products = machine.rate(workload::OpClass::kProduct);
      machine.narrow_products->flops_per_s *= times;
    }
    return cost::StepCostModel(llama("mxfp8"), one("h100-80gb"), machine)(kOneSequence).products_s;
  };
  const double of_blocks = 6.0 * kTokens * 4.0 * 1024.0 * (1024 + 2 * 256 + 1024 + 3 * 4096) / kRate;
  const double of_head = 6.0 * kTokens * 1024.0 * 32000.0 / kRate;
  EXPECT_NEAR(seconds(1.0), of_blocks + of_head, 1e-9);
  EXPECT_NEAR(seconds(2.0), of_blocks / 2.0 + of_head, 1e-9);
  EXPECT_NEAR(seconds(4.0), of_blocks / 4.0 + of_head, 1e-9);
}

// Gradients and attention's output are 16 bits wide: a product reads them and writes two copies of one byte.
TEST(NarrowProducts, MakeTheirInputsNarrowFirst) {
  constexpr double kBytesPerS = 1e12;
  cost::Machine machine;
  machine.narrow_products = workload::ClassRate{};
  const auto seconds = [&](double bytes_per_s) {
    machine.rates[static_cast<std::size_t>(workload::OpClass::kMemory)].bytes_per_s = bytes_per_s;
    return cost::StepCostModel(llama("mxfp8"), one("h100-80gb"), machine)(kOneSequence).products_s;
  };
  const double gradients = 1024 + 2 * 256 + 1024 + 2 * 4096 + 1024;  // of qkv, out, up and down
  EXPECT_NEAR(seconds(kBytesPerS), 4.0 * kTokens * (gradients + 1024.0) * 4.0 / kBytesPerS, 1e-9);
}

TEST(NarrowProducts, AreRefusedWhereTheDeviceHasNone) {
  try {
    const cost::StepCostModel model(llama("fp8-delayed"), one("a100-80gb"));
    FAIL() << "an A100 has no products in fp8";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("a100-80gb has no matrix products in fp8-delayed"), std::string::npos)
        << error.what();
  }
  EXPECT_GT(workload::device_of("h100-80gb", "test").fp8_flops_per_s, 0.0);
  EXPECT_EQ(workload::device_of("h100-80gb", "test").fp4_flops_per_s, 0.0);
}

// MFU is of the peak in bf16, which products in fp8 may exceed.
TEST(NarrowProducts, MayUseMoreOfThePeakThanThoseInSixteenBits) {
  const auto used = [](const char* precision, double mfu) {
    const workload::Workload workload = llama(precision);
    const double step_s = workload::palm_flops(workload.model, 8) / mfu / 989e12;
    return *cost::utilization_of(workload, one("h100-80gb"), schedule::Checkpointing::kNone, 8, step_s);
  };
  EXPECT_NEAR(used("fp8-tensorwise", 0.8).mfu, 0.8, 1e-9);
  EXPECT_FALSE(used("fp8-tensorwise", 0.8).too_good);
  EXPECT_TRUE(used("fp8-tensorwise", 1.3).too_good);
  EXPECT_TRUE(used("bf16", 0.8).too_good);
}

TEST(NarrowProducts, AreSaidByThePrecision) {
  for (const char* word : {"bf16", "fp8-delayed", "fp8-tensorwise", "fp8-blockwise", "mxfp8", "nvfp4"}) {
    const workload::Workload read = llama(word);
    EXPECT_EQ(workload::precision_word(read), word);
    EXPECT_EQ(workload::to_json(read)["precision"], word);
  }
}

}  // namespace
}  // namespace krigtune::narrow_products_test
