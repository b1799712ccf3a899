#pragma once
#include <cstdint>
#include <string>

#include "schedule/knobs.h"

namespace krigtune::cuda {

/// Whether GPU `device` and this program's code for it have what hopper_attention_forward needs.
bool may_use_hopper_attention(int device);

/// Runs hopper_attention_forward on the current device, beside the kernel that all GPUs have, on random numbers: heads
/// of head_size (64 or 128) in `type` (bf16 or fp16), five tiles of keys, about as many blocks as the GPU has
/// multiprocessors. Returns why it is not to be used: results that differ by more than the rounding of `type` explains,
/// or that are not the same bits in a second run; empty if it may be.
///
/// Throws DeviceError where CUDA fails, after which this process can use the GPU no more, and does not return where a
/// kernel hangs. So call it in a process of its own.
std::string why_not_hopper_attention(schedule::DType type, std::int64_t head_size);

}  // namespace krigtune::cuda
