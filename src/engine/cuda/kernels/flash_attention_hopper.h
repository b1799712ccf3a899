#pragma once
#include "engine/cuda/kernels/device_kernel.h"

namespace krigtune::cuda {

/// Which query meets which keys: those up to its own place, or all of its sequence.
enum class Meets { kEarlierKeys, kAllKeys };

/// As flash_attention_forward, with the same operands and the same results to the rounding of 16-bit numbers: for a GPU
/// of compute capability 9.0, where this program's code has 90a (does nothing without it) and where flash_fits says
/// that the operands suit.
void hopper_attention_forward(const DeviceCall& call, Meets meets = Meets::kEarlierKeys);

}  // namespace krigtune::cuda
