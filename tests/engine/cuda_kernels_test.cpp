// Compares the kernels of the CUDA engine with the host's, and training steps with the host's trainer. Compiled twice:
// with the kernels that nvcc compiles for a GPU, and against the emulation of CUDA on a CPU, for machines without one.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <set>

#include "core/clock.h"
#include "cuda_case_runs.h"
#include "engine/cuda/cuda_trainer.h"
#include "engine/cuda/runtime/check.h"
#include "plan/op_traits.h"
#include "small_llama.h"
#include "small_model.h"

namespace krigtune::cuda {
namespace {

class CudaKernels : public testing::TestWithParam<schedule::DType> {
 protected:
  void SetUp() override {
    if (const std::string reason = no_device_reason(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

TEST_P(CudaKernels, ComputeWhatTheHostsCompute) {
  std::set<schedule::OpKind> compared;
  for (const plan::Access out : {plan::Access::kWrite, plan::Access::kReadWrite}) {
    for (const Case& given : kernel_cases(GetParam(), out)) {
      expect_same(done_by_device(given), done_by_host(given), tolerance(GetParam()));
      compared.insert(given.kind);
    }
  }
  for (int k = 0; k < schedule::kOpKindCount; ++k) {
    // Attention has a test of its own; collectives have no kernels.
    const plan::OpTraits& traits = plan::traits_of(static_cast<schedule::OpKind>(k));
    const bool has_kernel = traits.family != plan::OpFamily::kCollective &&
                            traits.family != plan::OpFamily::kAttention && !traits.predicted_only;
    EXPECT_EQ(compared.count(traits.kind), has_kernel ? 1U : 0U) << traits.name;
  }
}

TEST_P(CudaKernels, AttendAsTheHostsDo) {
  for (const plan::Access out : {plan::Access::kWrite, plan::Access::kReadWrite}) {
    for (const Case& given : attention_cases(GetParam(), out)) {
      const Case forward = done_by_host(given);
      expect_same(done_by_device(given), forward, tolerance(GetParam()));
      Case backward = backward_of(forward, out);
      const Case device = done_by_device(backward);
      backward.name += ", backward";
      expect_same(device, done_by_host(backward), tolerance(GetParam()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaKernels,
                         testing::Values(schedule::DType::kFp32, schedule::DType::kBf16, schedule::DType::kFp16));

struct Training {
  const char* name;
  workload::Workload workload;
  space::Configuration configuration;
  double loss;  ///< tolerance of losses, relative
  double way;   ///< tolerance of parameters, relative to the distance that training has moved them
};

// Returns the workload with heads of 64 elements, which flash attention takes.
workload::Workload with_flash_attention(workload::Workload workload) {
  workload.model.hidden = 128;
  workload.model.heads = 2;
  workload.model.kv_heads = 1;
  return workload;
}

workload::Workload with_plain_norms(workload::Workload workload) {
  workload.model.norm_gain = false;
  return workload;
}

workload::Workload eager_with_dropout() {
  workload::Workload workload = small_model();
  workload.model.attention = workload::Attention::kEager;
  workload.model.dropout = 0.1;
  workload.optimizer = workload::OptimizerKind::kSgd;
  return workload;
}

// The tolerances of parameters are wide because AdamW divides by the gradient's own size: if a gradient is nearly zero,
// a rounding error becomes a whole step.
std::vector<Training> trainings() {
  space::Configuration offloaded = configuration(2, 2, 2, 5000, 5000, true);
  offloaded.set("offload_optimizer", std::string("cpu"));
  return {
      {"GPT, stage 0", small_model(), configuration(0, 2, 2, 5000, 5000, true), 1e-5, 1e-3},
      {"GPT, stage 3", small_model(), configuration(3, 2, 1, 5000, 5000, true), 1e-5, 1e-3},
      {"GPT with dropout, SGD", eager_with_dropout(), configuration(1, 2, 1, 5000, 5000, true), 1e-5, 1e-3},
      {"Llama, clipped", llama(workload::Precision::kFp32), configuration(1, 2, 2, 5000, 5000, true), 1e-5, 1e-3},
      {"Llama, bf16", llama(workload::Precision::kBf16), configuration(1, 2, 2, 5000, 5000, true), 1e-3, 0.05},
      {"Llama, bf16, flash attention", with_flash_attention(llama(workload::Precision::kBf16)),
       configuration(1, 2, 1, 5000, 5000, true), 1e-3, 0.05},
      {"GPT, norms without gains", with_plain_norms(small_model()), configuration(1, 2, 1, 5000, 5000, true), 1e-5,
       1e-3},
      {"Qwen3", qwen3(workload::Precision::kFp32), configuration(2, 2, 2, 5000, 5000, true), 1e-5, 1e-3},
      {"Qwen3, adapters", qwen3(workload::Precision::kFp32, 4), configuration(0, 2, 2, 5000, 5000, true), 1e-5, 1e-3},
      {"Qwen3, bf16, adapters with dropout", qwen3(workload::Precision::kBf16, 4, 0.1),
       configuration(3, 2, 2, 5000, 5000, true), 1e-3, 0.05},
      {"Llama, fp16, offloaded", llama(workload::Precision::kFp16), offloaded, 1e-3, 0.05}};
}

std::size_t free_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  KRIGTUNE_CHECK_CUDA(cudaMemGetInfo(&free, &total));
  return free;
}

TEST(CudaTraining, TakesTheStepsThatTheHostTakes) {
  if (const std::string reason = no_device_reason(); !reason.empty()) GTEST_SKIP() << reason;
  constexpr int kSteps = 3;
  const SystemClock clock;
  const engine::TrainingOptions options{.seed = 5, .steps = kSteps};
  for (const Training& training : trainings()) {
    SCOPED_TRACE(training.name);
    const plan::StepPlan plan = plan::build_plan(training.workload, cpu_ranks(1), training.configuration);
    engine::Trainer host(plan, std::nullopt, clock, options);
    const std::vector<float> before = host.parameters();
    CudaTrainer device(plan, clock, options);
    // The logarithms and sines of host and device may differ in the last digit.
    EXPECT_LE(distance(device.parameters(), before), 1e-6 * distance(before, std::vector<float>(before.size())));
    std::size_t free_after_warm_up = 0;
    for (int step = 0; step < kSteps; ++step) {
      const double loss = host.step().loss;
      EXPECT_LE(std::abs(device.step().loss - loss), training.loss * loss);
      if (step == 0) free_after_warm_up = free_bytes();
    }
    EXPECT_EQ(free_bytes(), free_after_warm_up);
    // The tolerance is relative to the distance that training has moved the parameters.
    EXPECT_LE(distance(device.parameters(), host.parameters()), training.way * distance(host.parameters(), before));
    for (const schedule::Place place : {schedule::Place::kDevice, schedule::Place::kHost}) {
      EXPECT_EQ(device.arena_peak_bytes(place), host.arena_peak_bytes(place));
    }
    EXPECT_EQ(device.arena_peak_bytes(), plan.arena_bytes);
  }
}

// A replayed step gives the same bits as a queued one.
TEST(CudaTraining, ReplaysAStepAsAGraph) {
  if (const std::string reason = no_device_reason(); !reason.empty()) GTEST_SKIP() << reason;
  const SystemClock clock;
  const plan::StepPlan plan =
      plan::build_plan(llama(workload::Precision::kBf16), cpu_ranks(1), configuration(1, 2, 2, 5000, 5000, true));
  std::vector<std::vector<float>> parameters;
  for (const bool graph : {false, true}) {
    CudaTrainer trainer(plan, clock, {.seed = 5, .steps = 4, .graph = graph});
    for (int step = 0; step < 4; ++step) trainer.step();
    parameters.push_back(trainer.parameters());
  }
  EXPECT_EQ(parameters[0], parameters[1]);
}

}  // namespace
}  // namespace krigtune::cuda
