#include "cuda/cuda_engine.h"

#include <cuda_runtime_api.h>

#include <ostream>

#include "bench/bench_processes.h"
#include "cuda/check.h"
#include "cuda/cuda_trainer.h"
#include "cuda/local_rank.h"
#include "cuda/probe_devices.h"
#include "krigtune/core/bench_exit.h"
#include "krigtune/core/error.h"

namespace krigtune::cuda {
namespace {

std::unique_ptr<BenchTrainer> make(StepPlan plan, const PlannedJob& planned, const TrainingOptions& options,
                                   const Clock& clock, Processes* processes) {
  const ClusterSpec& cluster = planned.job.cluster;
  DeviceWorld world{.network = cluster.emulated_network, .ranks_per_node = cluster.gpus_per_node};
  if (processes != nullptr) world.device = local_rank_from(process_environment(), processes->rank(), usable_gpus());
  return std::make_unique<BenchTrainerOf<CudaTrainer>>(std::move(plan), clock, options, processes, world);
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
  return probe.gpus > 0 ? 0 : BenchExit::kNoDevice;
}

int refuse_to_measure(const BenchOptions& /*options*/, const Clock& /*clock*/, std::ostream& /*out*/) {
  throw UserError("--measure-machine measures CPU ranks", "use krigtune-bench");
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
  engine.measure_machine = refuse_to_measure;
  engine.begin = begin;
  return engine;
}

}  // namespace krigtune::cuda
