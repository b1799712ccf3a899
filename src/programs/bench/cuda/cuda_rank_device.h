#pragma once
#include <memory>
#include <vector>

#include "programs/bench/rank_device.h"

namespace krigtune::bench {

/// Returns the GPU of this process's rank, number `device` of its machine. Matrix products use the engine's Gemm,
/// collectives its communicators. Throws DeviceError, and UserError for an emulated network, whose other ranks do not
/// exist.
std::vector<std::unique_ptr<RankDevice>> make_cuda_devices(const RankWorld& world, int device);

RateSizes cuda_rate_sizes();

}  // namespace krigtune::bench
