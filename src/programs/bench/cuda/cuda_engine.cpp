#include "programs/bench/cuda/cuda_engine.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <memory>
#include <ostream>
#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "core/short_program.h"
#include "core/text.h"
#include "engine/cuda/cuda_trainer.h"
#include "engine/cuda/runtime/check.h"
#include "engine/cuda/runtime/compiled_for.h"
#include "engine/cuda/runtime/library_search.h"
#include "engine/cuda/runtime/library_versions.h"
#include "engine/gpu_probe.h"
#include "programs/bench/cuda/attention_choice.h"
#include "programs/bench/cuda/cuda_rank_device.h"
#include "programs/bench/gpu_watch.h"
#include "programs/bench/local_launch.h"
#include "programs/bench/options.h"

namespace krigtune::bench {
namespace {

Json device_json(int device) {
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) return nullptr;
  return {{"name", properties.name},
          {"compute_capability", std::to_string(properties.major) + "." + std::to_string(properties.minor)},
          {"multiprocessors", properties.multiProcessorCount},
          {"memory_bytes", properties.totalGlobalMem}};
}

// Adds the library's version, 0 if it is missing, and its file, or why it is missing.
void put_library(Json& json, const std::string& name, const cuda::LibraryVersion& library) {
  json[name] = library.version;
  json[name + (library.missing.empty() ? "_file" : "_missing")] =
      library.missing.empty() ? library.path : library.missing;
}

}  // namespace

DeviceProbe probe_devices() {
  DeviceProbe probe;
  // Without a driver the count stays unchanged.
  const cudaError_t code = cudaGetDeviceCount(&probe.gpus);
  int driver = 0;
  int runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  Json json = {{"gpus", probe.gpus},
               {"reason", code == cudaSuccess ? Json(nullptr) : Json(cudaGetErrorName(code))},
               {"driver", driver},
               {"runtime", runtime},
               {"compiled_for", cuda::compiled_targets()},
               {"devices", Json::array()}};
  put_library(json, "cublaslt", cuda::blas_version());
  put_library(json, "nccl", cuda::nccl_version());
  for (int device = 0; device < probe.gpus; ++device) json["devices"].push_back(device_json(device));
  probe.json = json.dump();
  return probe;
}

int local_rank_from(const engine::Environment& environment, int rank, int gpus) {
  for (const char* name : {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}) {
    const auto text = environment(name);
    if (!text) continue;
    int value = -1;
    const char* end = text->data() + text->size();
    if (std::from_chars(text->data(), end, value).ptr != end || value < 0) {
      throw UserError(std::string(name) + " is '" + *text + "'", "it must be a number of 0 or more");
    }
    return value;
  }
  return gpus > 0 ? rank % gpus : 0;
}

namespace {

int local_rank_of(engine::Processes* processes) {
  return processes == nullptr ? 0 : local_rank_from(process_environment(), processes->rank(), cuda::usable_gpus());
}

std::unique_ptr<GpuSensor> gpu_sensor(engine::Processes* processes) {
  std::array<char, 32> address{};
  const int size = static_cast<int>(address.size());
  if (cudaDeviceGetPCIBusId(address.data(), size, local_rank_of(processes)) != cudaSuccess) return nullptr;
  return open_nvml(address.data());
}

std::unique_ptr<BenchTrainer> make(plan::StepPlan plan, const PlannedJob& planned,
                                   const engine::TrainingOptions& options, const Clock& clock,
                                   engine::Processes* processes, bool hopper_attention) {
  const workload::ClusterSpec& cluster = planned.job.cluster;
  const cuda::DeviceWorld world{local_rank_of(processes), cluster.emulated_network, cluster.gpus_per_node,
                                hopper_attention};
  return std::make_unique<BenchTrainerOf<cuda::CudaTrainer>>(std::move(plan), clock, options, processes, world);
}

double memory_gib() {
  constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
  cudaDeviceProp properties{};
  KRIGTUNE_CHECK_CUDA(cudaGetDeviceProperties(&properties, 0));
  return engine::kMemoryForPlans * static_cast<double>(properties.totalGlobalMem) / kGib;
}

int print_probe(bool /*json*/, std::ostream& out) {
  const DeviceProbe probe = probe_devices();
  out << probe.json << "\n";
  return probe.gpus > 0 ? 0 : BenchExit::kNoDevice;
}

int refuse_to_measure(const BenchOptions& /*options*/, const Clock& /*clock*/, std::ostream& /*out*/) {
  throw UserError("--measure-machine measures CPU ranks", "use krigtune-bench");
}

std::vector<std::unique_ptr<RankDevice>> rank_devices(const RankWorld& world) {
  return make_cuda_devices(world, local_rank_of(world.processes));
}

RankMachine rank_machine(engine::Processes* processes, const JobRanks& /*job*/) {
  cudaDeviceProp properties{};
  KRIGTUNE_CHECK_CUDA(cudaGetDeviceProperties(&properties, local_rank_of(processes)));
  return {properties.name, static_cast<std::int64_t>(properties.totalGlobalMem)};
}

void require_library(const cuda::LibraryVersion& library, const std::string& who) {
  if (library.missing.empty()) return;
  throw EnvironmentError(fmt::format("{}: {}", who, library.missing), cuda::kLibraryHint);
}

BenchEnding begin(const BenchOptions& options, const std::vector<std::string>& /*arguments*/) {
  if (options.device == DeviceChoice::kCpu) {
    throw UserError("--device cpu", "krigtune-bench trains on CPU ranks; this program only trains on GPUs");
  }
  const int gpus = cuda::usable_gpus();
  require_library(cuda::blas_version(), "training on a GPU needs cuBLASLt");
  const workload::ClusterSpec cluster = cluster_of(options);
  if (!cluster.emulated_network && cluster.gpus_per_node > gpus) {
    throw EnvironmentError(fmt::format("a node of the job has {} and this machine {}",
                                       counted(cluster.gpus_per_node, "rank"), counted(gpus, "GPU")),
                           "set cluster.gpus_per_node, or use --device cpu");
  }
  const std::int64_t ranks = cluster.nodes * cluster.gpus_per_node;
  if (!cluster.emulated_network && ranks > 1) {
    require_library(cuda::nccl_version(), fmt::format("a job of {} GPUs needs NCCL", ranks));
  }
  return {};
}

// Before this process has a context: on a GPU that serves one process at a time the check could not have its own.
AttentionChoice attention_of(const BenchOptions& options, int gpus) {
  if (options.measure_rates) return {};
  const engine::Launch launch = engine::launch_from(process_environment());
  const int device = local_rank_from(process_environment(), launch.rank, gpus);
  if (device >= gpus) return {};  // refused later, with the reason
  return choose_attention(load_job(options.config).workload, device, process_environment(), own_program());
}

}  // namespace

std::string why_it_cannot_start() {
  const std::string missing = cuda::blas_version().missing;
  return missing.empty() ? "" : fmt::format("{}; {}", missing, cuda::kLibraryHint);
}

BenchEngine cuda_engine() {
  BenchEngine engine;
  engine.program = "krigtune-bench-cuda";
  engine.device = "cuda";
  engine.rank_is_a_process = true;
  const auto attention = std::make_shared<AttentionChoice>();
  engine.make = [attention](plan::StepPlan plan, const PlannedJob& planned, const engine::TrainingOptions& options,
                            const Clock& clock, engine::Processes* processes) {
    return make(std::move(plan), planned, options, clock, processes, attention->hopper);
  };
  engine.memory_gib = memory_gib;
  engine.gpu_sensor = gpu_sensor;
  engine.probe = print_probe;
  engine.measure_machine = refuse_to_measure;
  engine.rank_devices = rank_devices;
  engine.rate_sizes = cuda_rate_sizes;
  engine.rank_machine = rank_machine;
  engine.begin = [attention](const BenchOptions& options, const std::vector<std::string>& arguments) {
    BenchEnding ending = begin(options, arguments);
    *attention = attention_of(options, cuda::usable_gpus());
    ending.message = attention->warning;
    return ending;
  };
  return engine;
}

}  // namespace krigtune::bench
