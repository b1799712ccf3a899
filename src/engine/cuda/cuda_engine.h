#pragma once
#include "bench/bench_engine.h"

namespace krigtune::cuda {

/// On GPUs: what krigtune-bench-cuda is made of.
BenchEngine cuda_engine();

}  // namespace krigtune::cuda
