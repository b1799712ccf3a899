#pragma once
#include <string>
#include <vector>

#include "engine/cuda/device_executor.h"
#include "engine/trainer.h"

namespace krigtune::cuda {

/// Times the collectives of an emulated network in isolation: for each kind in each group the largest one that does not
/// take long. They run in the plan's memory, whose contents are undefined afterwards. `communicators` must be emulated
/// ones of rank 0 on `link`. Throws DeviceError.
std::vector<engine::PacedCollective> measure_pacing(const plan::StepPlan& plan, const DeviceMemory& memory,
                                                    const workload::EmulatedNetwork& network,
                                                    std::int64_t ranks_per_node,
                                                    const DeviceCommunicators& communicators, EmulatedDeviceLink& link);

/// Throws UserError if a collective takes more than 20 % longer than stated because copies in this GPU's memory are
/// slower than the network.
void require_pacing(const std::vector<engine::PacedCollective>& paced, const workload::EmulatedNetwork& network);

/// Returns a warning for the user if a collective takes more than 5 % longer or shorter than stated; otherwise empty.
std::string pacing_warning(const std::vector<engine::PacedCollective>& paced);

}  // namespace krigtune::cuda
