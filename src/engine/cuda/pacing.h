#pragma once
#include <string>
#include <vector>

#include "engine/cuda/device_executor.h"
#include "engine/trainer.h"

namespace krigtune::cuda {

/// Times the collectives of an emulated network alone, in the plan's memory, whose contents mean nothing afterwards: of
/// each kind in each group the largest one that does not take long. `communicators` are emulated ones on `link`, of
/// rank 0. Throws DeviceError.
std::vector<engine::PacedCollective> measure_pacing(const plan::StepPlan& plan, const DeviceMemory& memory,
                                                    const workload::EmulatedNetwork& network,
                                                    std::int64_t ranks_per_node,
                                                    const DeviceCommunicators& communicators, EmulatedDeviceLink& link);

/// Throws UserError where a collective takes more than 20 % longer than stated because copies in this GPU's memory are
/// slower than the network.
void require_pacing(const std::vector<engine::PacedCollective>& paced, const workload::EmulatedNetwork& network);

/// What to tell a person where a collective takes 5 % longer or shorter than stated; empty otherwise.
std::string pacing_warning(const std::vector<engine::PacedCollective>& paced);

}  // namespace krigtune::cuda
