#include "oom_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

namespace krigtune {
namespace {

constexpr std::size_t kLineLength = 1000;

struct Sign {
  std::string_view text;
  std::string_view also = "";  // must be in the same line
};

// Each with who prints it.
constexpr std::array kSigns = {
    // PyTorch, c10/core/DeviceCachingAllocator and python exceptions: torch.cuda.OutOfMemoryError (1.13 to 2.4),
    // torch.OutOfMemoryError (2.5 on), torch.xpu too.
    Sign{"OutOfMemoryError"},
    Sign{"CUDA out of memory"},                      // PyTorch, c10/cuda/CUDACachingAllocator.cpp
    Sign{"HIP out of memory"},                       // the same file, hipified for ROCm
    Sign{"XPU out of memory"},                       // PyTorch, c10/xpu/XPUCachingAllocator.cpp
    Sign{"MPS backend out of memory"},               // PyTorch, aten/src/ATen/mps/MPSAllocator.mm
    Sign{"CUDA error: out of memory"},               // PyTorch, C10_CUDA_CHECK of cudaErrorMemoryAllocation
    Sign{"HIP error: out of memory"},                // the same for ROCm
    Sign{"cudaErrorMemoryAllocation"},               // CUDA run-time API, cudaGetErrorName
    Sign{"CUDA_ERROR_OUT_OF_MEMORY"},                // CUDA driver API, cuGetErrorName; XLA prints it
    Sign{"hipErrorOutOfMemory"},                     // HIP, hipGetErrorName
    Sign{"CUBLAS_STATUS_ALLOC_FAILED"},              // cuBLAS: its workspace
    Sign{"CUDNN_STATUS_ALLOC_FAILED"},               // cuDNN
    Sign{"CUSOLVER_STATUS_ALLOC_FAILED"},            // cuSOLVER
    Sign{"CUFFT_ALLOC_FAILED"},                      // cuFFT
    Sign{"Cuda failure", "out of memory"},           // NCCL, src/include/checks.h: Cuda failure 2 'out of memory'
    Sign{"NCCL", "out of memory"},                   // PyTorch, ProcessGroupNCCL: the last NCCL error quoted
    Sign{"unhandled cuda error", "out of memory"},   // ncclGetErrorString with its detail
    Sign{"RESOURCE_EXHAUSTED", "emory"},             // XLA, JAX: RESOURCE_EXHAUSTED: Out of memory ... allocate
    Sign{"Resource exhausted", "emory"},             // the same, older
    Sign{"OOM when allocating tensor"},              // TensorFlow, core/common_runtime
    Sign{"DefaultCPUAllocator", "allocate memory"},  // PyTorch, c10/core/impl/alloc_cpu.cpp
    Sign{"memory allocation of", "bytes failed"},    // Rust, std::alloc: tokenizers
    Sign{"std::bad_alloc"},                          // libstdc++, libc++: terminate called after ...
    Sign{"MemoryError"},                             // CPython; numpy's _ArrayMemoryError
    Sign{"Cannot allocate memory"},                  // strerror(ENOMEM) of glibc
    Sign{"java.lang.OutOfMemoryError"},              // JVM: a data loader on Spark
    Sign{"oom-kill"},                                // Linux, mm/oom_kill.c; slurmstepd before 21.08: oom-kill event(s)
    Sign{"oom_kill event"},                          // slurmstepd, task_cgroup_memory: Detected 1 oom_kill event
    Sign{"Out of memory: Killed process"},           // Linux, mm/oom_kill.c
    Sign{"Memory cgroup out of memory"},             // Linux, mm/oom_kill.c
    Sign{"OOM Killed"},                              // slurmstepd: Some of the step tasks have been OOM Killed
    Sign{": Out Of Memory"},                         // srun: error: n1: task 0: Out Of Memory
    Sign{"exceeded memory limit"},                   // slurmstepd's jobacct_gather; LSF; PBS
    Sign{"OpenBLAS error", "emory allocation"},      // OpenBLAS, driver/others/memory.c
};

// A rank got SIGKILL. Programs whose OOM killer cannot be asked are taken to have met it.
constexpr std::array kKillSigns = {
    Sign{"exits with return code = -9"},   // DeepSpeed's launcher: a rank got SIGKILL that it did not send
    Sign{"exits with return code = 247"},  // the same, as an unsigned exit code
    Sign{"failed (exitcode: -9)"},         // torchrun, elastic/multiprocessing/api.py: the first to fail
    Sign{"exited on signal 9"},            // Open MPI's mpirun: process rank 3 ... exited on signal 9 (Killed)
    Sign{"EXIT CODE: 9"},                  // MPICH's hydra: KILLED BY SIGNAL: 9
};

template <class Signs>
bool holds_one(std::string_view line, const Signs& signs) {
  return std::any_of(signs.begin(), signs.end(), [&](const Sign& sign) {
    return line.find(sign.text) != std::string_view::npos && line.find(sign.also) != std::string_view::npos;
  });
}

bool is_memory_sign(std::string_view line) {
  // PyTorch says this after a collective has timed out, too: the size that it asks for is garbage.
  // https://github.com/NVIDIA/nccl/issues/1284
  if (line.find("more than 1EB") != std::string_view::npos) return false;
  return holds_one(line, kSigns);
}

// The first line for which `holds`, of each its beginning.
template <class Holds>
std::optional<std::string> first_line(const std::string& text, const Holds& holds) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, std::min(end - begin, kLineLength));
    begin = end + 1;
    if (holds(line)) return line;
  }
  return std::nullopt;
}

std::optional<double> unit_bytes(std::string_view unit) {
  constexpr std::array<std::pair<std::string_view, double>, 9> kUnits = {{{"bytes", 1.0},
                                                                          {"KiB", 0x1p10},
                                                                          {"MiB", 0x1p20},
                                                                          {"GiB", 0x1p30},
                                                                          {"TiB", 0x1p40},
                                                                          {"KB", 0x1p10},
                                                                          {"MB", 0x1p20},
                                                                          {"GB", 0x1p30},
                                                                          {"B", 1.0}}};
  for (const auto& [name, bytes] : kUnits) {
    if (unit.substr(0, name.size()) == name) return bytes;
  }
  return std::nullopt;
}

std::optional<Bytes> size_at(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::optional<double> unit = unit_bytes(text);
  constexpr double kMost = 1e18;  // an exabyte: no such memory
  if (!unit || !(number * *unit >= 0.0 && number * *unit < kMost)) return std::nullopt;
  return Bytes{std::llround(number * *unit)};
}

}  // namespace

std::regex compile_pattern(const std::string& pattern) {
#ifdef __GLIBCXX__
  // libstdc++ otherwise backtracks: "(x+)+y" would take a line of x for ever, by recursion.
  return std::regex(pattern, std::regex_constants::ECMAScript | std::regex_constants::__polynomial);
#else
  return std::regex(pattern);
#endif
}

std::optional<Bytes> requested_in(const std::string& line) {
  for (const std::string_view word : {"allocate", "allocating"}) {
    for (std::size_t at = line.find(word); at != std::string::npos; at = line.find(word, at + 1)) {
      const std::optional<Bytes> size = size_at(std::string_view(line).substr(at + word.size()));
      if (size) return size;
    }
  }
  return std::nullopt;
}

std::optional<MemoryComplaint> find_memory_complaint(const std::string& text, const std::vector<std::regex>& patterns) {
  const auto line = first_line(text, [&](const std::string& candidate) {
    const auto matches = [&](const std::regex& pattern) { return std::regex_search(candidate, pattern); };
    return is_memory_sign(candidate) || holds_one(candidate, kKillSigns) ||
           std::any_of(patterns.begin(), patterns.end(), matches);
  });
  return line ? std::optional(MemoryComplaint{*line, requested_in(*line)}) : std::nullopt;
}

std::optional<MemoryComplaint> find_memory_words(const std::string& text) {
  const auto line = first_line(text, [](const std::string& candidate) { return is_memory_sign(candidate); });
  return line ? std::optional(MemoryComplaint{*line, requested_in(*line)}) : std::nullopt;
}

bool tells_of_a_kill(const std::string& text) {
  return first_line(text, [](const std::string& line) { return holds_one(line, kKillSigns); }).has_value();
}

}  // namespace krigtune
