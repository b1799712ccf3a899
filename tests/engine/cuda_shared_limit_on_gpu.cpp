#include "cuda_case_runs.h"

namespace krigtune::cuda {

bool is_emulated() { return false; }

bool limit_shared_memory(int /*bytes*/) { return false; }

}  // namespace krigtune::cuda
