// Linked in place of built.cpp where there is no krigtune-bench-cuda; the reason comes from the configuration.
#include "engine/gpu_probe.h"

namespace krigtune::engine {

std::string no_cuda_reason() { return KRIGTUNE_NO_CUDA_REASON; }

}  // namespace krigtune::engine
