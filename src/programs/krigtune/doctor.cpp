// krigtune doctor: what this machine has, what it lacks, and what that costs.
#include "programs/krigtune/doctor.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <ostream>
#include <sstream>
#include <thread>

#include "core/files.h"
#include "core/processor.h"
#include "core/units.h"
#include "engine/gpu_probe.h"
#include "programs/krigtune/doctor_slurm.h"
#include "programs/krigtune/document.h"
#include "runner/replay.h"

namespace krigtune::cli {
namespace {

/// A shared library, opened only to look at it.
class Library {
 public:
  explicit Library(const char* name) : handle_(::dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {}
  ~Library() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  bool is_open() const { return handle_ != nullptr; }
  /// nullptr when it has no such function.
  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

 private:
  void* handle_;
};

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown model";
}

Finding cpu() {
  const unsigned cores = std::thread::hardware_concurrency();
  const std::string what = fmt::format("{} x {}, vector unit {}", cores, cpu_model(), to_string(chosen_vector_unit()));
  if (cores >= 2) return {"CPU", Health::kOk, what, ""};
  return {"CPU", Health::kWarn, what, "CPU ranks take turns on one core: their step times are no guide to real ones"};
}

Finding memory() {
  const Bytes total{static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE)};
  return {"memory", Health::kOk, to_string(total), ""};
}

Finding shared_memory() {
  constexpr std::int64_t kEnoughForNccl = 512LL << 20;  // as DeepSpeed's ds_report warns
  struct statvfs system {};
  if (::statvfs("/dev/shm", &system) != 0) return {"shared memory", Health::kSkip, "there is no /dev/shm", ""};
  const Bytes size{static_cast<std::int64_t>(system.f_blocks * system.f_frsize)};
  const std::string what = fmt::format("/dev/shm {}", to_string(size));
  if (size.count >= kEnoughForNccl) return {"shared memory", Health::kOk, what, ""};
  return {"shared memory", Health::kWarn, what, "NCCL may fail between GPUs of one node; in containers: --shm-size 1g"};
}

Finding gpu() {
  const std::string no_cost = "trials run on CPU ranks";
  const engine::GpuProbe probe = engine::probe_gpus();
  if (probe.gpus == 0 && !probe.broken) return {"GPU", Health::kSkip, probe.reason, no_cost};
  if (probe.gpus == 0) {
    return {"GPU", Health::kWarn, probe.reason,
            no_cost + "; compare the versions of the driver and of its kernel module (nvidia-smi)"};
  }
  const std::string memory = probe.memory_bytes > 0 ? fmt::format(" of {}", to_string(Bytes{probe.memory_bytes})) : "";
  const std::string what =
      fmt::format("{} x {}{}, driver for CUDA {}.{}", probe.gpus, probe.name.empty() ? "unnamed" : probe.name, memory,
                  probe.driver_version / 1000, probe.driver_version % 1000 / 10);
  const std::string missing = engine::no_cuda_reason();
  if (missing.empty()) return {"GPU", Health::kOk, what, ""};
  return {"GPU", Health::kWarn, what, missing + "; the GPUs are not used"};
}

Finding cuda_engine(const Console& console) {
  constexpr const char* kName = "CUDA engine";
  if (const std::string missing = engine::no_cuda_reason(); !missing.empty()) {
    return {kName, Health::kSkip, missing,
            "needed only to train on GPUs (docs/cuda.md); with CUDA and NCCL from PyPI, 1.3 GB:\n"
            "  cmake --preset release $(scripts/cuda-from-pypi ~/.cache/krigtune/cuda)\n"
            "  cmake --build --preset release"};
  }
  std::error_code none;
  const std::filesystem::path bench = std::filesystem::canonical(runner::find_bench(console.program), none);
  const std::filesystem::path program = bench.parent_path() / "krigtune-bench-cuda";
  if (!std::filesystem::exists(program, none)) {
    return {
        kName, Health::kSkip, fmt::format("there is no {}", program.string()),
        "needed only to train on GPUs; install the package krigtune-cuda, or put the program beside krigtune-bench"};
  }
  const std::string failure = engine::cuda_start_failure(program);
  if (failure.empty()) return {kName, Health::kOk, program.string(), ""};
  return {kName, Health::kWarn, failure, fmt::format("GPUs are not used; {}", engine::kCudaStartMend)};
}

Finding program(const std::string& name, const char* binary, const std::string& cost) {
  const std::filesystem::path path = find_program(binary, {}, program_search_path());
  if (path.empty()) return {name, Health::kSkip, fmt::format("no {} on PATH", binary), cost};
  return {name, Health::kOk, path.string(), ""};
}

Finding nccl() {
  const Library library("libnccl.so.2");
  if (!library.is_open()) return {"NCCL", Health::kSkip, "no libnccl.so.2", "needed for several GPUs only"};
  auto* get_version = library.find<int(int*)>("ncclGetVersion");
  int version = 0;
  if (get_version == nullptr || get_version(&version) != 0) return {"NCCL", Health::kOk, "libnccl.so.2", ""};
  // 10000 major + 100 minor + patch since 2.9 (nccl.h, NCCL_VERSION).
  return {"NCCL", Health::kOk, fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100), ""};
}

Finding bench(const Console& console) {
  const std::filesystem::path path = runner::find_bench(console.program);
  if (!path.empty()) return {"krigtune-bench", Health::kOk, path.string(), "", true};
  return {"krigtune-bench", Health::kFail, "neither beside krigtune nor on PATH",
          "no trial can run, only replays of tables; build it: ninja krigtune-bench", true};
}

}  // namespace

const char* to_string(Health health) {
  switch (health) {
    case Health::kOk:
      return "OK";
    case Health::kWarn:
      return "WARN";
    case Health::kFail:
      return "FAIL";
    case Health::kSkip:
      return "SKIP";
  }
  return "";
}

int count_gpus() { return engine::probe_gpus().gpus; }

std::vector<Finding> examine(const Console& console) {
  return {bench(console),
          cpu(),
          memory(),
          shared_memory(),
          gpu(),
          cuda_engine(console),
          program("CUDA toolkit", "nvcc", "needed only to build for GPUs"),
          nccl(),
          program("MPI", "mpirun", "needed only for ranks on several machines"),
          examine_slurm(console),
          program("DeepSpeed", "deepspeed", "needed only to train with ds_config_optimal.json")};
}

namespace {

void declare_doctor(boost::program_options::options_description& /*options*/) {}

const char* color_of(Health health) {
  switch (health) {
    case Health::kOk:
      return "\033[32m";
    case Health::kWarn:
      return "\033[33m";
    case Health::kFail:
      return "\033[31m";
    case Health::kSkip:
      return "\033[2m";
  }
  return "";
}

std::string line_of(const Finding& finding, bool colors) {
  const std::string word = fmt::format("{:<4}", to_string(finding.health));
  std::string text = colors ? color_of(finding.health) + word + "\033[0m" : word;
  text += fmt::format("  {:<15}  {}", finding.name, finding.what);
  std::istringstream costs(finding.cost);
  for (std::string line; std::getline(costs, line);) text += fmt::format("\n{:>23}{}", "", line);
  return text + "\n";
}

int doctor(const Context& context) {
  const std::vector<Finding> findings = examine(context.console);
  bool bench_is_missing = false;
  Json list = Json::array();
  for (const Finding& finding : findings) {
    bench_is_missing = bench_is_missing || (finding.health == Health::kFail && finding.is_needed);
    list.push_back({{"name", finding.name},
                    {"status", to_string(finding.health)},
                    {"what", finding.what},
                    {"cost", finding.cost}});
  }
  if (context.arguments.flag("json")) {
    Json json = new_document("doctor");
    json["checks"] = list;
    print(context, json);
  } else {
    const bool colors = context.console.colors && context.console.out_is_terminal;
    for (const Finding& finding : findings) context.console.out << line_of(finding, colors);
  }
  return bench_is_missing ? ExitCode::kEnvironment : ExitCode::kDone;
}

}  // namespace

Command doctor_command() {
  return {"doctor",
          "",
          "Shows what this machine has, what it lacks and what that costs",
          "Each line is OK, WARN, FAIL or SKIP (not here, and not needed for what works without). Exit code 3\n"
          "where trials cannot run at all.",
          declare_doctor,
          doctor};
}

}  // namespace krigtune::cli
