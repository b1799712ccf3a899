#pragma once
#include <memory>

#include "krigtune/surrogate/kernel.h"

namespace krigtune {

std::shared_ptr<const Kernel> make_matern52();

}  // namespace krigtune
