// For processors of the x86-64 family: the kernels compiled for each of their vector units.
#include "core/processor.h"
#include "engine/host/kernels/kernel_unit.h"

namespace krigtune::engine {

namespace kernels_plain {
extern const KernelUnit kUnit;
}
namespace kernels_avx2 {
extern const KernelUnit kUnit;
}
namespace kernels_avx512 {
extern const KernelUnit kUnit;
}

namespace {

const KernelUnit& unit_of(VectorUnitKind kind) {
  switch (kind) {
    case VectorUnitKind::kPlain:
      return kernels_plain::kUnit;
    case VectorUnitKind::kAvx2:
      return kernels_avx2::kUnit;
    case VectorUnitKind::kAvx512:
      return kernels_avx512::kUnit;
  }
  return kernels_plain::kUnit;
}

}  // namespace

const KernelUnit& kernel_unit() { return unit_of(chosen_vector_unit()); }

std::vector<const KernelUnit*> available_kernel_units() {
  std::vector<const KernelUnit*> units;
  for (const VectorUnitKind kind : processor_vector_units()) units.push_back(&unit_of(kind));
  return units;
}

}  // namespace krigtune::engine
