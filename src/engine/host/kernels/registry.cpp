#include <stdexcept>
#include <string>
#include <type_traits>

#include "engine/host/kernels/kernel_unit.h"
#include "plan/op_traits.h"

namespace krigtune::engine {
namespace {

template <class T>
const KernelEntry<T>& entry(const KernelUnit& unit, schedule::OpKind kind) {
  std::span<const KernelEntry<T>> entries;
  if constexpr (std::is_same_v<T, float>) {
    entries = unit.floats;
  } else {
    entries = unit.doubles;
  }
  for (const KernelEntry<T>& candidate : entries) {
    if (candidate.kind == kind) return candidate;
  }
  throw std::logic_error(std::string("no kernel is registered for ") + plan::to_string(kind));
}

}  // namespace

template <class T>
Kernel<T> kernel_for(schedule::OpKind kind, const KernelUnit& unit) {
  if (plan::is_collective(kind)) throw std::logic_error("a collective has no kernel");
  return entry<T>(unit, kind).kernel;
}

template <class T>
Kernel<T> kernel_for(schedule::OpKind kind) {
  return kernel_for<T>(kind, kernel_unit());
}

std::int64_t scratch_elems(schedule::OpKind kind, const plan::Shape& shape) {
  const auto elems = entry<float>(kernel_unit(), kind).scratch_elems;
  return elems == nullptr ? 0 : elems(shape);
}

void throw_not_in(const char* what, std::int32_t number, const char* where) {
  throw std::runtime_error(std::string(what) + " " + std::to_string(number) + " is not in " + where);
}

template Kernel<float> kernel_for<float>(schedule::OpKind);
template Kernel<double> kernel_for<double>(schedule::OpKind);
template Kernel<float> kernel_for<float>(schedule::OpKind, const KernelUnit&);
template Kernel<double> kernel_for<double>(schedule::OpKind, const KernelUnit&);

}  // namespace krigtune::engine
