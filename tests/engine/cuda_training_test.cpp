// Compares whole training steps, as the CUDA executor launches them on the emulation of CUDA, with the host engine.
// Each of several ranks is a thread with a device of its own. Every rank draws its own order of the work on streams, so
// that a wait that the executor lacks shows as a wrong result.
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/clock.h"
#include "core/error.h"
#include "engine/cuda/cuda_trainer.h"
#include "engine/cuda/kernels/emulated_collective.h"
#include "small_llama.h"
#include "small_model.h"
#include "thread_processes.h"

namespace krigtune::cuda {
namespace {

constexpr int kSteps = 3;

/// The results of a few steps.
struct Trained {
  std::vector<double> losses;
  std::vector<float> parameters;  ///< of tensor rank 0
  std::int64_t peak_bytes = 0;
  std::size_t allocated_bytes = 0;  ///< allocated since before the first step
};

engine::TrainingOptions options(bool graph = false) { return {.seed = 5, .steps = kSteps, .graph = graph}; }

Trained train(CudaTrainer& trainer) {
  Trained trained;
  const std::size_t before = emulation::allocated_bytes();
  for (int step = 0; step < kSteps; ++step) trained.losses.push_back(trainer.step().loss);
  trained.allocated_bytes = emulation::allocated_bytes() - before;
  trained.parameters = trainer.parameters();
  trained.peak_bytes = trainer.arena_peak_bytes();
  return trained;
}

Trained train_on_devices(const plan::StepPlan& plan, const engine::TrainingOptions& how) {
  const SystemClock clock;
  Trained of_first;
  as_processes(static_cast<int>(plan.world()), [&](engine::Processes& processes) {
    // With two groups all ranks must reach their collectives in the same order, as on a GPU.
    const bool two_groups = plan.ranks > 1 && plan.tensor_ranks > 1;
    emulation::set_seed(two_groups ? 1 : static_cast<std::uint64_t>(processes.rank()) + 1);
    CudaTrainer trainer(plan, clock, how, &processes);
    const Trained trained = train(trainer);
    if (processes.rank() == 0) of_first = trained;
  });
  return of_first;
}

Trained train_on_host(const plan::StepPlan& plan) {
  const SystemClock clock;
  engine::Trainer trainer(plan, std::nullopt, clock, options());
  Trained trained;
  for (int step = 0; step < kSteps; ++step) trained.losses.push_back(trainer.step().loss);
  trained.parameters = trainer.parameters();
  return trained;
}

std::vector<float> first_parameters(const plan::StepPlan& plan) {
  const SystemClock clock;
  return engine::Trainer(plan, std::nullopt, clock, options()).parameters();
}

// Compares losses with tolerance `loss`, and parameters with tolerance `way`, relative to the distance that training
// has moved them.
void expect_as_on_host(const plan::StepPlan& plan, double loss, double way, bool graph = false) {
  const Trained device = train_on_devices(plan, options(graph));
  const Trained host = train_on_host(plan);
  for (std::size_t s = 0; s < host.losses.size(); ++s) EXPECT_NEAR(device.losses[s], host.losses[s], loss);
  const double gone = distance(host.parameters, first_parameters(plan));
  EXPECT_GT(gone, 0.0);
  EXPECT_LE(distance(device.parameters, host.parameters), way * gone);
  EXPECT_EQ(device.peak_bytes, plan.arena_bytes);
  EXPECT_EQ(device.allocated_bytes, 0U);
}

class CudaStages : public testing::TestWithParam<std::int64_t> {};

TEST_P(CudaStages, TwoRanksTrainAsOnTheHost) {
  for (const workload::Dialect dialect : {workload::Dialect::kCanonical, workload::Dialect::kDeepSpeed}) {
    workload::Workload workload = small_model();
    workload.dialect = dialect;
    const plan::StepPlan plan =
        plan::build_plan(workload, cpu_ranks(2), configuration(GetParam(), 2, 2, 5000, 5000, true));
    expect_as_on_host(plan, 1e-4, 2e-3);
  }
}
INSTANTIATE_TEST_SUITE_P(Zero, CudaStages, testing::Values(0, 1, 2, 3));

TEST(CudaTraining, TensorParallelRanksTrainAsOnTheHost) {
  space::Configuration split = configuration(1, 2, 1, 5000, 5000, true);
  split.set("tensor_parallel", std::int64_t{2});
  expect_as_on_host(plan::build_plan(llama(workload::Precision::kFp32), cpu_ranks(2), split), 1e-4, 2e-3);
  expect_as_on_host(plan::build_plan(llama(workload::Precision::kFp32), cpu_ranks(4), split), 1e-4, 2e-3);
}

TEST(CudaTraining, AdaptersTrainAsOnTheHost) {
  for (const std::int64_t stage : {0, 3}) {
    const space::Configuration knobs = configuration(stage, 2, 2, 5000, 5000, true);
    expect_as_on_host(plan::build_plan(qwen3(workload::Precision::kFp32, 4), cpu_ranks(2), knobs), 1e-4, 2e-3);
  }
  space::Configuration split = configuration(1, 2, 1, 5000, 5000, true);
  split.set("tensor_parallel", std::int64_t{2});
  expect_as_on_host(plan::build_plan(qwen3(workload::Precision::kFp32, 4, 0.1), cpu_ranks(2), split), 1e-4, 2e-3);
}

TEST(CudaTraining, SixteenBitsOffloadAndCheckpointing) {
  space::Configuration saving = configuration(2, 1, 2, 5000, 5000, true);
  saving.set("offload_optimizer", std::string("cpu"));
  saving.set("activation_checkpointing", std::string("full"));
  for (const workload::Precision precision : {workload::Precision::kBf16, workload::Precision::kFp16}) {
    expect_as_on_host(plan::build_plan(llama(precision), cpu_ranks(2), saving), 5e-3, 0.05);
  }
  space::Configuration shards = configuration(3, 1, 2, 5000, 5000, true);
  shards.set("offload_param", std::string("cpu"));
  shards.set("offload_optimizer", std::string("cpu"));
  expect_as_on_host(plan::build_plan(llama(workload::Precision::kBf16), cpu_ranks(2), shards), 5e-3, 0.05);
}

TEST(CudaTraining, AReplayedStepIsTheNextOne) {
  for (const std::int64_t stage : {std::int64_t{0}, std::int64_t{3}}) {
    const plan::StepPlan plan =
        plan::build_plan(llama(workload::Precision::kBf16), cpu_ranks(2), configuration(stage, 1, 2, 5000, 5000, true));
    const Trained replayed = train_on_devices(plan, options(true));
    const Trained queued = train_on_devices(plan, options(false));
    EXPECT_EQ(replayed.losses, queued.losses);
    EXPECT_EQ(replayed.parameters, queued.parameters);
  }
}

// GELU, its gradient and the bias gradients of a GPT are computed by epilogues of products or by kernels.
TEST(CudaTraining, EpiloguesTrainAsKernelsDo) {
  constexpr std::int64_t kMicroSteps = 2;
  const SystemClock clock;
  const workload::Workload workload = small_model();
  const plan::StepPlan plan =
      plan::build_plan(workload, cpu_ranks(1), configuration(1, 2, kMicroSteps, 5000, 5000, true));
  const Trained host = train_on_host(plan);
  const double gone = distance(host.parameters, first_parameters(plan));
  const auto times = static_cast<int>(kSteps * kMicroSteps * workload.model.layers);
  for (const bool has_epilogues : {true, false}) {
    emulation::blas_behaviour() = {};
    emulation::blas_behaviour().has_epilogues = has_epilogues;
    CudaTrainer trainer(plan, clock, options());
    auto& with_epilogue = emulation::blas_behaviour().with_epilogue;
    with_epilogue.clear();
    const Trained device = train(trainer);
    EXPECT_LE(distance(device.parameters, host.parameters), 2e-3 * gone);
    EXPECT_EQ(with_epilogue[CUBLASLT_EPILOGUE_GELU_AUX_BIAS], has_epilogues ? times : 0);
    EXPECT_EQ(with_epilogue[CUBLASLT_EPILOGUE_DGELU], has_epilogues ? times : 0);
    EXPECT_EQ(with_epilogue[CUBLASLT_EPILOGUE_BGRADB], has_epilogues ? 4 * times : 0);
  }
  emulation::blas_behaviour() = {};
}

// Here kernels are faster than the epilogue for the GELU's gradient alone and than the one for the sums along with a
// weight's gradient, but slower than the epilogue that computes the GELU's gradient and the sums together.
TEST(CudaTraining, ABiasGradientIsSummedAlongWithTheGelusGradient) {
  constexpr std::int64_t kMicroSteps = 2;
  const SystemClock clock;
  const workload::Workload workload = small_model();
  const plan::StepPlan plan =
      plan::build_plan(workload, cpu_ranks(1), configuration(1, 2, kMicroSteps, 5000, 5000, true));
  const Trained host = train_on_host(plan);
  emulation::blas_behaviour() = {};
  for (const std::uint32_t slow : {CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_BGRADB}) {
    emulation::blas_behaviour().time_of_epilogue[slow] = 9;
  }
  CudaTrainer trainer(plan, clock, options());
  emulation::blas_behaviour().with_epilogue.clear();
  const Trained device = train(trainer);
  EXPECT_LE(distance(device.parameters, host.parameters), 2e-3 * distance(host.parameters, first_parameters(plan)));
  EXPECT_EQ(emulation::blas_behaviour().with_epilogue[CUBLASLT_EPILOGUE_DGELU_BGRAD],
            static_cast<int>(kSteps * kMicroSteps * workload.model.layers));
  emulation::blas_behaviour() = {};
}

TEST(CudaTraining, TimesEveryStepWhereTheyAreAskedFor) {
  const SystemClock clock;
  const plan::StepPlan plan = plan::build_plan(small_model(), cpu_ranks(1), configuration(0, 2, 1, 5000, 5000, true));
  for (const bool every : {false, true}) {
    engine::TrainingOptions how = options();
    how.time_every_step = every;
    CudaTrainer trainer(plan, clock, how);
    trainer.step();
    const double first_s = trainer.operation_times(0).back().end_s;
    EXPECT_GT(first_s, 0.0);
    trainer.step();
    // The emulation's clock counts what was executed, so that streams in another order end at another time.
    const std::vector<plan::OperationTime> times = trainer.operation_times(0);
    ASSERT_EQ(times.size(), plan.operations.size());
    for (const plan::OperationTime& time : times) EXPECT_LE(time.start_s, time.end_s);
  }
}

TEST(CudaTraining, TellsWhatTheGpuHoldsBesideTheArena) {
  const SystemClock clock;
  const plan::StepPlan plan = plan::build_plan(small_model(), cpu_ranks(1), configuration(0, 2, 1, 5000, 5000, true));
  constexpr std::int64_t kOthersBytes = 123'456'789;
  emulation::set_others_bytes(kOthersBytes);
  CudaTrainer trainer(plan, clock, options());
  trainer.step();
  const engine::GpuMemoryUse use = trainer.memory_use();
  emulation::set_others_bytes(0);
  EXPECT_EQ(use.total_bytes, std::int64_t{1} << 30);
  EXPECT_EQ(use.context_bytes, kOthersBytes);
  EXPECT_EQ(use.communicators_bytes, 0);
  const auto allocated = static_cast<std::int64_t>(emulation::allocated_bytes());
  constexpr std::int64_t kGuardBytes = std::int64_t{1} << 20;  // after the arena
  EXPECT_EQ(use.rest_bytes, allocated - plan.arena_bytes - kGuardBytes);
  EXPECT_GT(use.rest_bytes, 0);
}

// One GPU plays rank 0 of 8.
TEST(CudaEmulatedWorld, TrainsAloneWithinThePlannedMemory) {
  const SystemClock clock;
  const workload::EmulatedNetwork network{.name = "test", .latency_s = 1e-5, .bytes_per_s = 1e9};
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    space::Configuration wanted = configuration(stage, 2, 2, 5000, 5000, true);
    wanted.set("tensor_parallel", std::int64_t{stage == 1 ? 2 : 1});
    const plan::StepPlan plan = plan::build_plan(llama(workload::Precision::kBf16), cpu_ranks(8), wanted);
    CudaTrainer trainer(plan, clock, options(), nullptr, {.network = network, .ranks_per_node = 8});
    const Trained trained = train(trainer);
    for (const double loss : trained.losses) EXPECT_TRUE(std::isfinite(loss)) << "stage " << stage;
    EXPECT_EQ(trained.peak_bytes, plan.arena_bytes);
    EXPECT_TRUE(trained.parameters.empty());
    EXPECT_EQ(trainer.parameters_fnv1a64(), "");
  }
}

TEST(CudaEmulatedWorld, CollectivesShareTheLink) {
  Moment* moments = nullptr;  // when the link becomes free, then the ends of three reservations
  ASSERT_EQ(cudaMalloc(&moments, 4 * sizeof(Moment)), cudaSuccess);
  cudaMemset(moments, 0, 4 * sizeof(Moment));
  constexpr Moment kLong = 100'000'000;
  for (int i = 1; i <= 3; ++i) reserve_link(moments, moments + i, kLong, nullptr);
  cudaDeviceSynchronize();
  EXPECT_EQ(moments[2], moments[1] + kLong);
  EXPECT_EQ(moments[3], moments[1] + 2 * kLong);
  EXPECT_EQ(moments[0], moments[3]);
  hold_until(moments + 1, nullptr);
  const std::int64_t looks = emulation::kernels_executed();
  cudaDeviceSynchronize();
  EXPECT_EQ(emulation::kernels_executed(), looks + 1);
  EXPECT_GE(emulation::next_ns(), moments[1]);
  cudaFree(moments);
}

// One GPU plays rank 0 of 4 over a network that needs at least 1 ms for each collective of the plan.
class CudaPacing : public testing::Test {
 protected:
  ~CudaPacing() override { emulation::set_kernel_time(0); }

  std::unique_ptr<CudaTrainer> trainer() const {
    const workload::EmulatedNetwork network{.name = "test", .latency_s = 1e-3, .bytes_per_s = 1e9};
    return std::make_unique<CudaTrainer>(
        plan::build_plan(llama(workload::Precision::kBf16), cpu_ranks(4), configuration(3, 2, 1, 5000, 5000, true)),
        clock_, options(), nullptr, DeviceWorld{.network = network, .ranks_per_node = 4});
  }

 private:
  SystemClock clock_;
};

TEST_F(CudaPacing, IsMeasuredForEachKindOfCollective) {
  const auto made = trainer();
  std::set<schedule::OpKind> kinds;
  for (const engine::PacedCollective& one : made->pacing()) {
    kinds.insert(one.kind);
    EXPECT_GT(one.stated_s, 1e-3);
    EXPECT_LT(one.copies_s, 1e-5);
    EXPECT_NEAR(one.held_s, one.stated_s, 1e-5);
  }
  EXPECT_TRUE(kinds.contains(schedule::OpKind::kAllGather));
  EXPECT_TRUE(kinds.contains(schedule::OpKind::kReduceScatter));
  EXPECT_TRUE(made->notes().empty());
  made->step();
}

TEST_F(CudaPacing, IsRightWhereStartingKernelsTakesAPartOfIt) {
  emulation::set_kernel_time(100'000);  // each collective would end 10 % too late
  const auto made = trainer();
  EXPECT_TRUE(made->notes().empty()) << made->notes().front();
}

TEST_F(CudaPacing, WarnsWhereStartingKernelsTakesLongerThanTheNetwork) {
  emulation::set_kernel_time(600'000);
  const auto made = trainer();
  ASSERT_EQ(made->notes().size(), 1U);
  EXPECT_NE(made->notes().front().find("the emulated network is off by up to +"), std::string::npos)
      << made->notes().front();
}

TEST_F(CudaPacing, RefusesALinkThatItsCopiesAreTooSlowFor) {
  emulation::set_kernel_time(1'500'000);
  try {
    trainer();
    FAIL() << "it is imitated";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("this GPU cannot imitate 'test'"), std::string::npos) << error.what();
  }
}

// If one rank cannot make a graph, no rank uses one.
class CudaGraphs : public testing::TestWithParam<emulation::GraphsLack> {};

TEST_P(CudaGraphs, AreDoneWithoutByAllRanksWhereOneCannotMakeThem) {
  const plan::StepPlan plan =
      plan::build_plan(llama(workload::Precision::kBf16), cpu_ranks(2), configuration(2, 2, 2, 5000, 5000, true));
  const Trained queued = train_on_devices(plan, options(false));
  const SystemClock clock;
  as_processes(2, [&](engine::Processes& processes) {
    emulation::set_seed(static_cast<std::uint64_t>(processes.rank()) + 1);
    emulation::set_graphs_lack(processes.rank() == 1 ? GetParam() : emulation::GraphsLack::kNothing);
    CudaTrainer trainer(plan, clock, options(true), &processes);
    const Trained trained = train(trainer);
    ASSERT_EQ(trainer.notes().size(), 1U);
    EXPECT_NE(trainer.notes().front().find("not replayed as a CUDA graph, which rank 1 could not make"),
              std::string::npos)
        << trainer.notes().front();
    EXPECT_EQ(trained.losses, queued.losses);
    EXPECT_EQ(trained.parameters, queued.parameters);
  });
}
INSTANTIATE_TEST_SUITE_P(Lack, CudaGraphs,
                         testing::Values(emulation::GraphsLack::kKernels, emulation::GraphsLack::kInstantiation));

TEST(CudaTraining, ReplaysWithoutANote) {
  const SystemClock clock;
  const plan::StepPlan plan = plan::build_plan(small_model(), cpu_ranks(1), configuration(0, 2, 1, 5000, 5000, true));
  CudaTrainer trainer(plan, clock, options(true));
  train(trainer);
  EXPECT_TRUE(trainer.notes().empty());
}

TEST(CudaTraining, StepsWithTimedOperationsAreDisturbed) {
  const SystemClock clock;
  const plan::StepPlan plan = plan::build_plan(small_model(), cpu_ranks(1), configuration(0, 2, 1, 5000, 5000, true));
  for (const bool every : {false, true}) {
    engine::TrainingOptions how = options();
    how.steps = 9;
    how.time_every_step = every;
    CudaTrainer trainer(plan, clock, how);
    for (int step = 0; step < 9; ++step) EXPECT_EQ(trainer.step().disturbed, !every && step % 8 == 0) << step;
  }
}

}  // namespace
}  // namespace krigtune::cuda
