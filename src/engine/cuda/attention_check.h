#pragma once
#include <cstdint>
#include <string>

#include "plan/step_plan.h"

namespace krigtune::cuda {

/// Whether GPU `device` and this program's code for it have what attention's kernels for Hopper need.
bool may_use_hopper_attention(int device);

/// Runs attention's kernels for Hopper on the current device, beside those that all GPUs have, forward and backward, on
/// random numbers: heads of head_size (64 or 128) in `type` (bf16 or fp16), five tiles of keys, about as many blocks as
/// the GPU has multiprocessors. Returns why they are not to be used: results that differ by more than the rounding of
/// `type` explains, or that are not the same bits in a second run; empty if they may be.
///
/// Throws DeviceError where CUDA fails, after which this process can use the GPU no more, and does not return where a
/// kernel hangs. So call it in a process of its own.
std::string why_not_hopper_attention(schedule::DType type, std::int64_t head_size);

}  // namespace krigtune::cuda
