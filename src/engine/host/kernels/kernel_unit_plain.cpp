// For compilers and processors whose vector units krigtune does not know: only the plain functions.
#include "engine/host/kernels/kernel_unit.h"

namespace krigtune::engine {

namespace kernels_plain {
extern const KernelUnit kUnit;
}

const KernelUnit& kernel_unit() { return kernels_plain::kUnit; }

std::vector<const KernelUnit*> available_kernel_units() { return {&kernels_plain::kUnit}; }

}  // namespace krigtune::engine
