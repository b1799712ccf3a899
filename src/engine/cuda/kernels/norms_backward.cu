// Gradients of layer and RMS normalisation (norms.cu), with g = dy gain:
//
//   layer: dx = (g - mean_j(g) - x^ mean_j(g x^)) / stddev;  dgain = sum_rows dy x^;  dbias = sum_rows dy
//   rms:   dx = (g - x^ mean_j(g x^)) / rms;                 dgain = sum_rows dy x^
//
// Without the operand gain, it is 1. Frozen parameters have no gradients.
//
// A block processes a slab of rows, one after another. A thread has the same columns of all of them, so that the sums
// over the slab's rows stay in its registers: dy and x are read once, and the next row is loaded while the block sums
// this one. The slabs' sums go through scratch memory (column_sums.h). There are as many slabs as an H100 can run at
// once, each of 8 rows or more. For rows that do not fit into registers there is one kernel for dx, which reads them
// twice, and one for each parameter.
#include <algorithm>

#include "engine/cuda/kernels/column_sums.h"
#include "engine/cuda/kernels/norm_rows.h"

namespace krigtune::cuda {
namespace {

struct Backward {
  Elements dy, x, gain, dx;  ///< gain: x if there is none
  const float* means;        ///< null: RMS
  const float* inverses;
  std::int64_t rows, h;
  bool has_gain;

  template <class At>
  __device__ Pack<At::width> factor(At at) const {
    if (has_gain) return gain(at);
    Pack<At::width> ones;
    for (float& one : ones.at) one = 1.0F;
    return ones;
  }
  __device__ float mean(std::int64_t row) const { return means == nullptr ? 0.0F : means[row]; }
};

Backward backward_of(const DeviceCall& call) {
  const bool centred = call.operation.kind == schedule::OpKind::kLayerNormBackward;
  const auto* stats = call.data<const float>(2);
  const bool has_gain = call.has(4);
  return {.dy = {call, 0},
          .x = {call, 1},
          .gain = {call, has_gain ? 4U : 1U},
          .dx = {call, 3},
          .means = centred ? stats : nullptr,
          .inverses = centred ? stats + call.shape().rows : stats,
          .rows = call.shape().rows,
          .h = call.shape().inner,
          .has_gain = has_gain};
}

/// The statistics of a row, and mean_j(g) and mean_j(g x^).
struct RowSums {
  float mean, inverse, g, gx;

  template <int kWidth>
  __device__ Pack<kWidth> normal(const Pack<kWidth>& x) const {
    return map([mean = mean, inverse = inverse](float v) { return (v - mean) * inverse; }, x);
  }
  template <int kWidth>
  __device__ Pack<kWidth> gradient(const Pack<kWidth>& dy, const Pack<kWidth>& gain, const Pack<kWidth>& normal) const {
    return map(
        [sums = *this](float each, float by, float x) { return sums.inverse * (each * by - sums.g - x * sums.gx); }, dy,
        gain, normal);
  }
  /// Sets g and gx from the parts of the block's threads.
  __device__ void combine(const Block& block, const Pack<2>& mine, const Backward& b) {
    const Pack<2> all = block.sum(mine);
    const auto count = static_cast<float>(b.h);
    g = b.means == nullptr ? 0.0F : all.at[0] / count;
    gx = all.at[1] / count;
  }
};

template <int kWidth>
__device__ inline void add_to(Pack<2>& sums, const Pack<kWidth>& dy, const Pack<kWidth>& gain,
                              const Pack<kWidth>& normal) {
  const Pack<kWidth> g = map([](float a, float b) { return a * b; }, dy, gain);
  sums.at[0] += total(g);
  sums.at[1] += total(map([](float a, float b) { return a * b; }, g, normal));
}

constexpr std::int64_t kMultiprocessors = 132;
constexpr int kSlabThreads(int packs) { return packs == 1 ? 768 : packs == 2 ? 512 : 256; }  // per multiprocessor

std::int64_t rows_of_slab(std::int64_t rows, std::int64_t h, int width) {
  constexpr std::int64_t kLeastRows = 8;
  const std::int64_t packs = packs_each(h, width);
  const std::int64_t slabs = kMultiprocessors * (kSlabThreads(static_cast<int>(packs)) / row_threads(h, width));
  const std::int64_t even = (rows + slabs - 1) / slabs;
  return even < kLeastRows ? kLeastRows : even;
}
std::int64_t slabs_of(std::int64_t rows, std::int64_t h, int width) {
  const std::int64_t slab_rows = rows_of_slab(rows, h, width);
  return (rows + slab_rows - 1) / slab_rows;
}

/// What a block reads of a row, as it is stored in memory.
template <class Row>
struct RowBits {
  using Bits = decltype(Elements().bits(typename Row::At{}));
  Bits dy[Row::kPacks], x[Row::kPacks];
  float mean, inverse;

  __device__ void load(const Backward& b, std::int64_t row) {
    mean = b.mean(row);
    inverse = b.inverses[row];
    Row::each(b.h, [&](auto at, int k) {
      dy[k] = b.dy.bits(at + row * b.h);
      x[k] = b.x.bits(at + row * b.h);
    });
  }
};

/// `partials` receives slabs x h sums for gain or, if there are 2 sums, slabs x 2 h: for gain, then for bias.
template <class Row>
__global__ void __launch_bounds__(kBlockThreads, kSlabThreads(Row::kPacks) / kBlockThreads)
    differentiate_slabs(Backward b, std::int64_t slab_rows, int sums, float* partials) {
  __shared__ float of_warps[Block::kWarpFloats];
  const Block block(nullptr, of_warps);
  Row dgain{};
  Row dbias{};
  const std::int64_t begin = blockIdx.x * slab_rows;
  const std::int64_t end = begin + slab_rows < b.rows ? begin + slab_rows : b.rows;
  RowBits<Row> next{};
  next.load(b, begin);
  for (std::int64_t row = begin; row < end; ++row) {
    RowSums of_row{next.mean, next.inverse, 0.0F, 0.0F};
    Row dy;
    Row normal;
    Row::each(b.h, [&](auto, int k) {
      dy.packs[k] = b.dy.of_bits(next.dy[k]);
      normal.packs[k] = of_row.normal(b.x.of_bits(next.x[k]));
    });
    if (row + 1 < end) next.load(b, row + 1);
    Pack<2> mine{};
    Row::each(b.h, [&](auto at, int k) { add_to(mine, dy.packs[k], b.factor(at), normal.packs[k]); });
    of_row.combine(block, mine, b);
    Row::each(b.h, [&](auto at, int k) {
      b.dx.put(at + row * b.h, of_row.gradient(dy.packs[k], b.factor(at), normal.packs[k]));
      const auto term = map([](float g, float x) { return g * x; }, dy.packs[k], normal.packs[k]);
      dgain.packs[k] = plus(dgain.packs[k], term);
      dbias.packs[k] = plus(dbias.packs[k], dy.packs[k]);
    });
  }
  if (sums == 0) return;
  const std::int64_t at_slab = blockIdx.x * sums * b.h;
  Row::each(b.h, [&](auto at, int k) {
    for (int i = 0; i < Row::kWidth; ++i) partials[at_slab + at.first + i] = dgain.packs[k].at[i];
    for (int i = 0; sums > 1 && i < Row::kWidth; ++i) partials[at_slab + b.h + at.first + i] = dbias.packs[k].at[i];
  });
}

struct PutBoth {
  Elements dgain, dbias;
  std::int64_t h;

  __device__ void operator()(std::int64_t /*slab*/, std::int64_t column, float sum) const {
    column < h ? dgain.put(column, sum) : dbias.put(column - h, sum);
  }
};

/// The gradients of parameters that an operation has: none, the gain's, or the bias's too.
struct ParameterGradients {
  int count;
  Elements dgain, dbias;

  explicit ParameterGradients(const DeviceCall& call)
      : count(call.has(6) && call.operation.kind == schedule::OpKind::kLayerNormBackward ? 2
              : call.has(5)                                                              ? 1
                                                                                         : 0) {
    if (count > 0) dgain = dbias = {call, 5};
    if (count > 1) dbias = {call, 6};
  }
};

void by_slabs(const DeviceCall& call, const Backward& b, const Walk& walk, const ParameterGradients& to) {
  const std::int64_t slab_rows = rows_of_slab(b.rows, b.h, walk.width);
  const std::int64_t slabs = slabs_of(b.rows, b.h, walk.width);
  with_held_row(b.h, walk, [&](auto row) {
    launch(call.queue, static_cast<unsigned>(slabs), row_threads(b.h, walk.width), 0,
           differentiate_slabs<decltype(row)>, b, slab_rows, to.count, call.scratch);
  });
  if (to.count > 0) sum_scratch_columns(call, slabs, to.count * b.h, PutBoth{to.dgain, to.dbias, b.h});
}

void by_columns(const DeviceCall& call, const Backward& b, const Walk& walk, const ParameterGradients& to) {
  if (to.count == 0) return;
  const auto gain_term = [=] __device__(std::int64_t row, auto at) {
    const RowSums stats{b.mean(row), b.inverses[row], 0.0F, 0.0F};
    return map([](float g, float x) { return g * x; }, b.dy(at + row * b.h), stats.normal(b.x(at + row * b.h)));
  };
  sum_rows(call, b.rows, b.h, walk, gain_term, to.dgain);
  if (to.count == 1) return;
  const auto bias_term = [=] __device__(std::int64_t row, auto at) { return b.dy(at + row * b.h); };
  sum_rows(call, b.rows, b.h, walk, bias_term, to.dbias);
}

void input_gradient(const DeviceCall& call, const Backward& b, const Walk& walk) {
  const auto body = [=] __device__(auto read, const Block& block, std::int64_t row) {
    const Elements dy = b.dy.from(row * b.h);
    RowSums sums{b.mean(row), b.inverses[row], 0.0F, 0.0F};
    read.load(b.h, b.x.from(row * b.h), [](auto) {});
    Pack<2> mine{};
    read.for_each(b.h, [&](auto at, const auto& x) { add_to(mine, dy(at), b.factor(at), sums.normal(x)); });
    sums.combine(block, mine, b);
    read.for_each(b.h, [&](auto at, const auto& x) {
      b.dx.put(at + row * b.h, sums.gradient(dy(at), b.factor(at), sums.normal(x)));
    });
  };
  with_read_row(walk, [&](auto row) { launch_norm_rows<decltype(row)>(call.queue, b.rows, kBlockThreads, body); });
}

}  // namespace

std::int64_t norm_backward_scratch(const plan::Operation& operation) {
  const std::int64_t rows = operation.shape.rows;
  const std::int64_t h = operation.shape.inner;
  std::int64_t floats = column_sums_scratch(rows, h);
  for (const int width : {8, 4}) {
    if (is_held(h, width)) floats = std::max(floats, slabs_of(rows, h, width) * 2 * h);
  }
  return floats;
}

void layer_norm_backward(const DeviceCall& call) {
  const Backward b = backward_of(call);
  const ParameterGradients gradients(call);
  const Walk walk = walk_of({b.dy, b.x, b.gain, b.dx}, b.h);
  if (is_held(b.h, walk.width)) return by_slabs(call, b, walk, gradients);
  by_columns(call, b, walk, gradients);
  input_gradient(call, b, walk);
}

void rms_norm_backward(const DeviceCall& call) { layer_norm_backward(call); }

}  // namespace krigtune::cuda
