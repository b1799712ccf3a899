// Finds what slows jobs down in the environment, in /proc and /sys, and in the output of nvidia-smi. Sources:
//
//   NCCL_* variables        NCCL user guide, "Environment Variables"
//   TORCH_*, CUDA_*         PyTorch documentation, "Distributed communication package"; CUDA programming guide
//   throttle reasons        nvml.h, nvmlClocksEventReason*
//   topologies              nvidia-smi topo -m prints their legend: NV#, PIX, PXB, PHB, NODE, SYS
//   /sys/class/net, cpufreq Documentation/ABI and admin-guide/pm/cpufreq.rst of the Linux kernel
//   /dev/shm                DeepSpeed's ds_report warns below 512 MiB; NCCL user guide, "Troubleshooting"
#include "machine/environment_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <sstream>

#include "core/text.h"
#include "core/units.h"

namespace krigtune::machine {
namespace {

Finding fine(const std::string& what) { return {"", Health::kOk, what, ""}; }
Finding warning(const std::string& what, const std::string& cost) { return {"", Health::kWarn, what, cost}; }
Finding skipped(const std::string& what) { return {"", Health::kSkip, what, ""}; }

double number_of(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

bool has_infiniband(const MachineView& view) { return !view.entries("sys/class/infiniband").empty(); }

// Variables:

/// A variable whose value can slow jobs down.
struct VariableRule {
  const char* name;
  bool (*hurts)(const std::string& value, const MachineView& view);
  const char* cost;
  Slowness explains;
  Slowness also;  ///< a second one; equal to `explains` if there is none
};

bool is_on(const std::string& value, const MachineView& /*view*/) { return !value.empty() && value != "0"; }
bool is_off(const std::string& value, const MachineView& /*view*/) { return value == "0"; }
bool is_set(const std::string& value, const MachineView& /*view*/) { return !value.empty(); }
bool is_on_beside_infiniband(const std::string& value, const MachineView& view) {
  return is_on(value, view) && has_infiniband(view);
}
bool names_sockets(const std::string& value, const MachineView& view) {
  return lower_case(value) == "socket" && has_infiniband(view);
}
bool is_least_level(const std::string& value, const MachineView& /*view*/) {
  return lower_case(value) == "loc" || value == "0";
}
bool is_verbose(const std::string& value, const MachineView& /*view*/) {
  const std::string word = lower_case(value);
  return word == "info" || word == "trace";
}
bool is_detail(const std::string& value, const MachineView& /*view*/) { return lower_case(value) == "detail"; }
bool is_few(const std::string& value, const MachineView& /*view*/) {
  constexpr double kFew = 4.0;
  return number_of(value) > 0.0 && number_of(value) < kFew;
}

constexpr std::array kVariableRules = {
    VariableRule{"NCCL_P2P_DISABLE", is_on,
                 "GPUs of a node exchange through host memory instead of NVLink or PCIe; unset it", Slowness::kNode,
                 Slowness::kNode},
    VariableRule{"NCCL_P2P_LEVEL", is_least_level, "GPUs of a node exchange through host memory; unset it",
                 Slowness::kNode, Slowness::kNode},
    VariableRule{"NCCL_SHM_DISABLE", is_on,
                 "where P2P is not possible GPUs of a node exchange over the network; unset it", Slowness::kNode,
                 Slowness::kNode},
    VariableRule{"NCCL_NVLS_ENABLE", is_off, "all-reduces do not use NVLink SHARP where the switches have it; unset it",
                 Slowness::kNode, Slowness::kNode},
    VariableRule{"NCCL_IB_DISABLE", is_on_beside_infiniband,
                 "nodes exchange by TCP beside an InfiniBand or RoCE card; unset it", Slowness::kNetwork,
                 Slowness::kNetwork},
    VariableRule{"NCCL_NET", names_sockets, "nodes exchange by TCP beside an InfiniBand or RoCE card; unset it",
                 Slowness::kNetwork, Slowness::kNetwork},
    VariableRule{"NCCL_NET_GDR_LEVEL", is_least_level,
                 "the network card does not read GPU memory (GPUDirect RDMA is off); unset it", Slowness::kNetwork,
                 Slowness::kNetwork},
    VariableRule{"NCCL_ALGO", is_set,
                 "NCCL may not choose its algorithm by size and topology; unset it unless you measured it",
                 Slowness::kNode, Slowness::kNetwork},
    VariableRule{"NCCL_PROTO", is_set,
                 "NCCL may not choose its protocol by size and topology; unset it unless you measured it",
                 Slowness::kNode, Slowness::kNetwork},
    VariableRule{"NCCL_MAX_NCHANNELS", is_few, "so few channels do not use the links to the full; unset it",
                 Slowness::kNode, Slowness::kNetwork},
    VariableRule{"NCCL_MAX_CTAS", is_few, "so few blocks do not use the links to the full; unset it", Slowness::kNode,
                 Slowness::kNetwork},
    VariableRule{"NCCL_DEBUG", is_verbose, "NCCL writes lines while it works (TRACE: at every call); set it to WARN",
                 Slowness::kHost, Slowness::kHost},
    VariableRule{"NCCL_BLOCKING_WAIT", is_on, "the program waits for every collective; unset it", Slowness::kHost,
                 Slowness::kHost},
    VariableRule{"TORCH_NCCL_BLOCKING_WAIT", is_on, "the program waits for every collective; unset it", Slowness::kHost,
                 Slowness::kHost},
    VariableRule{"TORCH_DISTRIBUTED_DEBUG", is_detail, "PyTorch checks every collective on all ranks first; unset it",
                 Slowness::kHost, Slowness::kNetwork},
    VariableRule{"CUDA_LAUNCH_BLOCKING", is_on, "the program waits for every kernel, so nothing overlaps; unset it",
                 Slowness::kHost, Slowness::kNode},
    VariableRule{"PYTORCH_NO_CUDA_MEMORY_CACHING", is_on, "every tensor is allocated by the driver; unset it",
                 Slowness::kHost, Slowness::kHost}};

std::vector<Finding> look_at_variables(const MachineView& view) {
  std::vector<Finding> findings;
  for (const VariableRule& rule : kVariableRules) {
    const auto value = view.variable(rule.name);
    if (!value || !rule.hurts(*value, view)) continue;
    findings.push_back(warning(fmt::format("{}={}", rule.name, *value), rule.cost));
    findings.back().explains = {rule.explains, rule.also};
  }
  if (findings.empty()) findings.push_back(fine("none of NCCL, CUDA and PyTorch that slows a job down is set"));
  return findings;
}

// Network:

/// An interface that is up, other than loopback.
struct Interface {
  std::string name;
  double bits_per_s = 0.0;  ///< 0: not stated
  int mtu = 0;
};

std::vector<Interface> interfaces_of(const MachineView& view) {
  constexpr double kMegabit = 1e6;
  std::vector<Interface> all;
  for (const std::string& name : view.entries("sys/class/net")) {
    const std::filesystem::path folder = std::filesystem::path("sys/class/net") / name;
    const std::string state = view.line(folder / "operstate");
    if (name == "lo" || (state != "up" && state != "unknown")) continue;
    all.push_back({name, std::max(0.0, kMegabit * number_of(view.line(folder / "speed"))),
                   static_cast<int>(number_of(view.line(folder / "mtu")))});
  }
  return all;
}

// "eth0,ens" are prefixes, "=eth0" is a complete name, and "^docker" excludes.
bool selects(const std::string& pattern, const std::string& name) {
  std::string list = pattern;
  const bool excludes = list.starts_with("^");
  if (excludes) list.erase(0, 1);
  const bool whole = list.starts_with("=");
  if (whole) list.erase(0, 1);
  bool found = false;
  std::istringstream in(list);
  for (std::string one; std::getline(in, one, ',');) found = found || (whole ? name == one : name.starts_with(one));
  return found != excludes;
}

// The interfaces that NCCL uses for its sockets; without the variable all except lo and docker's.
std::vector<Finding> look_at_socket_interface(const MachineView& view) {
  const auto pattern = view.variable("NCCL_SOCKET_IFNAME");
  std::vector<Interface> all = interfaces_of(view);
  double fastest = 0.0;
  for (const Interface& one : all) fastest = std::max(fastest, one.bits_per_s);
  std::erase_if(all, [&](const Interface& one) { return !selects(pattern.value_or("^lo,docker"), one.name); });
  if (pattern && all.empty()) {
    const bool own = selects(*pattern, "lo");
    return {warning(fmt::format("NCCL_SOCKET_IFNAME={}", *pattern),
                    own ? "only the loopback interface: other nodes cannot be reached by it"
                        : "no interface that is up has such a name: compare with ip link")};
  }
  if (pattern) {
    for (const Interface& one : all) {
      if (one.bits_per_s >= fastest || one.bits_per_s == 0.0) return {fine("NCCL_SOCKET_IFNAME=" + *pattern)};
    }
    return {warning(fmt::format("NCCL_SOCKET_IFNAME={}", *pattern),
                    "another interface is faster; without InfiniBand nodes exchange over the one that is named")};
  }
  if (all.size() <= 1 || has_infiniband(view)) return {};
  std::vector<std::string> names;
  for (const Interface& one : all) names.push_back(one.name);
  return {warning(fmt::format("NCCL_SOCKET_IFNAME is not set, and there are {}", join(names, ", ")),
                  "with several nodes NCCL uses all of them, the slow ones too; name the fast one")};
}

std::vector<Finding> look_at_mtu(const MachineView& view) {
  constexpr double kFast = 10e9;
  constexpr int kStandardMtu = 1500;
  std::vector<Finding> findings;
  bool any = false;
  for (const Interface& one : interfaces_of(view)) {
    if (one.bits_per_s < kFast) continue;
    any = true;
    if (one.mtu > kStandardMtu) continue;
    findings.push_back(
        warning(fmt::format("{} of {:g} Gbit/s has an MTU of {}", one.name, one.bits_per_s / 1e9, one.mtu),
                "TCP between nodes takes more of the processor than with jumbo frames (9000), which all\nswitches "
                "between the nodes have to know; irrelevant if InfiniBand is used"));
  }
  if (findings.empty() && any) findings.push_back(fine("jumbo frames on the fast interfaces"));
  return findings;
}

// GPUs:

std::vector<GpuState> gpus_of(const MachineView& view) {
  return parse_gpu_states(view.output(gpu_query()).value_or(""));
}

std::vector<Finding> look_at_clocks(const MachineView& view) {
  struct Reason {
    std::uint64_t bit;
    const char* words;
  };
  constexpr std::array kReasons = {Reason{0x2, "application clocks are set (nvidia-smi -rac resets them)"},
                                   Reason{0x4, "the power limit is reached"},
                                   Reason{0x8, "the hardware slows it down: power or temperature"},
                                   Reason{0x20, "it is hot"},
                                   Reason{0x40, "it is too hot"},
                                   Reason{0x80, "the power supply slows it down"}};
  std::vector<Finding> findings;
  const std::vector<GpuState> gpus = gpus_of(view);
  bool known = false;
  for (const GpuState& gpu : gpus) {
    known = known || gpu.throttle_reasons.has_value();
    std::vector<std::string> words;
    for (const Reason& reason : kReasons) {
      if ((gpu.throttle_reasons.value_or(0) & reason.bit) != 0U) words.emplace_back(reason.words);
    }
    if (words.empty()) continue;
    findings.push_back(warning(fmt::format("GPU {} has its clocks lowered: {}", gpu.index, join(words, "; ")),
                               "its kernels take longer, and the other GPUs of the job wait for it"));
  }
  if (findings.empty() && known) findings.push_back(fine("no GPU has its clocks lowered now"));
  return findings;
}

// An idle GPU lowers the generation of its link to save power, but keeps its width.
std::vector<Finding> look_at_pcie(const MachineView& view) {
  constexpr std::uint64_t kIdle = 0x1;
  std::vector<Finding> findings;
  bool known = false;
  for (const GpuState& gpu : gpus_of(view)) {
    const bool narrow = gpu.pcie_width && gpu.pcie_width_max && *gpu.pcie_width < *gpu.pcie_width_max;
    const bool idle = (gpu.throttle_reasons.value_or(kIdle) & kIdle) != 0U;
    const bool old = !idle && gpu.pcie_gen && gpu.pcie_gen_max && *gpu.pcie_gen < *gpu.pcie_gen_max;
    known = known || gpu.pcie_width.has_value();
    if (!narrow && !old) continue;
    findings.push_back(warning(
        fmt::format("GPU {} is linked by PCIe {} x{}, and could be by PCIe {} x{}", gpu.index, gpu.pcie_gen.value_or(0),
                    gpu.pcie_width.value_or(0), gpu.pcie_gen_max.value_or(0), gpu.pcie_width_max.value_or(0)),
        "copies to the host, and collectives that go over PCIe, take longer; look at the slot, the\n"
        "riser and the BIOS"));
  }
  if (findings.empty() && known) findings.push_back(fine("all GPUs have the PCIe link that they can have"));
  return findings;
}

std::vector<Finding> look_at_mixed_gpus(const MachineView& view) {
  std::set<std::string> names;
  for (const GpuState& gpu : gpus_of(view)) names.insert(gpu.name);
  if (names.size() < 2) return {};
  const std::vector<std::string> list(names.begin(), names.end());
  return {warning(join(list, " and "),
                  "a job over all of them is as fast as the slowest; CUDA_VISIBLE_DEVICES chooses those of one kind")};
}

std::string pair_text(const std::pair<std::string, std::string>& pair) { return pair.first + "-" + pair.second; }

std::vector<Finding> look_at_p2p(const MachineView& view) {
  const auto cells = parse_gpu_matrix(view.output({"nvidia-smi", "topo", "-p2p", "r"}).value_or(""));
  if (cells.empty()) return {};
  for (const auto& [pair, word] : cells) {
    if (word == "OK") continue;
    return {warning(fmt::format("GPUs cannot read one another's memory: {} between {}", word, pair_text(pair)),
                    "they exchange through host memory; look at the BIOS (ACS and IOMMU off) and at virtualisation")};
  }
  return {fine("GPUs read one another's memory")};
}

std::vector<Finding> look_at_topology(const MachineView& view) {
  const auto cells = parse_gpu_matrix(view.output({"nvidia-smi", "topo", "-m"}).value_or(""));
  if (cells.empty()) return {};
  bool nvlink = true;
  for (const auto& [pair, word] : cells) nvlink = nvlink && word.starts_with("NV");
  if (nvlink) return {fine("all GPUs of this node are joined by NVLink")};
  for (const auto& [pair, word] : cells) {
    if (word != "SYS" && word != "NODE") continue;
    return {warning(fmt::format("{} is between {}", word, pair_text(pair)),
                    word == "SYS"
                        ? "they exchange from one processor socket to the other; keep tensor parallelism among GPUs\n"
                          "that are nearer (nvidia-smi topo -m)"
                        : "they exchange from one PCIe host bridge to the other; keep tensor parallelism among GPUs\n"
                          "that are nearer (nvidia-smi topo -m)")};
  }
  return {fine("GPUs of this node share PCIe switches or a host bridge")};
}

// A network card reads GPU memory through nvidia_peermem, or through DMA-BUF with the open kernel modules (NCCL user
// guide, "GPU Direct").
std::vector<Finding> look_at_gpudirect(const MachineView& view) {
  if (!has_infiniband(view) || gpus_of(view).empty()) return {};
  std::istringstream modules(view.text("proc/modules"));
  for (std::string line; std::getline(modules, line);) {
    const std::string name = line.substr(0, line.find(' '));
    if (name == "nvidia_peermem" || name == "nv_peer_mem") return {fine(name + " is loaded")};
  }
  if (view.text("proc/driver/nvidia/version").find("Open Kernel Module") != std::string::npos) {
    return {fine("the driver's open kernel modules offer DMA-BUF")};
  }
  return {
      warning("nvidia_peermem is not loaded", "between nodes data goes through host memory; modprobe nvidia-peermem")};
}

// NCCL versions that were reported to be slow, with the report.
std::vector<Finding> look_at_nccl_version(const MachineView& view) {
  struct SlowVersion {
    int first, last;  ///< 10000 major + 100 minor + patch
    const char* cost;
  };
  constexpr std::array kSlow = {
      // NVIDIA/nccl issue 770: ten times slower than 2.14.3 and 2.15.5 on eight A40 with NVLink bridges.
      SlowVersion{21602, 21602,
                  "ten times slower than 2.15.5 on GPUs joined by NVLink bridges (NVIDIA/nccl issue 770)"},
      // pytorch/pytorch issue 117748, awslabs/awsome-distributed-ai pull request 217.
      SlowVersion{
          21903, 21904,
          "all-reduces between nodes of H100 are slower by the algorithm NVLSTree (pytorch/pytorch issue 117748);\n"
          "NCCL_ALGO=^NVLSTree avoids it, 2.20.3 has it fixed"}};
  if (!view.nccl_version) return {};
  const int version = *view.nccl_version;
  for (const SlowVersion& slow : kSlow) {
    if (version < slow.first || version > slow.last) continue;
    return {warning(fmt::format("NCCL {}.{}.{}", version / 10000, version % 10000 / 100, version % 100), slow.cost)};
  }
  return {};
}

// The host:

std::vector<Finding> look_at_governor(const MachineView& view) {
  const std::filesystem::path folder = "sys/devices/system/cpu/cpu0/cpufreq";
  const std::string governor = view.line(folder / "scaling_governor");
  if (governor.empty())
    return {skipped("the kernel does not report it: a virtual machine, or clocks that the firmware controls")};
  const std::string driver = view.line(folder / "scaling_driver");
  // With these drivers "powersave" adapts the clock to the load.
  const bool follows_load = driver == "intel_pstate" || driver == "amd-pstate-epp";
  if (governor != "powersave" || follows_load) return {fine(fmt::format("{} ({})", governor, driver))};
  return {warning(fmt::format("{} ({})", governor, driver),
                  "the cores stay at their lowest clock; cpupower frequency-set -g performance")};
}

int local_ranks(const MachineView& view) {
  for (const char* name : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE"}) {
    if (const auto text = view.variable(name)) return std::max(1, static_cast<int>(number_of(*text)));
  }
  return 1;
}

// Reads "200000 100000" of cgroup v2: CPU microseconds per period of microseconds; "max" means no limit.
double cores_of_the_group(const MachineView& view) {
  const std::string line = view.line("sys/fs/cgroup/cpu.max");
  const std::size_t blank = line.find(' ');
  if (blank == std::string::npos || line.starts_with("max")) return static_cast<double>(view.cores);
  const double period = number_of(line.substr(blank + 1));
  return period > 0.0 ? number_of(line) / period : static_cast<double>(view.cores);
}

std::vector<Finding> look_at_cores(const MachineView& view) {
  constexpr double kMostOf = 0.95;
  const int ranks = local_ranks(view);
  const double share = static_cast<double>(view.cores) / ranks;
  std::vector<Finding> findings;
  const bool is_less = view.usable_cores < kMostOf * share;
  if (is_less) {
    findings.push_back(warning(
        fmt::format("this process may run on {} of {} cores{}", view.usable_cores, view.cores,
                    ranks > 1 ? fmt::format(", and {} ranks share the machine", ranks) : ""),
        "threads of one rank wait for one another: data loading, communication, offloaded optimizers; look at how it\n"
        "is bound (mpirun --bind-to none, srun --cpu-bind=none and --cpus-per-task, taskset)"));
  }
  const double allowed = cores_of_the_group(view);
  if (allowed < kMostOf * view.cores) {
    findings.push_back(
        warning(fmt::format("the control group allows {:.3g} of {} cores", allowed, view.cores),
                "threads are stopped when its share is used up; raise the limit (docker --cpus, Kubernetes\n"
                "limits)"));
  }
  if (findings.empty())
    findings.push_back(fine(fmt::format("this process may run on {} of {} cores", view.usable_cores, view.cores)));
  return findings;
}

std::vector<Finding> look_at_threads(const MachineView& view) {
  const auto text = view.variable("OMP_NUM_THREADS");
  const int ranks = local_ranks(view);
  if (!text) {
    if (ranks == 1) return {};
    return {warning(fmt::format("OMP_NUM_THREADS is not set, and {} ranks share the machine", ranks),
                    fmt::format("each starts a thread for every core; set it to {}", std::max(1, view.cores / ranks)))};
  }
  const int threads = std::max(1, static_cast<int>(number_of(*text)));
  if (threads * ranks > view.cores) {
    return {warning(
        fmt::format("OMP_NUM_THREADS={}, and {} on {}", threads, counted(ranks, "rank"), counted(view.cores, "core")),
        fmt::format("threads wait for cores; set it to {}", std::max(1, view.cores / ranks)))};
  }
  if (threads == 1 && view.cores / ranks > 1) {
    return {warning(
        "OMP_NUM_THREADS=1",
        fmt::format("what the host computes (offloaded optimizers, tokenising) has one thread a rank; torchrun sets\n"
                    "it so where it is not set; {} are possible",
                    view.cores / ranks))};
  }
  return {fine(fmt::format("OMP_NUM_THREADS={}", threads))};
}

std::vector<Finding> look_at_shared_memory(const MachineView& view) {
  constexpr std::int64_t kEnoughForNccl = 512LL << 20;
  if (!view.shm_bytes) return {skipped("there is no /dev/shm")};
  const std::string what = fmt::format("/dev/shm {}", to_string(Bytes{*view.shm_bytes}));
  if (*view.shm_bytes >= kEnoughForNccl) return {fine(what)};
  return {warning(
      what,
      "NCCL may fail between GPUs of one node, and data loaders with workers, too; in containers: --shm-size 1g")};
}

}  // namespace

std::vector<Finding> look_at_load(const MachineView& view) {
  const std::string line = view.line("proc/loadavg");
  if (line.empty()) return {};
  const double load = number_of(line);
  const std::string what =
      fmt::format("{:.3g} programs on average wanted one of {} cores in the last minute", load, view.cores);
  if (load < view.cores) return {fine(what)};
  return {
      warning(what,
              "other programs disturb measurements, which may then differ by a factor of two from run to run; wait\n"
              "until they have ended")};
}

std::vector<Check> environment_checks() {
  return {
      {"load", {Slowness::kHost, Slowness::kDevice, Slowness::kStraggler}, look_at_load},
      {"shared memory", {Slowness::kNode, Slowness::kHost}, look_at_shared_memory},
      {"cores", {Slowness::kHost, Slowness::kDevice, Slowness::kStraggler}, look_at_cores},
      {"threads", {Slowness::kHost, Slowness::kDevice}, look_at_threads},
      {"governor", {Slowness::kHost, Slowness::kStraggler}, look_at_governor},
      {"variables", {}, look_at_variables},
      {"NCCL sockets", {Slowness::kNetwork}, look_at_socket_interface},
      {"MTU", {Slowness::kNetwork}, look_at_mtu},
      {"NCCL version", {Slowness::kNode, Slowness::kNetwork}, look_at_nccl_version},
      {"GPU clocks", {Slowness::kDevice, Slowness::kStraggler}, look_at_clocks},
      {"GPU PCIe", {Slowness::kHost, Slowness::kNode}, look_at_pcie},
      {"GPU P2P", {Slowness::kNode}, look_at_p2p},
      {"GPU links", {Slowness::kNode}, look_at_topology},
      {"GPUDirect", {Slowness::kNetwork}, look_at_gpudirect},
      {"mixed GPUs", {Slowness::kStraggler, Slowness::kDevice}, look_at_mixed_gpus},
  };
}

std::vector<Finding> examine_environment(const MachineView& view) {
  std::vector<Finding> all;
  for (const Check& check : environment_checks()) {
    for (Finding& finding : check.look(view)) {
      finding.name = check.name;
      if (finding.health == Health::kWarn && finding.explains.empty()) finding.explains = check.explains;
      all.push_back(std::move(finding));
    }
  }
  return all;
}

std::vector<Finding> that_explain(const std::vector<Finding>& findings, const std::vector<Slowness>& kinds) {
  std::vector<Finding> explaining;
  std::copy_if(findings.begin(), findings.end(), std::back_inserter(explaining), [&](const Finding& finding) {
    return finding.health == Health::kWarn && std::find_first_of(finding.explains.begin(), finding.explains.end(),
                                                                 kinds.begin(), kinds.end()) != finding.explains.end();
  });
  return explaining;
}

}  // namespace krigtune::machine
