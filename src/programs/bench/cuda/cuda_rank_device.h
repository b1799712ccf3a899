#pragma once
#include <memory>
#include <vector>

#include "programs/bench/rank_device.h"

namespace krigtune::bench {

/// The GPU of this process's rank, number `device` of its machine: products by the engine's Gemm, collectives by its
/// communicators. Throws DeviceError, and UserError for an emulated network, whose ranks do not exist.
std::vector<std::unique_ptr<RankDevice>> make_cuda_devices(const RankWorld& world, int device);

RateSizes cuda_rate_sizes();

}  // namespace krigtune::bench
