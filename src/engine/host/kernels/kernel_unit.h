#pragma once
#include <span>
#include <vector>

#include "engine/host/kernels/gemm.h"
#include "engine/host/kernels/kernel.h"

namespace krigtune::engine {

template <class T>
struct KernelEntry {
  schedule::OpKind kind;
  Kernel<T> kernel;
  std::int64_t (*scratch_elems)(const plan::Shape&) = nullptr;  ///< null: none
};

/// All kernels, compiled for one kind of vector unit. The results of two units differ by rounding.
struct KernelUnit {
  const char* name;
  std::span<const KernelEntry<float>> floats;
  std::span<const KernelEntry<double>> doubles;
  Multiply<float> multiply_floats;
  Multiply<double> multiply_doubles;
};

/// Returns the unit that this process uses (core/processor.h, chosen_vector_unit).
const KernelUnit& kernel_unit();
/// Returns all units that this processor supports, the plain one first, independent of the choice.
std::vector<const KernelUnit*> available_kernel_units();

}  // namespace krigtune::engine
