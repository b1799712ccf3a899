#include "cuda/cuda_engine.h"

#include <cuda_runtime_api.h>

#include <ostream>

#include "bench/bench_processes.h"
#include "bench/exit_codes.h"
#include "cuda/check.h"
#include "cuda/cuda_trainer.h"
#include "cuda/local_rank.h"
#include "cuda/probe_devices.h"
#include "krigtune/core/error.h"

namespace krigtune::cuda {
namespace {

class GpuTrainer final : public BenchTrainer {
 public:
  GpuTrainer(StepPlan plan, const TrainingOptions& options, const Clock& clock, Processes* processes, int local_rank)
      : trainer_(std::move(plan), clock, options, processes, local_rank) {}

  StepResult step() override { return trainer_.step(); }
  double now_s() const override { return trainer_.now_s(); }
  const StepPlan& plan() const override { return trainer_.plan(); }
  std::vector<OperationTime> operation_times(std::int64_t rank) const override {
    return trainer_.operation_times(rank);
  }
  void silence(bool silent) override { trainer_.silence(silent); }
  std::int64_t arena_peak_bytes(Place place) const override { return trainer_.arena_peak_bytes(place); }
  std::string parameters_fnv1a64() const override { return trainer_.parameters_fnv1a64(); }

 private:
  CudaTrainer trainer_;
};

std::unique_ptr<BenchTrainer> make(StepPlan plan, const PlannedJob& planned, const TrainingOptions& options,
                                   const Clock& clock, Processes* processes) {
  if (planned.job.cluster.emulated_network) {
    throw UserError("krigtune-bench-cuda imitates no network", "remove \"emulate_network\", or use --device cpu");
  }
  const int gpus = usable_gpus();
  const int rank = processes == nullptr ? 0 : processes->rank();
  const int local_rank = processes == nullptr ? 0 : local_rank_from(process_environment(), rank, gpus);
  return std::make_unique<GpuTrainer>(std::move(plan), options, clock, processes, local_rank);
}

// What the context, the libraries and NCCL take is not the plan's: a part is left to them.
double memory_gib() {
  constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
  constexpr double kForPlans = 0.95;
  cudaDeviceProp properties{};
  KRIGTUNE_CHECK_CUDA(cudaGetDeviceProperties(&properties, 0));
  return kForPlans * static_cast<double>(properties.totalGlobalMem) / kGib;
}

int print_probe(bool /*json*/, std::ostream& out) {
  const DeviceProbe probe = probe_devices();
  out << probe.json << "\n";
  return probe.gpus > 0 ? 0 : kNoDevice;
}

BenchEnding begin(const BenchOptions& options, const std::vector<std::string>& /*arguments*/) {
  if (options.device == DeviceChoice::kCpu) {
    throw UserError("--device cpu", "krigtune-bench trains on CPU ranks; this program knows GPUs only");
  }
  usable_gpus();
  return {};
}

}  // namespace

BenchEngine cuda_engine() {
  BenchEngine engine;
  engine.program = "krigtune-bench-cuda";
  engine.device = "cuda";
  engine.make = make;
  engine.memory_gib = memory_gib;
  engine.probe = print_probe;
  engine.begin = begin;
  return engine;
}

}  // namespace krigtune::cuda
