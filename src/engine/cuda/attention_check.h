#pragma once
#include <cstdint>
#include <string>

#include "plan/step_plan.h"

namespace krigtune::cuda {

/// Returns whether GPU `device` and this program's code for it support the attention kernels for Hopper.
bool may_use_hopper_attention(int device);

/// Compares the attention kernels for Hopper with those for all GPUs, on the current device, forward and backward, on
/// random numbers: heads of head_size (64 or 128) in `type` (bf16 or fp16), five tiles of keys, and about as many
/// blocks as the GPU has multiprocessors. Returns why the kernels for Hopper must not be used: their results differ by
/// more than the rounding of `type` explains, or a second run does not give the same bits. Empty if they may be used.
///
/// Throws DeviceError if CUDA fails, after which this process can no longer use the GPU, and does not return if a
/// kernel hangs. So call it in a process of its own.
std::string why_not_hopper_attention(schedule::DType type, std::int64_t head_size);

}  // namespace krigtune::cuda
