// For processors of the x86-64 family: the functions compiled for each of their vector units.
#include "core/processor.h"
#include "vector_unit/vector_unit.h"

namespace krigtune::surrogate {

namespace plain {
extern const VectorUnit kUnit;
}
namespace avx2 {
extern const VectorUnit kUnit;
}
namespace avx512 {
extern const VectorUnit kUnit;
}

namespace {

const VectorUnit& unit_of(VectorUnitKind kind) {
  switch (kind) {
    case VectorUnitKind::kPlain:
      return plain::kUnit;
    case VectorUnitKind::kAvx2:
      return avx2::kUnit;
    case VectorUnitKind::kAvx512:
      return avx512::kUnit;
  }
  return plain::kUnit;
}

}  // namespace

const VectorUnit& vector_unit() { return unit_of(chosen_vector_unit()); }

std::vector<const VectorUnit*> available_vector_units() {
  std::vector<const VectorUnit*> units;
  for (const VectorUnitKind kind : processor_vector_units()) units.push_back(&unit_of(kind));
  return units;
}

}  // namespace krigtune::surrogate
