// Processors of the x86-64 family, asked which vector units they and their operating system have.
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

namespace {

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}

}  // namespace

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
