#pragma once
#include <memory>
#include <vector>

#include "krigtune/surrogate/kernel.h"

namespace krigtune::surrogate {

using KernelPointer = std::shared_ptr<const Kernel>;

KernelPointer make_stationary(KernelKind kind);  ///< kMatern52, kMatern32 or kSquaredExponential
KernelPointer make_linear();
KernelPointer make_main_effects();
KernelPointer make_sum(std::vector<KernelPointer> parts);
KernelPointer make_product(std::vector<KernelPointer> parts);
/// Makes a kernel that sees only the named columns of its points, in that order.
KernelPointer make_on_columns(Columns columns, KernelPointer kernel);

}  // namespace krigtune::surrogate
