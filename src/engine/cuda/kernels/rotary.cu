// Rotary positions (Su et al. 2021) in the arrangement of Llama: within a head of d elements, (x_i, x_{i + d/2}) is
// turned by the angle t theta^(-2 i / d), theta = 10000, t the place in the sequence; backward turns the other way. The
// angle is computed in fp64, because at t = 4096 an fp32 angle is off by 1e-4; but only once for each (t, i), by a
// kernel that makes a table of cosines and sines for all batches and heads.
#include "cuda/kernels/packs.h"

namespace krigtune::cuda {
namespace {

constexpr double kTheta = 10000.0;

/// cosines: seq x half in scratch memory, then sines.
void make_table(const DeviceCall& call, std::int64_t half) {
  const std::int64_t count = call.shape().seq * half;
  float* cosines = call.scratch;
  launch_elements(call.queue, count, [=] __device__(std::int64_t e) {
    const double power = -static_cast<double>(e % half) / static_cast<double>(half);
    const double angle = static_cast<double>(e / half) * pow(kTheta, power);
    cosines[e] = static_cast<float>(cos(angle));
    cosines[count + e] = static_cast<float>(sin(angle));
  });
}

void turn_all(const DeviceCall& call, float direction) {
  const Shape& s = call.shape();
  const std::int64_t d = s.inner / s.heads;
  const std::int64_t half = d / 2;
  const std::int64_t kv_heads = s.kv_heads > 0 ? s.kv_heads : s.heads;
  const std::int64_t turned = s.heads + kv_heads;
  const std::int64_t width = (s.heads + 2 * kv_heads) * d;
  const std::int64_t seq = s.seq;
  const Elements qkv(call, 0);
  const Elements cosines(call.scratch, DType::kFp32, false);
  make_table(call, half);
  launch_row_packs(call.queue, s.batch * seq * turned, half, {qkv}, [=] __device__(std::int64_t row, auto at) {
    const std::int64_t token = row / turned;
    const auto low_at = at + token * width + row % turned * d;
    const Place<decltype(at)::width> angle_at{at.first + token % seq * half};  // the table is of fp32
    const auto low = qkv(low_at);
    const auto high = qkv(low_at + half);
    const auto cosine = cosines(angle_at);
    const auto sine = map([=](float v) { return direction * v; }, cosines(angle_at + seq * half));
    qkv.set(low_at, map([](float x, float y, float c, float v) { return x * c - y * v; }, low, high, cosine, sine));
    qkv.set(low_at + half,
            map([](float x, float y, float c, float v) { return y * c + x * v; }, low, high, cosine, sine));
  });
}

}  // namespace

std::int64_t rotary_scratch(const Operation& operation) {
  const Shape& s = operation.shape;
  return s.seq * (s.inner / s.heads / 2) * 2;
}

void rotary_forward(const DeviceCall& call) { turn_all(call, 1.0F); }
void rotary_backward(const DeviceCall& call) { turn_all(call, -1.0F); }

}  // namespace krigtune::cuda
