#pragma once
// The functions of one KernelUnit: what their files define once for every kind of vector unit, each time under another
// namespace (CMakeLists.txt). An inline function that was compiled for AVX-512 must not be what the linker keeps for
// the whole program.
#include "engine/host/kernels/gemm.h"
#include "engine/host/kernels/kernel.h"

namespace krigtune::engine::KRIGTUNE_KERNELS {

template <class T>
void multiply(const Product<T>& product, T* scratch);

}  // namespace krigtune::engine::KRIGTUNE_KERNELS
