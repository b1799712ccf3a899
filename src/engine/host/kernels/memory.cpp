// Operations that only move or add elements.
#include "host/kernels/elementary.h"
#include "host/kernels/kernel_functions.h"

namespace krigtune::KRIGTUNE_KERNELS {

template <class T>
void zero(const KernelCall& call) {
  for (const OperandView& range : call.operands) clear(static_cast<T*>(range.data), range.elems);
}

template <class T>
void add(const KernelCall& call) {
  T* y = call.data<T>(0);
  const T* x = call.data<const T>(1);
  put(y, call.operands[0].elems, true, [&](std::int64_t i) { return x[i]; });
}

template <class T>
void accumulate(const KernelCall& call) {
  for (std::size_t pair = 0; pair + 1 < call.operands.size(); pair += 2) {
    const T* source = call.data<const T>(pair);
    const OperandView& destination = call.operands[pair + 1];
    put(static_cast<T*>(destination.data), destination.elems, destination.adds(),
        [&](std::int64_t i) { return source[i]; });
  }
}

template void zero<float>(const KernelCall&);
template void zero<double>(const KernelCall&);
template void add<float>(const KernelCall&);
template void add<double>(const KernelCall&);
template void accumulate<float>(const KernelCall&);
template void accumulate<double>(const KernelCall&);

}  // namespace krigtune::KRIGTUNE_KERNELS
