// Properties of the environment that slow jobs down: each check on a synthetic machine in a folder.
#include "machine/environment_checks.h"

#include <gtest/gtest.h>

#include <map>

#include "trial/temporary_directory.h"

namespace krigtune::environment_checks_test {

using machine::Finding;
using machine::Health;
using machine::Slowness;

/// A machine in a folder. By default nothing is wrong with it, and there is little to report.
class EnvironmentChecks : public testing::Test {
 protected:
  EnvironmentChecks() {
    view_.root = directory_.path();
    view_.variable = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional(found->second);
    };
    view_.output = [this](const std::vector<std::string>& argv) -> std::optional<std::string> {
      std::string call;
      for (const std::string& word : argv) call += (call.empty() ? "" : " ") + word;
      for (const auto& [part, text] : outputs_) {
        if (call.find(part) != std::string::npos) return text;
      }
      return std::nullopt;
    };
    view_.cores = 16;
    view_.usable_cores = 16;
    view_.shm_bytes = std::int64_t{16} << 30;
  }

  void file(const std::filesystem::path& path, const std::string& text) {
    std::filesystem::create_directories((directory_.path() / path).parent_path());
    directory_.write(path, text);
  }
  void interface(const std::string& name, int mbit_per_s, int mtu, const std::string& state = "up") {
    const std::filesystem::path folder = std::filesystem::path("sys/class/net") / name;
    file(folder / "speed", std::to_string(mbit_per_s) + "\n");
    file(folder / "mtu", std::to_string(mtu) + "\n");
    file(folder / "operstate", state + "\n");
  }
  // The answer to the query of parse_gpu_states, handmade in the form of nvidia-smi 580.
  void gpus(const std::string& csv) { outputs_["--query-gpu"] = csv; }

  std::vector<Finding> of(const std::string& check) const {
    std::vector<Finding> found;
    for (const Finding& finding : machine::examine_environment(view_)) {
      if (finding.name == check) found.push_back(finding);
    }
    return found;
  }
  std::vector<std::string> warnings(const std::string& check) const {
    std::vector<std::string> texts;
    for (const Finding& finding : of(check)) {
      if (finding.health == Health::kWarn) texts.push_back(finding.what);
    }
    return texts;
  }

  TemporaryDirectory directory_;
  machine::MachineView view_;
  std::map<std::string, std::string> variables_;
  std::map<std::string, std::string> outputs_;
};

using Texts = std::vector<std::string>;

TEST_F(EnvironmentChecks, FindNothingWrongWithAMachineThatIsWell) {
  for (const Finding& finding : machine::examine_environment(view_)) {
    EXPECT_NE(finding.health, Health::kWarn) << finding.name << ": " << finding.what;
    EXPECT_FALSE(finding.name.empty());
  }
}

TEST_F(EnvironmentChecks, NameVariablesThatHurt) {
  variables_ = {{"NCCL_P2P_DISABLE", "1"}, {"NCCL_SHM_DISABLE", "0"}, {"NCCL_DEBUG", "info"}, {"NCCL_ALGO", "Ring"}};
  EXPECT_EQ(warnings("variables"), (Texts{"NCCL_P2P_DISABLE=1", "NCCL_ALGO=Ring", "NCCL_DEBUG=info"}));
  variables_ = {
      {"NCCL_DEBUG", "WARN"}, {"CUDA_LAUNCH_BLOCKING", "0"}, {"NCCL_P2P_LEVEL", "NVL"}, {"NCCL_NVLS_ENABLE", "1"}};
  EXPECT_EQ(warnings("variables"), Texts());
  variables_ = {{"CUDA_LAUNCH_BLOCKING", "1"},
                {"NCCL_P2P_LEVEL", "LOC"},
                {"NCCL_NVLS_ENABLE", "0"},
                {"NCCL_MAX_NCHANNELS", "2"},
                {"TORCH_DISTRIBUTED_DEBUG", "DETAIL"}};
  EXPECT_EQ(warnings("variables").size(), 5U);
}

TEST_F(EnvironmentChecks, BlameTcpOnlyBesideInfiniband) {
  variables_ = {{"NCCL_IB_DISABLE", "1"}, {"NCCL_NET", "Socket"}};
  EXPECT_EQ(warnings("variables"), Texts());
  file("sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
  EXPECT_EQ(warnings("variables"), (Texts{"NCCL_IB_DISABLE=1", "NCCL_NET=Socket"}));
}

TEST_F(EnvironmentChecks, LookAtTheInterfacesOfSockets) {
  interface("lo", -1, 65536, "unknown");
  interface("eth0", 1000, 1500);
  EXPECT_EQ(of("NCCL sockets").size(), 0U);  // there is no choice
  interface("ens5", 100000, 9000);
  interface("docker0", -1, 1500);
  interface("ib9", 100000, 2044, "down");
  EXPECT_EQ(warnings("NCCL sockets"), (Texts{"NCCL_SOCKET_IFNAME is not set, and there are ens5, eth0"}));
  variables_["NCCL_SOCKET_IFNAME"] = "ens";
  EXPECT_EQ(of("NCCL sockets").at(0).health, Health::kOk);
  variables_["NCCL_SOCKET_IFNAME"] = "=eth0";
  EXPECT_EQ(warnings("NCCL sockets"), (Texts{"NCCL_SOCKET_IFNAME==eth0"}));
  EXPECT_NE(of("NCCL sockets").at(0).cost.find("another interface is faster"), std::string::npos);
  variables_["NCCL_SOCKET_IFNAME"] = "^ens,docker";
  EXPECT_EQ(warnings("NCCL sockets").size(), 1U);
  for (const auto& [value, cost] : {std::pair("lo", "loopback"), std::pair("enp0", "no interface")}) {
    variables_["NCCL_SOCKET_IFNAME"] = value;
    EXPECT_NE(of("NCCL sockets").at(0).cost.find(cost), std::string::npos) << value;
  }
}

TEST_F(EnvironmentChecks, FindSmallFramesOnFastInterfacesOnly) {
  interface("eth0", 1000, 1500);
  EXPECT_TRUE(of("MTU").empty());
  interface("eth1", 25000, 1500);
  interface("eth2", 100000, 9000);
  EXPECT_EQ(warnings("MTU"), (Texts{"eth1 of 25 Gbit/s has an MTU of 1500"}));
  interface("eth1", 25000, 9000);
  EXPECT_EQ(of("MTU").at(0).health, Health::kOk);
}

// Columns: index, name, driver, present and maximum PCIe generation, present and maximum width, throttle reasons
// (nvml.h).
TEST_F(EnvironmentChecks, ReadClocksAndLinksOfGpus) {
  gpus(
      "0, NVIDIA A100-SXM4-80GB, 580.95.05, 4, 4, 16, 16, 0x0000000000000000\n"
      "1, NVIDIA A100-SXM4-80GB, 580.95.05, 4, 4, 16, 16, 0x0000000000000044\n"
      "2, NVIDIA A100-SXM4-80GB, 580.95.05, 1, 4, 8, 16, 0x0000000000000001\n"
      "3, NVIDIA A100-SXM4-80GB, 580.95.05, 1, 4, 16, 16, 0x0000000000000001\n"
      "4, NVIDIA A100-SXM4-80GB, 580.95.05, 3, 4, 16, 16, 0x0000000000000000\n");
  EXPECT_EQ(warnings("GPU clocks"), (Texts{"GPU 1 has its clocks lowered: the power limit is reached; it is too hot"}));
  // An idle GPU lowers the generation, but not the width.
  EXPECT_EQ(warnings("GPU PCIe"), (Texts{"GPU 2 is linked by PCIe 1 x8, and could be by PCIe 4 x16",
                                         "GPU 4 is linked by PCIe 3 x16, and could be by PCIe 4 x16"}));
  EXPECT_TRUE(of("mixed GPUs").empty());
}

TEST_F(EnvironmentChecks, SayNothingOfGpusThatDoNotTell) {
  gpus("0, NVIDIA GB200, 580.95.05, [N/A], [N/A], [N/A], [N/A], [Not Supported]\n");
  EXPECT_TRUE(of("GPU clocks").empty());
  EXPECT_TRUE(of("GPU PCIe").empty());
}

TEST_F(EnvironmentChecks, FindMixedGpus) {
  gpus("0, NVIDIA A100-PCIE-40GB, 535.1, 4, 4, 16, 16, 0x0\n1, NVIDIA L4, 535.1, 4, 4, 16, 16, 0x0\n");
  EXPECT_EQ(warnings("mixed GPUs"), (Texts{"NVIDIA A100-PCIE-40GB and NVIDIA L4"}));
}

TEST_F(EnvironmentChecks, FindGpusThatCannotReadOneAnother) {
  const std::string all_ok =
      " \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n";
  outputs_["topo -p2p r"] = all_ok;
  EXPECT_EQ(of("GPU P2P").at(0).health, Health::kOk);
  outputs_["topo -p2p r"] = " \tGPU0\tGPU1\t\n GPU0\tX\tCNS\t\n GPU1\tCNS\tX\t\n";
  EXPECT_EQ(warnings("GPU P2P"), (Texts{"GPUs cannot read one another's memory: CNS between GPU0-GPU1"}));
}

// The matrix of NVIDIA/nccl issue 770 (eight A40), for the first four GPUs.
TEST_F(EnvironmentChecks, FindGpusOfSeveralSockets) {
  outputs_["topo -m"] =
      "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tmlx5_0\tCPU Affinity\tNUMA Affinity\x1b[0m\n"
      "GPU0\t X \tNV4\tSYS\tSYS\tSYS\t12-15,44-47\t3\n"
      "GPU1\tNV4\t X \tSYS\tSYS\tSYS\t8-11,40-43\t2\n"
      "GPU2\tSYS\tSYS\t X \tNV4\tSYS\t4-7,36-39\t1\n"
      "GPU3\tSYS\tSYS\tNV4\t X \tSYS\t0-3,32-35\t0\n"
      "mlx5_0\tSYS\tSYS\tSYS\tSYS\t X \n";
  EXPECT_EQ(warnings("GPU links"), (Texts{"SYS is between GPU0-GPU2"}));
  outputs_["topo -m"] = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-47\nGPU1\tNV18\t X \t0-47\n";
  EXPECT_EQ(of("GPU links").at(0).what, "all GPUs of this node are joined by NVLink");
}

TEST_F(EnvironmentChecks, AskForGpudirectWhereItMatters) {
  EXPECT_TRUE(of("GPUDirect").empty());
  gpus("0, NVIDIA L4, 535.1, 4, 4, 16, 16, 0x0\n");
  file("sys/class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)\n");
  EXPECT_EQ(warnings("GPUDirect"), (Texts{"nvidia_peermem is not loaded"}));
  file("proc/modules", "mlx5_ib 1 0 - Live 0x0\nnvidia_peermem 16384 0 - Live 0x0\n");
  EXPECT_EQ(of("GPUDirect").at(0).health, Health::kOk);
  file("proc/modules", "mlx5_ib 1 0 - Live 0x0\n");
  file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05\n");
  EXPECT_EQ(of("GPUDirect").at(0).health, Health::kOk);
}

TEST_F(EnvironmentChecks, KnowVersionsThatWereReportedAsSlow) {
  for (const auto& [version, slow] : {std::pair(21602, true), std::pair(21605, false), std::pair(21903, true),
                                      std::pair(22003, false), std::pair(22809, false)}) {
    view_.nccl_version = version;
    EXPECT_EQ(warnings("NCCL version").size(), slow ? 1U : 0U) << version;
  }
  view_.nccl_version = 21904;
  EXPECT_EQ(warnings("NCCL version").at(0), "NCCL 2.19.4");
}

TEST_F(EnvironmentChecks, TellGovernorsThatFollowTheLoadFromThoseThatDoNot) {
  EXPECT_EQ(of("governor").at(0).health, Health::kSkip);
  file("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  file("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "acpi-cpufreq\n");
  EXPECT_EQ(warnings("governor"), (Texts{"powersave (acpi-cpufreq)"}));
  file("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_pstate\n");
  EXPECT_EQ(of("governor").at(0).health, Health::kOk);
}

TEST_F(EnvironmentChecks, CompareCoresWithTheShareOfARank) {
  view_.usable_cores = 2;
  EXPECT_EQ(warnings("cores"), (Texts{"this process may run on 2 of 16 cores"}));
  variables_["LOCAL_WORLD_SIZE"] = "8";
  EXPECT_EQ(warnings("cores"), Texts());  // its share
  variables_["LOCAL_WORLD_SIZE"] = "4";
  EXPECT_EQ(warnings("cores"), (Texts{"this process may run on 2 of 16 cores, and 4 ranks share the machine"}));
  view_.usable_cores = 16;
  file("sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(warnings("cores"), (Texts{"the control group allows 4 of 16 cores"}));
  file("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(warnings("cores"), Texts());
}

TEST_F(EnvironmentChecks, CompareThreadsWithCores) {
  EXPECT_TRUE(of("threads").empty());
  variables_ = {{"OMP_NUM_THREADS", "1"}, {"LOCAL_WORLD_SIZE", "2"}};
  EXPECT_EQ(warnings("threads"), (Texts{"OMP_NUM_THREADS=1"}));
  EXPECT_NE(of("threads").at(0).cost.find("8 are possible"), std::string::npos);
  variables_["OMP_NUM_THREADS"] = "16";
  EXPECT_EQ(warnings("threads"), (Texts{"OMP_NUM_THREADS=16, and 2 ranks on 16 cores"}));
  variables_["OMP_NUM_THREADS"] = "8";
  EXPECT_EQ(of("threads").at(0).health, Health::kOk);
  variables_.erase("OMP_NUM_THREADS");
  EXPECT_EQ(warnings("threads"), (Texts{"OMP_NUM_THREADS is not set, and 2 ranks share the machine"}));
}

TEST_F(EnvironmentChecks, MeasureSharedMemoryAgainstWhatNcclNeeds) {
  EXPECT_EQ(of("shared memory").at(0).health, Health::kOk);
  view_.shm_bytes = 64 << 20;
  EXPECT_EQ(warnings("shared memory"), (Texts{"/dev/shm 64.0 MiB"}));
  view_.shm_bytes.reset();
  EXPECT_EQ(of("shared memory").at(0).health, Health::kSkip);
}

TEST_F(EnvironmentChecks, AreToldOnlyWhereTheyExplain) {
  variables_ = {{"NCCL_P2P_DISABLE", "1"}, {"CUDA_LAUNCH_BLOCKING", "1"}};
  view_.usable_cores = 1;
  const std::vector<Finding> all = machine::examine_environment(view_);
  const auto names = [&](std::vector<Slowness> kinds) {
    Texts texts;
    for (const Finding& finding : machine::that_explain(all, kinds)) texts.push_back(finding.what);
    return texts;
  };
  EXPECT_EQ(names({Slowness::kNode}), (Texts{"NCCL_P2P_DISABLE=1", "CUDA_LAUNCH_BLOCKING=1"}));
  EXPECT_EQ(names({Slowness::kHost}), (Texts{"this process may run on 1 of 16 cores", "CUDA_LAUNCH_BLOCKING=1"}));
  EXPECT_EQ(names({}), Texts());
}

TEST_F(EnvironmentChecks, SeeOtherProgramsThatKeepTheCoresBusy) {
  EXPECT_TRUE(of("load").empty()) << "nothing is known";
  file("proc/loadavg", "3.21 2.50 1.00 2/300 4711\n");
  EXPECT_TRUE(warnings("load").empty());
  file("proc/loadavg", "31.5 20.0 10.0 40/300 4711\n");
  EXPECT_EQ(warnings("load"), Texts{"31.5 programs on average wanted one of 16 cores in the last minute"});
}

// Each entry of the table has a name of its own and an explanation, unless its warnings bring their own.
TEST(EnvironmentChecksTable, IsWellFormed) {
  std::map<std::string, int> names;
  for (const machine::Check& check : machine::environment_checks()) {
    EXPECT_EQ(++names[check.name], 1) << check.name;
    EXPECT_LE(std::string(check.name).size(), 15U) << check.name << ": the column of doctor";
    EXPECT_TRUE(!check.explains.empty() || std::string(check.name) == "variables") << check.name;
  }
}

TEST(ThisMachine, CanBeExamined) {
  const SystemClock clock;
  const machine::MachineView view = machine::this_machine(clock);
  EXPECT_GE(view.cores, 1);
  EXPECT_GE(view.usable_cores, 1);
  EXPECT_EQ(view.output({"krigtune-no-such-program"}), std::nullopt);
  EXPECT_EQ(view.output({"false"}), std::nullopt);
  EXPECT_EQ(view.output({"echo", "yes"}), "yes\n");
  EXPECT_FALSE(machine::examine_environment(view).empty());
}

}  // namespace krigtune::environment_checks_test
