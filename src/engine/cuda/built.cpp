// This file is linked if krigtune-bench-cuda is built, too.
#include "engine/gpu_probe.h"

namespace krigtune::engine {

std::string no_cuda_reason() { return ""; }

}  // namespace krigtune::engine
