#pragma once
#include "engine/cuda/kernels/device_kernel.h"

namespace krigtune::cuda {

/// Whether the kernels below can do it: 16-bit numbers, heads of 64 or 128 elements, no dropout, nothing kept of the
/// probabilities, and a GPU whose blocks may have the shared memory: 129 KiB for the gradients of heads of 128, which
/// GPUs of compute capability 8.6, 8.9 and 12.0 have not (99 KiB). attention_forward and attention_backward ask; nobody
/// else needs to.
bool flash_fits(const DeviceCall& call);
void flash_attention_forward(const DeviceCall& call);
void flash_attention_backward(const DeviceCall& call);

}  // namespace krigtune::cuda
