#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "engine/cuda/kernels/device_kernel.h"
#include "engine/host/kernels/kernel.h"

namespace krigtune::cuda {

/// A moment on the device's clock, in device memory: nanoseconds.
using Moment = unsigned long long;

/// Reserves the first `length_ns` from now on of the link that is free from *free_from on; *until becomes their end.
void reserve_link(Moment* free_from, Moment* until, Moment length_ns, Queue queue);
/// Holds the queue until that moment.
void hold_until(const Moment* until, Queue queue);

// What rank 0 of `ranks` would hold after the collective, if the others were like it; ranges in the order of OpTraits.

/// Rank r's part of each whole = the shard, turned by r.
void gather_alone(std::span<const engine::OperandView> operands, std::int64_t ranks, Queue queue);
/// The first part of each whole = the sum of all its parts.
void reduce_scatter_alone(std::span<const engine::OperandView> operands, std::int64_t ranks, Queue queue);
/// Each whole times sqrt(ranks).
void all_reduce_alone(std::span<const engine::OperandView> operands, std::int64_t ranks, Queue queue);

}  // namespace krigtune::cuda
