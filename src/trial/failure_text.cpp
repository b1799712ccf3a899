#include "trial/failure_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text.h"
#include "core/utf8.h"
#include "trial/python_exception.h"
#include "trial/trial_files.h"

namespace krigtune::trial {
namespace {

std::optional<int> number_at(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && number >= 0 ? std::optional(number) : std::nullopt;
}

std::optional<int> integer_after(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  return at == std::string_view::npos ? std::nullopt : number_at(line.substr(at + words.size()));
}

std::optional<RankLabel> label_between(std::string_view line, std::string_view open, std::string_view close) {
  if (line.substr(0, open.size()) != open) return std::nullopt;
  const std::size_t end = line.find(close, open.size());
  const std::optional<int> rank = number_at(line.substr(open.size()));
  constexpr std::size_t kLongest = 24;
  if (end > kLongest || !rank) return std::nullopt;
  return RankLabel{*rank, end + close.size()};
}

}  // namespace

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::optional<RankLabel> rank_label(std::string_view line) {
  // torchrun --tee or log prefixes: "[rank3]:", "[default3]:"
  for (const std::string_view open : {"[rank", "[default"}) {
    if (const auto label = label_between(line, open, "]:")) return label;
  }
  // mpirun --tag-output: "[1,3]<stderr>:"
  for (const std::string_view stream : {"]<stderr>:", "]<stdout>:"}) {
    const std::size_t end = line.find(stream);
    const std::size_t comma = line.substr(0, end).rfind(',');
    if (line.substr(0, 1) != "[" || end == std::string_view::npos || comma == std::string_view::npos) continue;
    if (const auto rank = number_at(line.substr(comma + 1))) return RankLabel{*rank, end + stream.size()};
  }
  // srun --label: "3: "
  const std::size_t colon = line.find(": ");
  const std::size_t blanks = std::min(line.find_first_not_of(' '), line.size());
  const bool digits = colon != std::string_view::npos && colon > blanks &&
                      line.substr(blanks, colon - blanks).find_first_not_of("0123456789") == std::string_view::npos;
  const std::optional<int> rank = digits ? number_at(line) : std::nullopt;
  return rank ? std::optional(RankLabel{*rank, colon + 2}) : std::nullopt;
}

std::string without_numbers(const std::string& text) {
  std::string plain;
  bool in_number = false;  // a digit, and the digits and letters after it: 17, 0x7f31, 12GiB
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '9';
    in_number = is_digit || (in_number && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')));
    if (!in_number) plain += c;
    if (in_number && (plain.empty() || plain.back() != '#')) plain += '#';
  }
  return plain;
}

std::string printable(const std::string& line) {
  std::string text = line;
  while (!text.empty() && text.back() == '\r') text.pop_back();
  text.erase(0, text.rfind('\r') + 1);
  std::string clean;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '\x1b' && i + 1 < text.size() && text[i + 1] == '[') {  // a colour: ESC [ ... letter
      i = std::min(text.find_first_of("ABCDEFGHJKSTfhlmnsu", i + 2), text.size() - 1) + 1;
      continue;
    }
    const Utf8Character character = utf8_at(text, i);
    const bool is_control = character.code < 0x20 && text[i] != '\t';
    if (!is_control) clean += character.valid ? text.substr(i, character.bytes) : "?";
    i += character.bytes;
  }
  return clean;
}

namespace {

// Returns whether the line is the launcher's message about a failure, or part of the launcher's own trace.
bool is_of_the_launcher(const std::string& line) {
  constexpr std::array kMarks = {"torch.distributed.elastic", "torch/distributed/elastic", "torch/distributed/run.py",
                                 "torch/distributed/launcher", "bin/torchrun"};
  return std::any_of(kMarks.begin(), kMarks.end(),
                     [&](const char* mark) { return line.find(mark) != std::string::npos; });
}

// Returns the lines before torchrun's report of a failed worker; all lines if there is no report.
std::vector<std::string> before_the_report(std::vector<std::string> lines) {
  const auto begin = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return is_of_the_launcher(line) &&
           (line.find("failed (exitcode") != std::string::npos || line.find("Sending process") != std::string::npos ||
            line.find("ChildFailedError") != std::string::npos);
  });
  const bool anything = std::any_of(lines.begin(), begin, [](const std::string& line) {
    return line.find_first_not_of(" \r\t") != std::string::npos;
  });
  if (anything) lines.erase(begin, lines.end());
  return lines;
}

std::vector<std::string> lines_of_rank(const std::vector<std::string>& lines, int rank) {
  std::vector<std::string> picked;
  for (const std::string& line : lines) {
    const std::optional<RankLabel> label = rank_label(line);
    if (label && label->rank == rank) picked.push_back(line.substr(label->length));
  }
  return picked;
}

// Returns the first labelled rank that raises something, for output without a launcher's report.
std::optional<int> first_raising_rank(const std::vector<std::string>& lines) {
  constexpr std::array kMarks = {"Traceback (most recent call last)", "Error: ", "terminate called", "Assertion"};
  for (const std::string& line : lines) {
    const std::optional<RankLabel> label = rank_label(line);
    const auto holds = [&](const char* mark) { return line.find(mark, label->length) != std::string::npos; };
    if (label && std::any_of(kMarks.begin(), kMarks.end(), holds)) return label->rank;
  }
  return std::nullopt;
}

std::string ending_of(const std::vector<std::string>& lines) {
  std::vector<std::string> clean;
  constexpr std::size_t kEnough = 200;  // last_lines takes the last 20 of them
  const std::size_t skip = lines.size() > kEnough ? lines.size() - kEnough : 0;
  for (std::size_t i = skip; i < lines.size(); ++i) clean.push_back(printable(lines[i]));
  const std::string text = join(clean, "\n");
  return text.find_first_not_of(" \t\n") == std::string::npos ? "" : last_lines(text);
}

}  // namespace

std::optional<int> first_failing_rank(const std::string& text) {
  std::optional<int> rank;
  bool root_cause = false;
  for (const std::string& line : lines_of(text)) {
    if (line.find("Root Cause (first observed failure)") != std::string::npos) root_cause = true;
    const bool names_rank = line.find("  rank ") != std::string::npos && line.find("(local_rank") != std::string::npos;
    if (root_cause && names_rank) return integer_after(line, ": ");
    if (rank) continue;
    // Open MPI: "mpirun noticed that process rank 3 with PID 0 on node n1 exited on signal 9 (Killed)."
    if (line.find("noticed that process rank") != std::string::npos) rank = integer_after(line, "process rank");
    // Slurm: "srun: error: n1: task 3: Exited with exit code 1"
    if (line.find("srun: error:") != std::string::npos) rank = integer_after(line, ": task ");
  }
  return rank;
}

std::string failure_text(const std::string& standard_output, const std::string& standard_error) {
  const std::vector<std::string> err = lines_of(standard_error);
  const std::vector<std::string> out = lines_of(standard_output);
  std::optional<int> rank = first_failing_rank(standard_error);
  if (!rank) rank = first_failing_rank(standard_output);
  if (!rank) rank = first_raising_rank(err);
  if (!rank) rank = first_raising_rank(out);
  if (rank) {
    for (const std::vector<std::string>* lines : {&err, &out}) {
      const std::string text = ending_of(lines_of_rank(*lines, *rank));
      if (!text.empty()) return "rank " + std::to_string(*rank) + ":\n" + text;
    }
  }
  const std::string text = ending_of(before_the_report(err));
  return text.empty() ? ending_of(out) : text;
}

namespace {

constexpr std::size_t kLineLength = 1000;

struct Sign {
  std::string_view text;
  std::string_view also = "";  // must occur in the same line
};

// Each sign is followed by the program that prints it.
constexpr std::array kSigns = {
    // PyTorch, c10/core/DeviceCachingAllocator and python exceptions: torch.cuda.OutOfMemoryError (1.13 to 2.4),
    // torch.OutOfMemoryError (2.5 on), torch.xpu too.
    Sign{"OutOfMemoryError"},
    Sign{"CUDA out of memory"},                      // PyTorch, c10/cuda/CUDACachingAllocator.cpp
    Sign{"HIP out of memory"},                       // the same file, converted for ROCm
    Sign{"XPU out of memory"},                       // PyTorch, c10/xpu/XPUCachingAllocator.cpp
    Sign{"NPU out of memory"},                       // torch_npu, NPUCachingAllocator.cpp
    Sign{"MPS backend out of memory"},               // PyTorch, aten/src/ATen/mps/MPSAllocator.mm
    Sign{" out of memory", "Tried to allocate"},     // the same allocator for other devices
    Sign{"CUDA error: out of memory"},               // PyTorch, C10_CUDA_CHECK of cudaErrorMemoryAllocation
    Sign{"HIP error: out of memory"},                // the same for ROCm
    Sign{" driver error: out of memory"},            // PyTorch, C10_CUDA_DRIVER_CHECK: CUDA driver error
    Sign{"driver error:out of memory"},              // CANN's run-time (Ascend)
    Sign{"driver error:out of memory"},              // CANN's run-time (Ascend)
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

// A collective took longer than its process group allows.
constexpr std::array kTimeoutSigns = {
    Sign{"Watchdog caught collective operation timeout"},       // PyTorch, ProcessGroupNCCL.cpp, 1.9 on
    Sign{"watchdog got stuck for", "without making progress"},  // the same: its heartbeat monitor
    Sign{"Timed out waiting", "operation to complete"},         // gloo, transport/tcp/unbound_buffer.cc
    Sign{"Caught collective operation timeout"},                // PyTorch before 1.9
};

constexpr std::string_view kDiskFull = "No space left on device";  // strerror(ENOSPC) of glibc

// /dev/shm is too small for what ranks and data loaders exchange there.
constexpr std::array kSharedMemorySigns = {
    Sign{"insufficient shared memory"},                 // PyTorch, torch/csrc/DataLoader.cpp
    Sign{"out of shared memory"},                       // PyTorch, torch/utils/data/_utils/signal_handling.py
    Sign{"unable to write to file </torch_"},           // PyTorch, aten/src/ATen/MapAllocator.cpp
    Sign{"unable to allocate shared memory(shm)"},      // the same, later
    Sign{"/dev/shm", kDiskFull},                        // NCCL, src/misc/shmutils.cc, and others
    Sign{"rror while creating shared memory segment"},  // NCCL, src/misc/shmutils.cc
};

template <class Signs>
bool contains_one(std::string_view line, const Signs& signs) {
  return std::any_of(signs.begin(), signs.end(), [&](const Sign& sign) {
    return line.find(sign.text) != std::string_view::npos && line.find(sign.also) != std::string_view::npos;
  });
}

bool is_memory_sign(std::string_view line) {
  // PyTorch also prints this after a collective has timed out; the size in the message is then garbage.
  // https://github.com/NVIDIA/nccl/issues/1284
  if (line.find("more than 1EB") != std::string_view::npos) return false;
  return contains_one(line, kSigns);
}

// Returns the beginning of the first line for which `holds` returns true.
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
  constexpr double kMost = 1e18;  // an exabyte; no memory is larger
  if (!unit || !(number * *unit >= 0.0 && number * *unit < kMost)) return std::nullopt;
  return Bytes{std::llround(number * *unit)};
}

}  // namespace

std::optional<Bytes> requested_in(const std::string& line) {
  for (const std::string_view word : {"allocate", "allocating"}) {
    for (std::size_t at = line.find(word); at != std::string::npos; at = line.find(word, at + 1)) {
      const std::optional<Bytes> size = size_at(std::string_view(line).substr(at + word.size()));
      if (size) return size;
    }
  }
  return std::nullopt;
}

std::optional<MemoryComplaint> find_memory_complaint(const std::string& text, const std::vector<Pattern>& patterns) {
  SearchLimit limit;
  const auto line = first_line(text, [&](const std::string& candidate) {
    const auto matches = [&](const Pattern& pattern) { return pattern.search(candidate, limit).has_value(); };
    return is_memory_sign(candidate) || std::any_of(patterns.begin(), patterns.end(), matches);
  });
  return line ? std::optional(MemoryComplaint{*line, requested_in(*line)}) : std::nullopt;
}

std::optional<MemoryComplaint> find_memory_words(const std::string& text) { return find_memory_complaint(text, {}); }

bool tells_of_signal(int exit_code, const std::string& text, int signal) {
  constexpr int kShells = 128;    // they add it to a signal's number
  constexpr int kUnsigned = 256;  // sys.exit(-9) of DeepSpeed's launcher
  if (exit_code == kShells + signal || exit_code == kUnsigned - signal) return true;
  const std::string number = std::to_string(signal);
  struct Report {
    std::string text;  // no digit follows
    std::string_view also = "";
  };
  const std::array<Report, 7> reports = {{
      {"exits with return code = -" + number},                             // DeepSpeed's launcher
      {"exits with return code = " + std::to_string(kUnsigned - signal)},  // the same, as an unsigned exit code
      {"failed (exitcode: -" + number},               // torchrun, elastic/multiprocessing/api.py: the first to fail
      {"exited on signal " + number},                 // Open MPI's mpirun: process rank 3 ... exited on signal 9
      {"EXIT CODE: " + number},                       // MPICH's hydra: KILLED BY SIGNAL: 9
      {": " + number + ">.", "died with <Signals."},  // accelerate, by Python's CalledProcessError
      {std::string("killed by signal: ") + ::strsignal(signal)},  // PyTorch: DataLoader worker (pid 7) is ...
  }};
  const auto line = first_line(text, [&](const std::string& candidate) {
    return std::any_of(reports.begin(), reports.end(), [&](const Report& report) {
      const std::size_t at = candidate.find(report.text);
      if (at == std::string::npos || candidate.find(report.also) == std::string::npos) return false;
      const char after = (candidate + " ")[at + report.text.size()];
      return after < '0' || after > '9';
    });
  });
  return line.has_value();
}

namespace {

// Returns the first line for which `holds` returns true, unless a rank raised an exception of its own that does not say
// so: it counts more than what the ranks that waited for it say, and than a warning.
template <class Holds>
std::optional<std::string> line_of_the_end(const std::string& text, const Holds& holds) {
  auto line = first_line(text, holds);
  const auto cause = line ? cause_of_failure(text) : std::nullopt;
  const bool is_the_end =
      !cause || is_consequence(*cause) || cause->type == "DistBackendError" || first_line(cause->text(), holds);
  return is_the_end ? line : std::nullopt;
}

}  // namespace

std::optional<std::string> find_collective_timeout(const std::string& text) {
  return line_of_the_end(text, [](const std::string& line) { return contains_one(line, kTimeoutSigns); });
}

std::optional<std::string> find_shortage(const std::string& text) {
  if (const auto line = line_of_the_end(text, [](const auto& one) { return contains_one(one, kSharedMemorySigns); })) {
    return "shared memory (/dev/shm) is too small, in a container raise it (docker run --shm-size 16g): " +
           printable(*line);
  }
  const auto line = line_of_the_end(text, [](const auto& one) { return one.find(kDiskFull) != std::string::npos; });
  return line ? std::optional("a disk is full: " + printable(*line)) : std::nullopt;
}

namespace {

// Each is followed by the program that prints it.
constexpr std::array kRefusals = {
    Sign{"unrecognized arguments"},            // argparse
    Sign{"o such option"},                     // click, typer, optparse
    Sign{"not used by the HfArgumentParser"},  // transformers
    Sign{"Unknown command line flag"},         // absl
    Sign{"unrecognized option"},               // getopt
    Sign{"Unrecognized options"},              // tyro
};

// "--gradient-checkpointing=True" -> "gradient_checkpointing"
std::string plain_option(std::string_view word) {
  const std::size_t begin = std::min(word.find_first_not_of('-'), word.size());
  std::string name(word.substr(begin, word.find('=') == std::string_view::npos ? word.npos : word.find('=') - begin));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// "--max_steps", or "max_steps=" of a word key=value; "" if no word is it.
std::string spelled_option(const std::vector<std::string>& words, const std::string& name) {
  for (const std::string& word : words) {
    const bool is_flag = word.rfind('-', 0) == 0;
    const bool is_key = !is_flag && word.find('=') != std::string::npos;
    if ((is_flag || is_key) && plain_option(word) == name) return is_flag ? "--" + name : name + "=";
  }
  return "";
}

}  // namespace

std::optional<std::string> refused_addition(const std::string& text, const std::vector<std::string>& given,
                                            const std::vector<std::string>& own) {
  const auto line = first_line(text, [](const std::string& candidate) { return contains_one(candidate, kRefusals); });
  if (!line) return std::nullopt;
  constexpr const char* kNameEnds = " =,'\"[](){}";
  for (std::size_t at = 0; at < line->size(); at = line->find_first_of(kNameEnds, at)) {
    at = line->find_first_not_of(kNameEnds, at);
    if (at == std::string::npos) break;
    const std::string word = line->substr(at, line->find_first_of(kNameEnds, at) - at);
    const std::string name = plain_option(word);
    const std::string spelled = name.empty() ? "" : spelled_option(given, name);
    if (!spelled.empty() && spelled_option(own, name).empty()) return spelled;
  }
  return std::nullopt;
}

}  // namespace krigtune::trial
