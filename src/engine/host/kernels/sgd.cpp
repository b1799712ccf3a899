// Stochastic gradient descent with momentum (Polyak 1964, in the form of Sutskever et al. 2013 that PyTorch has), mu =
// TrainingOptions::beta1, and weight decay decoupled from it as in AdamW:
//
//   m = mu m + g;  p = p - lr (m + weight_decay p)
#include "host/kernels/control.h"
#include "host/kernels/kernel_functions.h"

namespace krigtune::KRIGTUNE_KERNELS {
namespace {

template <class T>
struct SgdCoefficients {
  T learning_rate, momentum, decay, factor;
};

template <class T>
void update_sgd(const SgdCoefficients<T>& c, std::int64_t count, T* __restrict p, const T* __restrict g,
                T* __restrict m) {
  for (std::int64_t i = 0; i < count; ++i) {
    m[i] = c.momentum * m[i] + c.factor * g[i];
    p[i] -= c.learning_rate * (m[i] + c.decay * p[i]);
  }
}

}  // namespace

template <class T>
void sgd(const KernelCall& call) {
  const TrainingOptions& o = call.context.options;
  const UpdateControl control = update_control<T>(call, 3);
  if (control.factor == 0.0) return;
  const SgdCoefficients<T> coefficients{static_cast<T>(o.learning_rate), static_cast<T>(o.beta1),
                                        static_cast<T>(o.weight_decay), static_cast<T>(control.factor)};
  for (std::size_t i = 0; i + 2 < call.operands.size(); i += 3) {
    update_sgd(coefficients, call.operands[i].elems, call.data<T>(i), call.data<const T>(i + 1), call.data<T>(i + 2));
  }
}

template void sgd<float>(const KernelCall&);
template void sgd<double>(const KernelCall&);

}  // namespace krigtune::KRIGTUNE_KERNELS
