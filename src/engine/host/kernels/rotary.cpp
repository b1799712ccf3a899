// Rotary positions (Su et al. 2021, "RoFormer") in the arrangement of Llama: within a head of d elements, (x_i,
// x_{i + d/2}) is turned by the angle t theta^(-2 i / d), theta = 10000, t the place in the sequence:
//
//   x_i' = x_i cos - x_{i + d/2} sin;  x_{i + d/2}' = x_{i + d/2} cos + x_i sin
//
// A rotation's transpose is its inverse: backward turns the other way.
#include <cmath>

#include "host/kernels/kernel_functions.h"

namespace krigtune::KRIGTUNE_KERNELS {
namespace {

constexpr double kTheta = 10000.0;

template <class T>
void turn(T* head, std::int64_t half, const T* cosines, const T* sines) {
  for (std::int64_t i = 0; i < half; ++i) {
    const T low = head[i];
    const T high = head[i + half];
    head[i] = low * cosines[i] - high * sines[i];
    head[i + half] = high * cosines[i] + low * sines[i];
  }
}

template <class T>
void turn_all(const KernelCall& call, double direction) {
  const Shape& s = call.shape();
  const std::int64_t d = s.inner / s.heads;
  const std::int64_t half = d / 2;
  T* cosines = static_cast<T*>(call.scratch);
  T* sines = cosines + half;
  for (std::int64_t t = 0; t < s.seq; ++t) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(t) * std::pow(kTheta, -2.0 * static_cast<double>(i) / static_cast<double>(d));
      cosines[i] = static_cast<T>(std::cos(angle));
      sines[i] = static_cast<T>(direction * std::sin(angle));
    }
    for (std::int64_t b = 0; b < s.batch; ++b) {
      T* row = call.data<T>(0) + (b * s.seq + t) * (s.heads + 2 * s.kv_heads) * d;
      for (std::int64_t head = 0; head < s.heads + s.kv_heads; ++head) turn(row + head * d, half, cosines, sines);
    }
  }
}

}  // namespace

template <class T>
void rotary_forward(const KernelCall& call) {
  turn_all<T>(call, 1.0);
}

template <class T>
void rotary_backward(const KernelCall& call) {
  turn_all<T>(call, -1.0);
}

std::int64_t rotary_scratch(const Shape& shape) { return shape.inner / shape.heads; }

template void rotary_forward<float>(const KernelCall&);
template void rotary_forward<double>(const KernelCall&);
template void rotary_backward<float>(const KernelCall&);
template void rotary_backward<double>(const KernelCall&);

}  // namespace krigtune::KRIGTUNE_KERNELS
