// x[t] = table[token[t]]; backward adds rows in the order of the tokens. If the table is split over the tensor group, a
// rank has the tokens [rank * outer, (rank + 1) * outer); other tokens give 0 and no gradient. Positions: x[t] +=
// positions[t mod seq].
#include <cmath>

#include "engine/host/kernels/elementary.h"
#include "engine/host/kernels/kernel_functions.h"

namespace krigtune::engine::KRIGTUNE_KERNELS {
namespace {

// Returns the token's row in this rank's part of the table, or -1 if another rank has it.
std::int64_t row_of(std::int32_t token, const KernelCall& call) {
  const std::int64_t rows = call.shape().outer;
  const std::int64_t all = rows * call.context.tensor_ranks;
  if (token < 0 || token >= all) {
    throw_not_in("token", token, "the embedding table");
  }
  const std::int64_t row = token - call.context.tensor_rank * rows;
  return row >= 0 && row < rows ? row : -1;
}

// Returns the position in the sequence of this rank's first row.
std::int64_t first_row(const KernelCall& call) {
  const plan::Shape& s = call.shape();
  return s.rows < s.batch * s.seq ? call.context.tensor_rank * s.rows : 0;
}

}  // namespace

template <class T>
void embedding_forward(const KernelCall& call) {
  const std::int64_t h = call.shape().inner;
  const std::int32_t* tokens = call.integers(0);
  const T* table = call.data<const T>(1);
  for (std::int64_t t = 0; t < call.shape().rows; ++t) {
    const std::int64_t row = row_of(tokens[t], call);
    put(call.data<T>(2) + t * h, h, call.adds(2), [&](std::int64_t j) { return row < 0 ? T(0) : table[row * h + j]; });
  }
}

template <class T>
void embedding_backward(const KernelCall& call) {
  const std::int64_t h = call.shape().inner;
  const std::int32_t* tokens = call.integers(0);
  const T* dx = call.data<const T>(1);
  T* dtable = call.data<T>(2);
  if (!call.adds(2)) clear(dtable, call.operands[2].elems);
  for (std::int64_t t = 0; t < call.shape().rows; ++t) {
    const std::int64_t row = row_of(tokens[t], call);
    if (row >= 0) put(dtable + row * h, h, true, [&](std::int64_t j) { return dx[t * h + j]; });
  }
}

template <class T>
void positions_forward(const KernelCall& call) {
  const plan::Shape& s = call.shape();
  const T* positions = call.data<const T>(1);
  for (std::int64_t t = 0; t < s.rows; ++t) {
    const T* position = positions + (first_row(call) + t) % s.seq * s.inner;
    put(call.data<T>(0) + t * s.inner, s.inner, true, [&](std::int64_t j) { return position[j]; });
  }
}

template <class T>
void positions_backward(const KernelCall& call) {
  const plan::Shape& s = call.shape();
  const T* dx = call.data<const T>(0);
  T* dpositions = call.data<T>(1);
  if (!call.adds(1)) clear(dpositions, call.operands[1].elems);
  for (std::int64_t t = 0; t < s.rows; ++t) {
    put(dpositions + (first_row(call) + t) % s.seq * s.inner, s.inner, true,
        [&](std::int64_t j) { return dx[t * s.inner + j]; });
  }
}

template void embedding_forward<float>(const KernelCall&);
template void embedding_forward<double>(const KernelCall&);
template void embedding_backward<float>(const KernelCall&);
template void embedding_backward<double>(const KernelCall&);
template void positions_forward<float>(const KernelCall&);
template void positions_forward<double>(const KernelCall&);
template void positions_backward<float>(const KernelCall&);
template void positions_backward<double>(const KernelCall&);

// Rotary positions (Su et al. 2021, "RoFormer") in Llama's arrangement: within a head of d elements, (x_i, x_{i + d/2})
// is rotated by the angle t theta^(-2 i / d), theta = 10000, where t is the position in the sequence:
//
//   x_i' = x_i cos - x_{i + d/2} sin;  x_{i + d/2}' = x_{i + d/2} cos + x_i sin
//
// The transpose of a rotation is its inverse, so backward rotates the other way.
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
  const plan::Shape& s = call.shape();
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

std::int64_t rotary_scratch(const plan::Shape& shape) { return shape.inner / shape.heads; }

template void rotary_forward<float>(const KernelCall&);
template void rotary_forward<double>(const KernelCall&);
template void rotary_backward<float>(const KernelCall&);
template void rotary_backward<double>(const KernelCall&);

}  // namespace krigtune::engine::KRIGTUNE_KERNELS
