#pragma once
#include "engine/cuda/kernels/device_kernel.h"

namespace krigtune::cuda {

/// Whether the kernels below can do it: 16-bit numbers, heads of 64 or 128 elements, no dropout, nothing kept of the
/// probabilities. attention_forward and attention_backward ask; nobody else needs to.
bool flash_fits(const DeviceCall& call);
void flash_attention_forward(const DeviceCall& call);
void flash_attention_backward(const DeviceCall& call);

}  // namespace krigtune::cuda
