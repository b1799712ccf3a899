#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "engine/cuda/kernels/device_kernel.h"
#include "engine/host/kernels/kernel.h"

namespace krigtune::cuda {

/// A time on the device's clock, in nanoseconds, in device memory.
using Moment = unsigned long long;

/// Reserves the link for `length_ns` from now on or, if it is not free yet, from *free_from on. *free_from and *until
/// become the end of that time.
void reserve_link(Moment* free_from, Moment* until, Moment length_ns, Queue queue);
/// Holds the queue until that time.
void hold_until(const Moment* until, Queue queue);

// These compute what rank 0 of `ranks` would have after the collective if the others were like it. Operands are in the
// order of OpTraits.

/// Fills rank r's part of each whole with the shard, rotated by r words.
void gather_alone(std::span<const engine::OperandView> operands, std::int64_t ranks, Queue queue);
/// Replaces the first part of each whole by the sum of all its parts.
void reduce_scatter_alone(std::span<const engine::OperandView> operands, std::int64_t ranks, Queue queue);
/// Multiplies each whole by sqrt(ranks).
void all_reduce_alone(std::span<const engine::OperandView> operands, std::int64_t ranks, Queue queue);

}  // namespace krigtune::cuda
