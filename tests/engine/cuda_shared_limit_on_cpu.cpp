#include <cuda_runtime_api.h>

#include "cuda_case_runs.h"

namespace krigtune::cuda {

bool is_emulated() { return true; }

bool limit_shared_memory(int bytes) {
  emulation::set_shared_limit(bytes);
  return true;
}

}  // namespace krigtune::cuda
