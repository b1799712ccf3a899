#include "engine/gpu_probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>

#include "engine/shared_library.h"

namespace krigtune::engine {

// Finds out whether a program can start by starting it once. If a library is missing, the program names it on stderr;
// if the dynamic loader misses one, the loader names it and the exit code is 127.

namespace {

struct Started {
  int error = 0;   ///< errno if it could not be started
  int status = 0;  ///< as waitpid returns it
  std::string err;
};

class SpawnActions {
 public:
  SpawnActions() { posix_spawn_file_actions_init(&actions_); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

Started start_to_look(std::string program) {
  Started started;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {errno, 0, ""};
  SpawnActions actions;
  posix_spawn_file_actions_addopen(actions.get(), STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(actions.get(), ends[1], STDERR_FILENO);
  std::string option = "--version";
  const std::array<char*, 3> argv = {program.data(), option.data(), nullptr};
  pid_t process = -1;
  started.error = posix_spawn(&process, program.c_str(), actions.get(), nullptr, argv.data(), environ);
  close(ends[1]);
  std::array<char, 512> block{};
  for (ssize_t n = 0; (n = read(ends[0], block.data(), block.size())) > 0;) {
    started.err.append(block.data(), static_cast<std::size_t>(n));
  }
  close(ends[0]);
  if (started.error == 0) waitpid(process, &started.status, 0);
  return started;
}

// Returns WHY from "PROGRAM: error while loading shared libraries: WHY".
std::string reason_of(std::string text) {
  text = text.substr(0, text.find('\n'));
  const std::string loading = "error while loading shared libraries: ";
  const std::size_t at = text.find(loading);
  return at == std::string::npos ? text : text.substr(at + loading.size());
}

std::string why(const Started& started, const std::filesystem::path& program) {
  if (started.error == ENOENT) return fmt::format("there is no '{}'", program.string());
  if (started.error != 0) return std::strerror(started.error);
  if (WIFSIGNALED(started.status)) return fmt::format("it is ended by signal {}", WTERMSIG(started.status));
  const std::string reason = reason_of(started.err);
  return reason.empty() ? fmt::format("it ends with code {}", WEXITSTATUS(started.status)) : reason;
}

}  // namespace

std::string cuda_start_failure(const std::filesystem::path& program) {
  const Started started = start_to_look(program.string());
  if (started.error == 0 && started.status == 0) return "";
  return fmt::format("krigtune-bench-cuda cannot start: {}", why(started, program));
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
