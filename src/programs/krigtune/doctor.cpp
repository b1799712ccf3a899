// krigtune doctor: reports what this machine has, what is missing, and what that costs.
#include "programs/krigtune/doctor.h"

#include <fmt/format.h>
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
#include "machine/environment_checks.h"
#include "programs/krigtune/doctor_measure.h"
#include "programs/krigtune/doctor_slurm.h"
#include "programs/krigtune/document.h"
#include "runner/replay.h"

namespace krigtune::cli {
namespace {

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
  return {"CPU", Health::kWarn, what, "CPU ranks share one core: their step times say little about real ones"};
}

Finding memory() {
  const Bytes total{static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE)};
  return {"memory", Health::kOk, to_string(total), ""};
}

Finding gpu(const Console& console) {
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
  const std::string missing = engine::no_cuda_reason(runner::find_bench(console.program));
  if (missing.empty()) return {"GPU", Health::kOk, what, ""};
  return {"GPU", Health::kWarn, what, missing + "; the GPUs are not used"};
}

Finding cuda_engine(const Console& console) {
  constexpr const char* kName = "CUDA engine";
  const std::filesystem::path bench = runner::find_bench(console.program);
  if (const std::string missing = engine::no_cuda_reason(bench); !missing.empty()) {
    return {kName, Health::kSkip, missing,
            "needed only to train on GPUs (docs/cuda.md); with CUDA and NCCL from PyPI, 1.3 GB:\n"
            "  cmake --preset release $(scripts/cuda-from-pypi ~/.cache/krigtune/cuda)\n"
            "  cmake --build --preset release"};
  }
  std::error_code none;
  const std::filesystem::path program = engine::cuda_program_beside(bench);
  if (!std::filesystem::exists(program, none)) {
    return {
        kName, Health::kSkip, fmt::format("there is no {}", program.string()),
        "needed only to train on GPUs; install the package krigtune-cuda, or put the program beside krigtune-bench"};
  }
  const std::string failure = engine::cuda_start_failure(program);
  if (failure.empty()) return {kName, Health::kOk, program.string(), ""};
  return {kName, Health::kWarn, failure, "GPUs are not used; docs/cuda.md says where its libraries are looked for"};
}

Finding program(const std::string& name, const char* binary, const std::string& cost) {
  const std::filesystem::path path = find_program(binary, {}, program_search_path());
  if (path.empty()) return {name, Health::kSkip, fmt::format("no {} on PATH", binary), cost};
  return {name, Health::kOk, path.string(), ""};
}

Finding nccl(const machine::MachineView& view) {
  if (!view.nccl_version) return {"NCCL", Health::kSkip, "no libnccl.so.2", "needed for several GPUs only"};
  const int version = *view.nccl_version;
  if (version == 0) return {"NCCL", Health::kOk, "libnccl.so.2", ""};
  return {"NCCL", Health::kOk, fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100), ""};
}

Finding bench(const Console& console) {
  const std::filesystem::path path = runner::find_bench(console.program);
  if (!path.empty()) return {"krigtune-bench", Health::kOk, path.string(), "", true};
  return {"krigtune-bench", Health::kFail, "neither beside krigtune nor on PATH",
          "no trial can run, only replays of tables; build it: ninja krigtune-bench", true};
}

}  // namespace

int count_gpus() { return engine::probe_gpus().gpus; }

std::vector<Finding> examine(const Console& console) {
  const machine::MachineView view = machine::this_machine(console.clock);
  std::vector<Finding> findings = {
      bench(console),
      cpu(),
      memory(),
      gpu(console),
      cuda_engine(console),
      program("CUDA toolkit", "nvcc", "needed only to build for GPUs"),
      nccl(view),
      program("MPI", "mpirun", "needed only for ranks on several machines"),
      examine_slurm(console),
      program("DeepSpeed", "deepspeed", "needed only to train with ds_config_optimal.json")};
  const std::vector<Finding> environment = machine::examine_environment(view);
  findings.insert(findings.end(), environment.begin(), environment.end());
  return findings;
}

namespace {

void declare_doctor(boost::program_options::options_description& options) { declare_measuring(options); }

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
  check_measuring(context.arguments);
  if (context.arguments.flag("measure")) return measure_rates_of_machine(context);
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
          "Checks what this machine has and what a missing part costs",
          "Each line is OK, WARN, FAIL or SKIP (absent, and not needed here). Exit code 3: trials "
          "cannot run on this machine at all. With --measure it measures how fast matrix products, "
          "copies and collectives are, on one process or on all ranks under torchrun, srun or mpirun, "
          "in the columns of nccl-tests, and reports what is clearly slower than plan expects. See "
          "docs/doctor.md.",
          declare_doctor,
          doctor};
}

}  // namespace krigtune::cli
