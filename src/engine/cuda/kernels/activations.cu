// GELU in its tanh form (Hendrycks and Gimpel 2016) and SwiGLU (Shazeer 2020), s(x) = 1 / (1 + exp(-x)):
//
//   gelu:    y = x g,  g = s(2 u),  u = sqrt(2 / pi) (x + 0.044715 x^3);  dy/dx = g + 2 x g (1 - g) du/dx
//   swiglu:  y = a s(a) b with a = gate, b = up;  da = dy b s (1 + a (1 - s));  db = dy a s
#include "cuda/kernels/elements.h"

namespace krigtune::cuda {
namespace {

constexpr float kRoot = 0.79788456080286535588F;  // sqrt(2 / pi)
constexpr float kCubic = 0.044715F;

__device__ inline float logistic(float x) { return 1.0F / (1.0F + expf(-x)); }
__device__ inline float gelu_gate(float x) { return logistic(2.0F * kRoot * (x + kCubic * x * x * x)); }

}  // namespace

void gelu_forward(const DeviceCall& call) {
  const Elements x(call, 0);
  const Elements y(call, 1);
  launch_elements(call.queue, call.shape().rows * call.shape().inner,
                  [=] __device__(std::int64_t e) { y.put(e, x(e) * gelu_gate(x(e))); });
}

void gelu_backward(const DeviceCall& call) {
  const Elements all_x(call, 0);
  const Elements dy(call, 1);
  launch_elements(call.queue, call.shape().rows * call.shape().inner, [=] __device__(std::int64_t e) {
    const float x = all_x(e);
    const float g = gelu_gate(x);
    const float du = kRoot * (1.0F + 3.0F * kCubic * x * x);
    dy.set(e, dy(e) * (g + 2.0F * x * g * (1.0F - g) * du));
  });
}

void swiglu_forward(const DeviceCall& call) {
  const std::int64_t width = call.shape().inner;
  const Elements gate_up(call, 0);
  const Elements y(call, 1);
  launch_elements(call.queue, call.shape().rows * width, [=] __device__(std::int64_t e) {
    const std::int64_t at = e / width * 2 * width + e % width;
    const float a = gate_up(at);
    y.put(e, a * logistic(a) * gate_up(at + width));
  });
}

void swiglu_backward(const DeviceCall& call) {
  const std::int64_t width = call.shape().inner;
  const Elements gate_up(call, 0);
  const Elements dy(call, 1);
  const Elements dgate_up(call, 2);
  launch_elements(call.queue, call.shape().rows * width, [=] __device__(std::int64_t e) {
    const std::int64_t at = e / width * 2 * width + e % width;
    const float a = gate_up(at);
    const float b = gate_up(at + width);
    const float s = logistic(a);
    const float g = dy(e);
    dgate_up.put(at, g * b * s * (1.0F + a * (1.0F - s)));
    dgate_up.put(at + width, g * a * s);
  });
}

}  // namespace krigtune::cuda
