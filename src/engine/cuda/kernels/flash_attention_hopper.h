#pragma once
#include "engine/cuda/kernels/device_kernel.h"

namespace krigtune::cuda {

/// Which keys a query attends to: those up to its own position, or all of its sequence.
enum class Meets { kEarlierKeys, kAllKeys };

/// Computes the same as flash_attention_forward from the same operands, to the rounding of 16-bit numbers, on a GPU of
/// compute capability 9.0. Requires that this program has code for 90a (without it, nothing is computed) and that
/// flash_fits accepts the operands.
void hopper_attention_forward(const DeviceCall& call, Meets meets = Meets::kEarlierKeys);

}  // namespace krigtune::cuda
