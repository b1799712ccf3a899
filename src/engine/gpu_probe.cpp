#include "engine/gpu_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>

#include "core/short_program.h"
#include "engine/shared_library.h"

namespace krigtune::engine {

// Finds out whether a program can start by starting it once. If a library is missing, the program names it on stderr;
// if the dynamic loader misses one, the loader names it and the exit code is 127.

namespace {

// Returns WHY from "PROGRAM: error while loading shared libraries: WHY".
std::string reason_of(std::string text) {
  text = text.substr(0, text.find('\n'));
  const std::string loading = "error while loading shared libraries: ";
  const std::size_t at = text.find(loading);
  return at == std::string::npos ? text : text.substr(at + loading.size());
}

std::string why(const EndedProgram& ended, const std::filesystem::path& program) {
  if (ended.error == ENOENT) return fmt::format("there is no '{}'", program.string());
  if (ended.error != 0) return std::strerror(ended.error);
  const std::string reason = reason_of(ended.text);
  return reason.empty() ? how_it_ended(ended) : reason;
}

}  // namespace

std::filesystem::path cuda_program_beside(const std::filesystem::path& bench) {
  std::error_code none;
  const std::filesystem::path itself = std::filesystem::canonical(bench, none);
  return (none ? bench : itself).parent_path() / "krigtune-bench-cuda";
}

std::string no_cuda_reason(const std::filesystem::path& bench) {
  std::error_code none;
  const bool is_there = !bench.empty() && std::filesystem::exists(cuda_program_beside(bench), none);
  return is_there ? "" : no_cuda_reason();
}

std::string cuda_start_failure(const std::filesystem::path& program) {
  const EndedProgram ended = run_short_program(program, {"--version"}, Stream::kErr);
  return ended.succeeded() ? "" : fmt::format("krigtune-bench-cuda cannot start: {}", why(ended, program));
}

// The functions of the CUDA driver API that count and describe devices. Their signatures are part of its stable ABI
// (CUDA Driver API reference: they return CUresult, 0 = success, 100 = no device). None of them creates a context.
namespace {

// CUdevice is an int.
void describe(const SharedLibrary& driver, GpuProbe& probe) {
  auto* get = find<int(int*, int)>(driver, "cuDeviceGet");
  auto* total = find<int(std::size_t*, int)>(driver, "cuDeviceTotalMem_v2");
  auto* name_of = find<int(char*, int, int)>(driver, "cuDeviceGetName");
  for (int ordinal = 0; get != nullptr && ordinal < probe.gpus; ++ordinal) {
    int device = 0;
    if (get(&device, ordinal) != 0) continue;
    std::size_t bytes = 0;
    if (total != nullptr && total(&bytes, device) == 0 && bytes > 0) {
      const auto memory = static_cast<std::int64_t>(bytes);
      probe.memory_bytes = probe.memory_bytes == 0 ? memory : std::min(probe.memory_bytes, memory);
    }
    std::array<char, 256> name{};
    if (ordinal == 0 && name_of != nullptr && name_of(name.data(), static_cast<int>(name.size() - 1), device) == 0) {
      probe.name = name.data();
    }
  }
}

}  // namespace

std::int64_t memory_for_plans(std::int64_t total_bytes, std::int64_t taken_bytes) {
  constexpr std::int64_t kAddedBytes = std::int64_t{256} << 20U;
  const auto usual = static_cast<std::int64_t>(kMemoryForPlans * static_cast<double>(total_bytes));
  return taken_bytes == 0 ? usual : std::max<std::int64_t>(0, std::min(usual, total_bytes - taken_bytes - kAddedBytes));
}

GpuProbe probe_gpus() {
  constexpr int kNoDevice = 100;
  GpuProbe probe;
  const SharedLibrary driver = open_library("libcuda.so.1");
  if (!driver) {
    probe.reason = "there is no NVIDIA driver (libcuda.so.1 cannot be opened)";
    return probe;
  }
  auto* initialise = find<int(unsigned)>(driver, "cuInit");
  auto* count = find<int(int*)>(driver, "cuDeviceGetCount");
  auto* get_version = find<int(int*)>(driver, "cuDriverGetVersion");
  if (initialise == nullptr || count == nullptr || get_version == nullptr) {
    probe.broken = true;
    probe.reason = "libcuda.so.1 is no CUDA driver";
    return probe;
  }
  get_version(&probe.driver_version);
  if (const int code = initialise(0); code != 0) {
    probe.broken = code != kNoDevice;
    probe.reason = fmt::format("the NVIDIA driver finds no GPU (cuInit gives {})", code);
    return probe;
  }
  if (const int code = count(&probe.gpus); code != 0 || probe.gpus <= 0) {
    probe.reason = fmt::format("the NVIDIA driver finds no GPU (cuDeviceGetCount gives {}, {} GPUs)", code, probe.gpus);
    probe.gpus = 0;
  }
  describe(driver, probe);
  return probe;
}

}  // namespace krigtune::engine
