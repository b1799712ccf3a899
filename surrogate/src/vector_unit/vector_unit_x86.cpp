// Processors of the x86-64 family: the best of the vector units that they have.
#include "krigtune/core/processor.h"
#include "vector_unit/vector_unit.h"

namespace krigtune {

namespace plain {
extern const VectorUnit kUnit;
}
namespace avx2 {
extern const VectorUnit kUnit;
}
namespace avx512 {
extern const VectorUnit kUnit;
}

const VectorUnit& vector_unit() {
  if (has_avx512()) return avx512::kUnit;
  return has_avx2() ? avx2::kUnit : plain::kUnit;
}

std::vector<const VectorUnit*> available_vector_units() {
  std::vector<const VectorUnit*> units{&plain::kUnit};
  if (has_avx2()) units.push_back(&avx2::kUnit);
  if (has_avx512()) units.push_back(&avx512::kUnit);
  return units;
}

}  // namespace krigtune
