// Layer normalisation (Ba, Kiros and Hinton 2016) over the last axis, h elements, and RMS normalisation (Zhang and
// Sennrich 2019):
//
//   layer: x^ = (x - mean) / stddev,  stddev = sqrt(variance + 1e-5),  y = gain x^ + bias
//   rms:   x^ = x / rms,  rms = sqrt(mean_j(x^2) + 1e-5),  y = gain x^
//
// Without the operands gain and bias, these are 1 and 0.
//
// A block normalises one row. The mean is known before the squares of x - mean are added, so that nothing cancels. If x
// is the sum of a residual connection, x <- x + branch, one kernel does both: x is read once and written once, and it
// is rounded before it is normalised, as if it had been read again.
#include "engine/cuda/kernels/norm_rows.h"

namespace krigtune::cuda {
namespace {

struct Forward {
  Elements x, y;
  Elements gain, bias;  ///< x if there are none
  Elements branch;      ///< added to x first if `fused`
  float* means;         ///< null: RMS
  float* inverses;
  std::int64_t rows, h;
  bool has_gain, has_bias, fused;

  bool centred() const { return means != nullptr; }
};

Forward forward_of(const DeviceCall& call) {
  const std::int64_t rows = call.shape().rows;
  const bool centred = call.operation.kind == schedule::OpKind::kLayerNormForward;
  const bool has_gain = call.has(3);
  const bool has_bias = centred && call.has(4);
  auto* stats = call.data<float>(2);
  return {.x = {call, 0},
          .y = {call, 1},
          .gain = {call, has_gain ? 3U : 0U},
          .bias = {call, has_bias ? 4U : 0U},
          .branch = {call, 0},
          .means = centred ? stats : nullptr,
          .inverses = centred ? stats + rows : stats,
          .rows = rows,
          .h = call.shape().inner,
          .has_gain = has_gain,
          .has_bias = has_bias,
          .fused = false};
}

/// Loads the row's elements of x, with the branch added.
template <class Row>
__device__ inline void load(const Forward& f, std::int64_t row, Row& held) {
  const Elements x = f.x.from(row * f.h);
  const Elements branch = f.branch.from(row * f.h);
  held.load(f.h, x, [&](auto at) {
    if (!f.fused) return x(at);
    const auto sum = map([&](float a, float b) { return x.as_stored(a + b); }, x(at), branch(at));
    x.set(at, sum);
    return sum;
  });
}

template <class Row>
__device__ inline float mean_of(const Row& held, const Block& block, std::int64_t h) {
  Pack<1> mine{};
  held.for_each(h, [&](auto, const auto& x) { mine.at[0] += total(x); });
  return block.sum(mine).at[0] / static_cast<float>(h);
}
template <class Row>
__device__ inline float mean_square_of(const Row& held, float centre, const Block& block, std::int64_t h) {
  Pack<1> mine{};
  held.for_each(h, [&](auto, const auto& x) {
    mine.at[0] += total(map([=](float v) { return (v - centre) * (v - centre); }, x));
  });
  return block.sum(mine).at[0] / static_cast<float>(h);
}

void normalise(const DeviceCall& call, const Forward& f, const Walk& walk) {
  const bool centred = f.centred();
  const auto body = [=] __device__(auto held, const Block& block, std::int64_t row) {
    load(f, row, held);
    const float mean = centred ? mean_of(held, block, f.h) : 0.0F;
    const float inverse = 1.0F / sqrtf(mean_square_of(held, mean, block, f.h) + kNormEpsilon);
    const Elements y = f.y.from(row * f.h);
    held.for_each(f.h, [&](auto at, const auto& x) {
      auto result = map([=](float v) { return (v - mean) * inverse; }, x);
      if (f.has_gain) result = map([](float v, float gain) { return v * gain; }, result, f.gain(at));
      y.put(at, f.has_bias ? plus(result, f.bias(at)) : result);
    });
    if (threadIdx.x != 0) return;
    if (centred) f.means[row] = mean;
    f.inverses[row] = inverse;
  };
  const auto start = [&](auto row) {
    using Row = decltype(row);
    const unsigned threads = is_held(f.h, walk.width) ? row_threads(f.h, walk.width) : kBlockThreads;
    launch_norm_rows<Row>(call.queue, f.rows, threads, body);
  };
  if (is_held(f.h, walk.width)) {
    with_held_row(f.h, walk, start);
  } else {
    with_read_row(walk, start);
  }
}

}  // namespace

void layer_norm_forward(const DeviceCall& call) {
  const Forward f = forward_of(call);
  normalise(call, f, walk_of({f.x, f.gain, f.bias, f.y}, f.h));
}

void rms_norm_forward(const DeviceCall& call) { layer_norm_forward(call); }

bool add_norm_fits(const DeviceCall& add, const DeviceCall& norm) {
  const schedule::OpKind kind = norm.operation.kind;
  if (add.operation.kind != schedule::OpKind::kAdd || add.operands.size() != 2) return false;
  if (kind != schedule::OpKind::kLayerNormForward && kind != schedule::OpKind::kRmsNormForward) return false;
  const engine::OperandView& sum = add.operands[0];
  const engine::OperandView& branch = add.operands[1];
  const engine::OperandView& x = norm.operands[0];
  if (sum.data != x.data || sum.type != x.type || sum.elems != norm.shape().rows * norm.shape().inner) return false;
  // One after the other, the operations read the branch before the normalisation writes anything.
  for (std::size_t i = 1; i < norm.operands.size(); ++i) {
    if (overlap(norm.operands[i], branch) || overlap(norm.operands[i], sum)) return false;
  }
  return !overlap(sum, branch);
}

void add_norm_forward(const DeviceCall& add, const DeviceCall& norm) {
  Forward f = forward_of(norm);
  f.branch = {add, 1};
  f.fused = true;
  normalise(norm, f, walk_of({f.x, f.gain, f.bias, f.y, f.branch}, f.h));
}

}  // namespace krigtune::cuda
