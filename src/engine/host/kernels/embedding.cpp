// x[t] = table[token[t]]; backward adds rows in the order of the tokens. A table that is split over the tensor group
// holds the tokens [rank * outer, (rank + 1) * outer): the others give 0, and no gradient.
// Positions: x[t] += positions[t mod seq].
#include "host/kernels/elementary.h"
#include "host/kernels/kernel_functions.h"

namespace krigtune::KRIGTUNE_KERNELS {
namespace {

// The row of this rank's part of the table, -1 if another rank holds it.
std::int64_t row_of(std::int32_t token, const KernelCall& call) {
  const std::int64_t rows = call.shape().outer;
  const std::int64_t all = rows * call.context.tensor_ranks;
  if (token < 0 || token >= all) {
    throw_not_in("token", token, "the embedding table");
  }
  const std::int64_t row = token - call.context.tensor_rank * rows;
  return row >= 0 && row < rows ? row : -1;
}

// The place in the sequence of this rank's first row.
std::int64_t first_row(const KernelCall& call) {
  const Shape& s = call.shape();
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
  const Shape& s = call.shape();
  const T* positions = call.data<const T>(1);
  for (std::int64_t t = 0; t < s.rows; ++t) {
    const T* position = positions + (first_row(call) + t) % s.seq * s.inner;
    put(call.data<T>(0) + t * s.inner, s.inner, true, [&](std::int64_t j) { return position[j]; });
  }
}

template <class T>
void positions_backward(const KernelCall& call) {
  const Shape& s = call.shape();
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

}  // namespace krigtune::KRIGTUNE_KERNELS
