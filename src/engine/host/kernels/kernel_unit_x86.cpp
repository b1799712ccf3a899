// Processors of the x86-64 family: the best of the vector units that they have.
#include "host/kernels/kernel_unit.h"
#include "krigtune/core/processor.h"

namespace krigtune {

namespace kernels_plain {
extern const KernelUnit kUnit;
}
namespace kernels_avx2 {
extern const KernelUnit kUnit;
}
namespace kernels_avx512 {
extern const KernelUnit kUnit;
}

const KernelUnit& kernel_unit() {
  if (has_avx512()) return kernels_avx512::kUnit;
  return has_avx2() ? kernels_avx2::kUnit : kernels_plain::kUnit;
}

std::vector<const KernelUnit*> available_kernel_units() {
  std::vector<const KernelUnit*> units{&kernels_plain::kUnit};
  if (has_avx2()) units.push_back(&kernels_avx2::kUnit);
  if (has_avx512()) units.push_back(&kernels_avx512::kUnit);
  return units;
}

}  // namespace krigtune
