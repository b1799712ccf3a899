// Rotary positions (Su et al. 2021) in the arrangement of Llama: within a head of d elements, (x_i, x_{i + d/2}) is
// turned by the angle t theta^(-2 i / d), theta = 10000, t the place in the sequence; backward turns the other way. The
// angle is computed in fp64: at t = 4096 an fp32 angle is off by 1e-4.
#include "cuda/kernels/elements.h"

namespace krigtune::cuda {
namespace {

constexpr double kTheta = 10000.0;

void turn_all(const DeviceCall& call, float direction) {
  const Shape& s = call.shape();
  const std::int64_t d = s.inner / s.heads;
  const std::int64_t half = d / 2;
  const std::int64_t kv_heads = s.kv_heads > 0 ? s.kv_heads : s.heads;
  const std::int64_t turned = s.heads + kv_heads;
  const std::int64_t width = (s.heads + 2 * kv_heads) * d;
  const std::int64_t seq = s.seq;
  const Elements qkv(call, 0);
  launch_elements(call.queue, s.batch * seq * turned * half, [=] __device__(std::int64_t e) {
    const std::int64_t i = e % half;
    const std::int64_t row = e / half / turned;
    const double power = -2.0 * static_cast<double>(i) / static_cast<double>(d);
    const double angle = static_cast<double>(row % seq) * pow(kTheta, power);
    const auto cosine = static_cast<float>(cos(angle));
    const float sine = direction * static_cast<float>(sin(angle));
    const std::int64_t at = row * width + e / half % turned * d + i;
    const float low = qkv(at);
    const float high = qkv(at + half);
    qkv.set(at, low * cosine - high * sine);
    qkv.set(at + half, high * cosine + low * sine);
  });
}

}  // namespace

void rotary_forward(const DeviceCall& call) { turn_all(call, 1.0F); }
void rotary_backward(const DeviceCall& call) { turn_all(call, -1.0F); }

}  // namespace krigtune::cuda
