#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"

namespace krigtune::executor {

/// A GPU that trials may use.
struct GpuPart {
  int number = 0;      ///< as nvidia-smi counts: CUDA's number where CUDA_DEVICE_ORDER is PCI_BUS_ID
  int numa_node = -1;  ///< index in MachineParts::cores; -1: not known
};

/// What this process may use of this machine.
struct MachineParts {
  std::vector<GpuPart> gpus;
  /// Processors of each NUMA node, threads of one core beside each other. One node where Linux tells of none.
  std::vector<std::vector<int>> cores;
};

/// GPUs by nvidia-smi, or those of CUDA_VISIBLE_DEVICES where it is set; processors of the affinity of this process.
MachineParts parts_of_this_machine(const Clock& clock);

/// "0-3,8" of /sys/devices/system/node/node0/cpulist, ascending.
std::vector<int> cpu_list(const std::string& text);

/// Lines "0, GPU-8932f937-d72c-4106-c12f-20bd9faed9f6, 00000000:3B:00.0" of nvidia-smi
/// --query-gpu=index,uuid,pci.bus_id. `visible`: the value of CUDA_VISIBLE_DEVICES, numbers or UUIDs or their
/// beginnings; CUDA stops at the first that is none. Empty: it is not set. `numa_node_of`: by the directory's name
/// below /sys/bus/pci/devices.
std::vector<GpuPart> gpus_in(const std::string& listing, const std::optional<std::string>& visible,
                             int (*numa_node_of)(const std::string& pci_device));

/// The processors of so many equal parts of the machine, in the order of its NUMA nodes. With more parts than
/// processors some share one.
std::vector<std::vector<int>> divided_cores(const MachineParts& machine, int parts);
/// The processors beside each GPU: its NUMA node's, divided among the GPUs there; where no node is known, all of them
/// divided among all GPUs.
std::vector<std::vector<int>> cores_of_gpus(const MachineParts& machine);

}  // namespace krigtune::executor
