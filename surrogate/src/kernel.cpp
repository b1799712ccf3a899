#include "krigtune/surrogate/kernel.h"

#include "krigtune/core/error.h"
#include "matern52.h"

namespace krigtune {

std::shared_ptr<const Kernel> make_kernel(const KernelSpec& spec) {
  switch (spec.kind) {
    case KernelKind::kMatern52:
      return make_matern52();
    default:
      throw UserError("make_kernel: no such kernel");
  }
}

std::shared_ptr<const Kernel> make_kernel(KernelKind kind) {
  KernelSpec spec;
  spec.kind = kind;
  return make_kernel(spec);
}

}  // namespace krigtune
