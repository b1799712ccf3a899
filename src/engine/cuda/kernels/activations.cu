// GELU in its tanh form (Hendrycks and Gimpel 2016) and SwiGLU (Shazeer 2020), with s(x) = 1 / (1 + exp(-x)):
//
//   gelu:    y = x g,  g = s(2 u),  u = sqrt(2 / pi) (x + 0.044715 x^3);  dy/dx = g + 2 x g (1 - g) du/dx
//   swiglu:  y = a s(a) b with a = gate, b = up;  da = dy b s (1 + a (1 - s));  db = dy a s
//
// The fast exponential and division have an error of 2 units in the last place, and exp(x) one of |x| / 2 units more
// (CUDA programming guide, "Intrinsic functions"). Where that is much, s is nearly 0 or 1.
#include "engine/cuda/kernels/elements.h"

namespace krigtune::cuda {
namespace {

constexpr float kRoot = 0.79788456080286535588F;  // sqrt(2 / pi)
constexpr float kCubic = 0.044715F;

__device__ inline float logistic(float x) { return __fdividef(1.0F, 1.0F + __expf(-x)); }
__device__ inline float gelu_gate(float x) { return logistic(2.0F * kRoot * (x + kCubic * x * x * x)); }

__device__ inline float gelu(float x) { return x * gelu_gate(x); }
__device__ inline float gelu_gradient(float x, float dy) {
  const float g = gelu_gate(x);
  const float du = kRoot * (1.0F + 3.0F * kCubic * x * x);
  return dy * (g + 2.0F * x * g * (1.0F - g) * du);
}

__device__ inline float swiglu(float a, float b) { return a * logistic(a) * b; }
__device__ inline float gate_gradient(float a, float b, float dy) {
  const float s = logistic(a);
  return dy * b * s * (1.0F + a * (1.0F - s));
}

}  // namespace

void gelu_forward(const DeviceCall& call) {
  const Elements x(call, 0);
  const Elements y(call, 1);
  launch_packs(call.queue, call.shape().rows * call.shape().inner, {x, y},
               [=] __device__(auto at) { y.put(at, map(gelu, x(at))); });
}

void gelu_backward(const DeviceCall& call) {
  const Elements x(call, 0);
  const Elements dy(call, 1);
  launch_packs(call.queue, call.shape().rows * call.shape().inner, {x, dy},
               [=] __device__(auto at) { dy.set(at, map(gelu_gradient, x(at), dy(at))); });
}

void swiglu_forward(const DeviceCall& call) {
  const std::int64_t width = call.shape().inner;
  const Elements gate_up(call, 0);
  const Elements y(call, 1);
  launch_row_packs(call.queue, call.shape().rows, width, {gate_up, y}, [=] __device__(std::int64_t row, auto at) {
    const auto gate = at + 2 * row * width;
    y.put(at + row * width, map(swiglu, gate_up(gate), gate_up(gate + width)));
  });
}

void swiglu_backward(const DeviceCall& call) {
  const std::int64_t width = call.shape().inner;
  const Elements gate_up(call, 0);
  const Elements all_dy(call, 1);
  const Elements dgate_up(call, 2);
  launch_row_packs(
      call.queue, call.shape().rows, width, {gate_up, all_dy, dgate_up}, [=] __device__(std::int64_t row, auto at) {
        const auto gate = at + 2 * row * width;
        const auto a = gate_up(gate);
        const auto b = gate_up(gate + width);
        const auto dy = all_dy(at + row * width);
        dgate_up.put(gate, map(gate_gradient, a, b, dy));
        dgate_up.put(gate + width, map([](float each_a, float g) { return g * each_a * logistic(each_a); }, a, dy));
      });
}

}  // namespace krigtune::cuda
