#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/executor.h"
#include "executor/machine_parts.h"

namespace krigtune::executor {

/// Makes the slots of `spec` on that machine. `directory` is that of the run; slot k has its caches in slots/k below
/// it.
std::unique_ptr<trial::Executor> make_slots(const LocalSpec& spec, MachineParts machine,
                                            std::filesystem::path directory);

/// One slot's share of the machine.
struct SlotShare {
  trial::PlaceFacts facts;
  std::vector<int> processors;
  std::filesystem::path caches;
  bool has_gpus = false;  ///< if the machine has GPUs, the trial is told which ones are its own
};

/// Returns the variables that keep a trial within its share: CUDA_VISIBLE_DEVICES with CUDA_DEVICE_ORDER, MASTER_PORT
/// and torchrun's PET_MASTER_PORT, OMP_NUM_THREADS, TRITON_CACHE_DIR, TORCHINDUCTOR_CACHE_DIR, TORCH_EXTENSIONS_DIR.
/// Variables that `asked`, the trial's own environment, sets are left out. OMP_NUM_THREADS and the caches are also left
/// out if `inherited` (getenv) has them.
std::vector<std::pair<std::string, std::string>> slot_environment(
    const SlotShare& share, const std::vector<std::pair<std::string, std::string>>& asked,
    const char* (*inherited)(const char* name));

}  // namespace krigtune::executor
