#pragma once
#include "engine/cuda/kernels/device_kernel.h"

namespace krigtune::cuda {

/// Returns whether the kernels below can execute the call. They need 16-bit numbers, heads of 64 or 128 elements, no
/// dropout, no probabilities that must be kept, and a GPU whose blocks may have enough shared memory: the gradients of
/// heads of 128 take 129 KiB, which GPUs of compute capability 8.6, 8.9 and 12.0 do not have (99 KiB).
/// attention_forward and attention_backward call this; other code need not.
bool flash_fits(const DeviceCall& call);
void flash_attention_forward(const DeviceCall& call);
void flash_attention_backward(const DeviceCall& call);

}  // namespace krigtune::cuda
