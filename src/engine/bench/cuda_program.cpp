#include "bench/cuda_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include "bench/job.h"
#include "krigtune/core/bench_exit.h"
#include "krigtune/core/error.h"
#include "krigtune/engine/gpu_probe.h"

namespace krigtune {
namespace {

constexpr const char* kCudaProgram = "krigtune-bench-cuda";

// Returns only if it fails.
void become(const std::filesystem::path& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
}

// Whether GPUs can do what the job asks for: imitated networks are the host's, and each rank takes a GPU of its own.
bool suits(const BenchOptions& options, int gpus) {
  const ClusterSpec cluster = load_job(options.config).cluster;
  return !cluster.emulated_network && cluster.gpus_per_node <= gpus;
}

}  // namespace

BenchEnding hand_over_to_cuda(const BenchOptions& options, const std::vector<std::string>& arguments) {
  if (options.device == DeviceChoice::kCpu) return {};
  const bool required = options.device == DeviceChoice::kCuda;
  const GpuProbe probe = probe_gpus();
  const std::string missing = no_cuda_reason();
  std::string why_not = missing.empty() || probe.gpus == 0 ? probe.reason : missing;
  if (!missing.empty() && probe.gpus == 0) why_not = fmt::format("{}, and {}", missing, probe.reason);
  if (why_not.empty() && (required || suits(options, probe.gpus))) {
    const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / kCudaProgram;
    become(program, arguments);
    why_not = fmt::format("'{}' cannot be started", program.string());
  }
  if (!required) return {};
  return {BenchExit::kNoDevice, "failed", "environment", fmt::format("{}; use --device cpu", why_not)};
}

}  // namespace krigtune
