#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"

namespace krigtune::executor {

/// A GPU that trials may use.
struct GpuPart {
  int number = 0;      ///< nvidia-smi's number, which is CUDA's if CUDA_DEVICE_ORDER is PCI_BUS_ID
  int numa_node = -1;  ///< index in MachineParts::cores; -1: unknown
};

/// The parts of this machine that this process may use.
struct MachineParts {
  std::vector<GpuPart> gpus;
  /// Processors of each NUMA node; threads of one core are neighbours. One node if Linux reports none.
  std::vector<std::vector<int>> cores;
};

/// Returns the GPUs that nvidia-smi lists, or those of CUDA_VISIBLE_DEVICES if it is set, and the processors in the
/// affinity of this process.
MachineParts parts_of_this_machine(const Clock& clock);

/// Reads "0-3,8", the form of /sys/devices/system/node/node0/cpulist. The result is ascending.
std::vector<int> cpu_list(const std::string& text);

/// Returns the GPUs of `listing`: lines "0, GPU-8932f937-d72c-4106-c12f-20bd9faed9f6, 00000000:3B:00.0" of nvidia-smi
/// --query-gpu=index,uuid,pci.bus_id. `visible` is the value of CUDA_VISIBLE_DEVICES, empty if it is not set: numbers,
/// or UUIDs or prefixes of them. CUDA stops at the first invalid one, and so does this function. `numa_node_of` takes
/// the name of a directory below /sys/bus/pci/devices.
std::vector<GpuPart> gpus_in(const std::string& listing, const std::optional<std::string>& visible,
                             int (*numa_node_of)(const std::string& pci_device));

/// Divides the machine's processors into so many equal parts, in the order of its NUMA nodes. If there are more parts
/// than processors, some parts share a processor.
std::vector<std::vector<int>> divided_cores(const MachineParts& machine, int parts);
/// Returns the processors beside each GPU: those of its NUMA node, divided among the GPUs of the node. If the node is
/// unknown, all processors are divided among all GPUs.
std::vector<std::vector<int>> cores_of_gpus(const MachineParts& machine);

}  // namespace krigtune::executor
