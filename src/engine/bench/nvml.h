#pragma once
#include <memory>
#include <string>

#include "bench/gpu_watch.h"

namespace krigtune {

/// The GPU at a PCI address ("0000:65:00.0"), read through NVIDIA's management library, which is opened at run time.
/// Null where there is none, or it does not know the GPU.
std::unique_ptr<GpuSensor> open_nvml(const std::string& pci_address, const char* library = "libnvidia-ml.so.1");

}  // namespace krigtune
