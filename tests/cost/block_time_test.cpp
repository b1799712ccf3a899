// What experts' products, scans and attention take on a device, beside published measurements of their kernels, and
// what recipes leave in the model's type.
#include "cost/time/block_time.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "cost/framework.h"
#include "cost/time/block_plans.h"
#include "cost/time/step_cost.h"
#include "plan/op_traits.h"
#include "workload/hub_models.h"

namespace krigtune::block_time_test {
namespace {

workload::ClusterSpec one(const std::string& gpu) {
  return workload::read_cluster(Json{{"nodes", 1}, {"gpus_per_node", 1}, {"gpu", gpu}}, "test", "/cluster");
}

workload::Workload job_of(const std::string& model, const std::string& precision, const Json& training = {}) {
  Json json = {{"model", {{"preset", model}, {"seq_len", 4096}}}, {"precision", precision}, {"framework", "megatron"}};
  if (!training.is_null()) json["training"] = training;
  return workload::read_workload(json, "test", "/workload");
}

double step_of(const workload::Workload& workload, const char* gpu = "gb300-288gb") {
  const space::Configuration configuration = {{"zero_stage", std::int64_t{0}}, {"micro_batch", std::int64_t{1}}};
  workload::Workload job = workload;
  job.train_batch_size = 1;
  return cost::StepCostModel(job, one(gpu))(configuration).step_time_s;
}

// A forward product of `groups` experts with so many rows each.
plan::Operation product(std::int64_t groups, std::int64_t rows, std::int64_t inner, std::int64_t outer) {
  plan::Operation operation;
  operation.kind = schedule::OpKind::kGroupedForward;
  operation.layer = 0;
  operation.shape = {.rows = groups * rows, .inner = inner, .outer = outer, .groups = groups};
  operation.flops = 2.0 * static_cast<double>(groups * rows) * static_cast<double>(inner) * static_cast<double>(outer);
  return operation;
}

double tflops(const cost::Machine& machine, const plan::Operation& operation) {
  return operation.flops / cost::operation_time_s(machine, plan::StepPlan{}, operation) / 1e12;
}

cost::Machine fp8_machine(const char* gpu, bool fused) {
  const workload::Workload job = job_of("qwen3-30b-a3b", "fp8-tensorwise", {{"fused_experts", fused}});
  return cost::make_machine(job, one(gpu));
}

// DeepGEMM's README (its first release) on an H800, grouped products of experts in a contiguous layout.
TEST(BlockTime, FusedExpertsReachWhatDeepGemmPublishes) {
  const cost::Machine machine = fp8_machine("h800-80gb", true);
  EXPECT_NEAR(tflops(machine, product(4, 8192, 7168, 4096)) / 1297.0, 1.0, 0.09);
  EXPECT_NEAR(tflops(machine, product(4, 8192, 2048, 7168)) / 1099.0, 1.0, 0.09);
  EXPECT_NEAR(tflops(machine, product(8, 4096, 7168, 4096)) / 1288.0, 1.0, 0.09);
  EXPECT_NEAR(tflops(machine, product(8, 4096, 2048, 7168)) / 1093.0, 1.0, 0.09);
}

// The half-way work of a product counts once for each expert.
TEST(BlockTime, SeparateExpertsAreProductsOfTheirOwn) {
  const cost::Machine fused = fp8_machine("gb300-288gb", true), separate = fp8_machine("gb300-288gb", false);
  const plan::Operation of_experts = product(16, 4096, 2048, 1536);
  const double more = 15.0 * fused.narrow_products->half_flops / fused.narrow_products->flops_per_s;
  EXPECT_NEAR(cost::operation_time_s(separate, {}, of_experts) - cost::operation_time_s(fused, {}, of_experts), more,
              1e-9);
  EXPECT_GT(step_of(job_of("qwen3-30b-a3b", "mxfp8")),
            step_of(job_of("qwen3-30b-a3b", "mxfp8", {{"fused_experts", true}})));
}

// mamba_ssm's kernels forward on an H100: 128 heads of 64 numbers, states of 128, one group, chunks of 256 tokens
// (vllm-project/vllm#27299: 12.6 million tokens per second for 8192 of them). Here with the convolution and the norm.
TEST(BlockTime, AScanIsAboutAsFastAsItIsPublished) {
  workload::Workload job = job_of("nvidia-nemotron-3-super-120b-a12b", "bf16");
  job.model.seq_len = 8192;
  job.model.mamba.groups = 1;
  job.model.mamba.chunk = 256;
  ASSERT_EQ(job.model.mamba.inner(), 8192);
  schedule::Knobs knobs;
  knobs.micro_batch = 1;
  knobs.tensor_ranks = 1;
  cost::BlockPlans plans;
  const plan::StepPlan& plan = plans.of(job, knobs);
  const cost::Machine machine = cost::make_machine(job, one("h100-80gb"));
  double scan_s = 0.0;
  for (const plan::Operation& operation : plan.operations) {
    if (operation.kind == schedule::OpKind::kMambaForward && operation.micro_step == 0)
      scan_s += cost::operation_time_s(machine, plan, operation);
  }
  EXPECT_GT(scan_s, 8192.0 / 12.6e6);
  EXPECT_LT(scan_s, 1.6 * 8192.0 / 12.6e6);
}

TEST(BlockTime, ScansHaveTheirOwnRate) {
  const workload::Workload job = job_of("nvidia-nemotron-3-nano-30b-a3b", "bf16");
  EXPECT_DOUBLE_EQ(cost::make_machine(job, one("h100-80gb")).scan_flops_per_s,
                   cost::make_machine(job, one("gb200-186gb")).scan_flops_per_s);
  EXPECT_LT(cost::make_machine(job, one("a100-80gb")).scan_flops_per_s,
            cost::make_machine(job, one("h100-80gb")).scan_flops_per_s);
}

// Between all products in fp4 and none; the router's are never among them.
TEST(BlockTime, PreciseProductsTakeTheTimeOfSixteenBits) {
  const char* super = "nvidia-nemotron-3-super-120b-a12b";
  const double all = step_of(job_of(super, "nvfp4")), none = step_of(job_of(super, "bf16"));
  const double attention = step_of(job_of(super, "nvfp4", {{"precise", {{"attention", true}}}}));
  const double latents = step_of(job_of(super, "nvfp4", {{"precise", {{"attention", true}, {"latents", true}}}}));
  const double outputs = step_of(job_of(super, "nvfp4", {{"precise", {{"mixer_outputs", true}}}}));
  const double last = step_of(job_of(super, "nvfp4", {{"precise", {{"last_layers", 14}}}}));
  const double whole = step_of(job_of(super, "nvfp4", {{"precise", {{"last_layers", 88}}}}));
  EXPECT_LT(all, attention);
  EXPECT_LT(attention, latents);
  EXPECT_LT(all, outputs);
  EXPECT_LT(all, last);
  EXPECT_NEAR((last - all) / (whole - all), 14.0 / 88.0, 1e-3);
  EXPECT_LT(whole, none);
  EXPECT_GT(whole, 0.97 * none);  // norms write inputs of one byte
}

TEST(BlockTime, AttentionInFp8IsFaster) {
  const workload::Workload plain = job_of("llama-3.1-8b", "mxfp8");
  const workload::Workload narrow = job_of("llama-3.1-8b", "mxfp8", {{"fp8_attention", true}});
  const auto rate = [](const workload::Workload& job) {
    return cost::make_machine(job, one("gb300-288gb")).rate(workload::OpClass::kAttention).flops_per_s;
  };
  EXPECT_NEAR(rate(narrow) / rate(plain), 1.44, 1e-9);
  EXPECT_LT(step_of(narrow), step_of(plain));
}

// 68 bytes for each number that an expert with a bias makes of a token, in PyTorch's kernels; one kernel has none.
TEST(BlockTime, BiasesOfExpertsAreKernelsOfTheirOwn) {
  const workload::Workload job = job_of("gpt-oss-120b", "bf16");
  schedule::Knobs knobs;
  knobs.micro_batch = 1;
  knobs.tensor_ranks = 1;
  cost::BlockPlans plans;
  const plan::StepPlan& plan = plans.of(job, knobs);
  cost::Machine machine;  // infinitely fast but for its memory
  machine.rates[static_cast<std::size_t>(workload::OpClass::kMemory)].bytes_per_s = 1e12;
  machine.separate_experts = true;
  const cost::BlockTime time(job, machine, plan);
  double more_s = 0.0;
  for (const plan::Operation& operation : plan.operations) {
    if (operation.micro_step == 0 && operation.phase != schedule::Phase::kOptimizer && operation.layer == 0 &&
        operation.stream == schedule::Stream::kCompute && !plan::is_collective(operation.kind))
      more_s += time.seconds(operation) - cost::operation_time_s(machine, plan, operation);
  }
  EXPECT_NEAR(more_s, 4096.0 * 4.0 * 2880.0 * 68.0 / 1e12, 1e-9);
}

}  // namespace
}  // namespace krigtune::block_time_test
