#pragma once
// The functions of one KernelUnit. Their files are compiled once for every kind of vector unit, each time in another
// namespace (CMakeLists.txt). Otherwise the linker might keep an inline function that was compiled for AVX-512 for the
// whole program.
#include "engine/host/kernels/gemm.h"
#include "engine/host/kernels/kernel.h"

namespace krigtune::engine::KRIGTUNE_KERNELS {

template <class T>
void multiply(const Product<T>& product, T* scratch);

}  // namespace krigtune::engine::KRIGTUNE_KERNELS
