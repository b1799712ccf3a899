#include "programs/bench/cuda_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include "core/error.h"
#include "core/short_program.h"
#include "core/text.h"
#include "engine/gpu_probe.h"
#include "programs/bench/local_launch.h"
#include "programs/bench/options.h"

namespace krigtune::bench {
namespace {

// Replaces this process by the program. Returns only on failure.
void become(const std::filesystem::path& program, const std::vector<std::string>& arguments) {
  ::execv(program.c_str(), command_line(program, arguments).get());
}

// Returns why the GPUs cannot run the job, or nothing. Each rank needs a GPU of its own; with an emulated network, one
// GPU is enough, because it plays one rank of the job.
std::string misfit(const workload::ClusterSpec& cluster, int gpus) {
  if (cluster.emulated_network || cluster.gpus_per_node <= gpus) return "";
  return fmt::format("the cluster has {} per node, and this machine has {}", counted(cluster.gpus_per_node, "GPU"),
                     gpus);
}

std::filesystem::path cuda_program() { return engine::cuda_program_beside(own_program()); }

}  // namespace

std::string why_no_gpu_is_used(const engine::GpuProbe& probe) {
  std::string missing = engine::no_cuda_reason(own_program());
  if (!missing.empty() && probe.gpus == 0) return fmt::format("{}, and {}", missing, probe.reason);
  if (probe.gpus == 0) return probe.reason;
  if (!missing.empty()) return missing;
  return engine::cuda_start_failure(cuda_program());
}

BenchEnding hand_over_to_cuda(const BenchOptions& options, const std::vector<std::string>& arguments) {
  const workload::ClusterSpec cluster = cluster_of(options);
  const bool named = cluster.gpu != "local";
  if (options.device == DeviceChoice::kCpu) {
    if (!named) return {};
    throw UserError(fmt::format("the cluster's GPU is {}, and --device cpu trains on CPU ranks", cluster.gpu),
                    "write \"gpu\": \"local\"");
  }
  const bool required = options.device == DeviceChoice::kCuda;
  const engine::GpuProbe probe = engine::probe_gpus();
  std::string why_not = why_no_gpu_is_used(probe);
  if (why_not.empty() && !required) why_not = misfit(cluster, probe.gpus);
  if (why_not.empty()) {
    become(cuda_program(), arguments);
    why_not = fmt::format("'{}' cannot be started", cuda_program().string());
  }
  if (named) {
    return {
        BenchExit::kNoDevice, "failed", "environment",
        fmt::format(
            "no device: the cluster's GPU is {}, but {}; run it on a machine that has one, or write \"gpu\": \"local\"",
            cluster.gpu, why_not)};
  }
  if (!required && probe.gpus == 0) return {};
  if (!required) return {.message = fmt::format("trains on CPU ranks, as {}", why_not)};
  return {BenchExit::kNoDevice, "failed", "environment", fmt::format("{}; use --device cpu", why_not)};
}

}  // namespace krigtune::bench
