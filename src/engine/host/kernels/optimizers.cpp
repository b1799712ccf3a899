#include <cmath>

#include "engine/host/kernels/control.h"
#include "engine/host/kernels/kernel_functions.h"

namespace krigtune::engine::KRIGTUNE_KERNELS {

// AdamW (Loshchilov and Hutter 2019, algorithm 2, schedule multiplier 1), with t counted from 1:
//
//   m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
//   p = p - lr (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon) + weight_decay p)
//
// With a control, t counts only the updates that were done, and g is multiplied by the control's factor. Padding
// elements have g = m = v = p = 0 and stay 0.

namespace {

template <class T>
struct Coefficients {
  T learning_rate, beta1, beta2, epsilon, decay, correct1, correct2, factor;

  Coefficients(const TrainingOptions& o, const UpdateControl& control) {
    const double t = control.updates;
    learning_rate = static_cast<T>(o.learning_rate);
    beta1 = static_cast<T>(o.beta1);
    beta2 = static_cast<T>(o.beta2);
    epsilon = static_cast<T>(o.epsilon);
    decay = static_cast<T>(o.weight_decay);
    correct1 = static_cast<T>(1.0 / (1.0 - std::pow(o.beta1, t)));
    correct2 = static_cast<T>(1.0 / (1.0 - std::pow(o.beta2, t)));
    factor = static_cast<T>(control.factor);
  }
};

template <class T>
void update_adamw(const Coefficients<T>& c, std::int64_t count, T* __restrict p, const T* __restrict g, T* __restrict m,
                  T* __restrict v) {
  for (std::int64_t i = 0; i < count; ++i) {
    const T gradient = c.factor * g[i];
    m[i] = c.beta1 * m[i] + (T(1) - c.beta1) * gradient;
    v[i] = c.beta2 * v[i] + (T(1) - c.beta2) * gradient * gradient;
    const T direction = m[i] * c.correct1 / (std::sqrt(v[i] * c.correct2) + c.epsilon);
    p[i] -= c.learning_rate * (direction + c.decay * p[i]);
  }
}

}  // namespace

template <class T>
void adamw(const KernelCall& call) {
  const UpdateControl control = update_control<T>(call, 4);
  if (control.factor == 0.0) return;
  const Coefficients<T> coefficients(call.context.options, control);
  for (std::size_t i = 0; i + 3 < call.operands.size(); i += 4) {
    update_adamw(coefficients, call.operands[i].elems, call.data<T>(i), call.data<const T>(i + 1), call.data<T>(i + 2),
                 call.data<T>(i + 3));
  }
}

template void adamw<float>(const KernelCall&);
template void adamw<double>(const KernelCall&);

// Stochastic gradient descent with momentum (Polyak 1964, in the form of Sutskever et al. 2013 that PyTorch uses), with
// mu = TrainingOptions::beta1 and decoupled weight decay as in AdamW:
//
//   m = mu m + g;  p = p - lr (m + weight_decay p)
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

}  // namespace krigtune::engine::KRIGTUNE_KERNELS
