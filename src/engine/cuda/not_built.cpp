// This file replaces built.cpp if krigtune-bench-cuda is not built. The reason comes from the configuration.
#include "engine/gpu_probe.h"

namespace krigtune::engine {

std::string no_cuda_reason() { return KRIGTUNE_NO_CUDA_REASON; }

}  // namespace krigtune::engine
