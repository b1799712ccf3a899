#pragma once
#include <string>

namespace krigtune {

/// What the CUDA driver says. Asked at run time: the program is not linked with it and runs without it.
struct GpuProbe {
  int gpus = 0;
  std::string reason;  ///< why there are none; empty otherwise
};
GpuProbe probe_gpus();

}  // namespace krigtune
