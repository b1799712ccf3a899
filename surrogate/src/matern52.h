#pragma once
#include <memory>

#include "krigtune/surrogate/kernel.h"

namespace krigtune {

std::unique_ptr<Kernel> make_matern52();

}  // namespace krigtune
