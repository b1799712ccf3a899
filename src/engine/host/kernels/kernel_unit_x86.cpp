// Processors of the x86-64 family, asked which vector units they and their operating system have.
#include "host/kernels/kernel_unit.h"

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

namespace {

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}

}  // namespace

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
