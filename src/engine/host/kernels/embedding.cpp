// x[b, t] = table[token[b, t]] + positions[t]; backward adds rows in the order of the tokens.
#include <stdexcept>
#include <string>

#include "host/kernels/elementary.h"
#include "host/kernels/kernel.h"

namespace krigtune {
namespace {

std::int64_t row_of(std::int32_t token, const OperandView& table, std::int64_t hidden) {
  if (token < 0 || token >= table.elems / hidden) {
    throw std::runtime_error("token " + std::to_string(token) + " is not in the embedding table");
  }
  return token;
}

}  // namespace

template <class T>
void embedding_forward(const KernelCall& call) {
  const Shape& shape = call.shape();
  const std::int64_t h = shape.inner;
  const std::int32_t* tokens = call.integers(0);
  for (std::int64_t row = 0; row < shape.batch * shape.seq; ++row) {
    const T* word = call.data<const T>(1) + row_of(tokens[row], call.operands[1], h) * h;
    const T* position = call.data<const T>(2) + row % shape.seq * h;
    put(call.data<T>(3) + row * h, h, call.adds(3), [&](std::int64_t j) { return word[j] + position[j]; });
  }
}

template <class T>
void embedding_backward(const KernelCall& call) {
  const Shape& shape = call.shape();
  const std::int64_t h = shape.inner;
  const std::int32_t* tokens = call.integers(0);
  const T* dx = call.data<const T>(1);
  T* dtable = call.data<T>(2);
  T* dpositions = call.data<T>(3);
  if (!call.adds(2)) clear(dtable, call.operands[2].elems);
  if (!call.adds(3)) clear(dpositions, call.operands[3].elems);
  for (std::int64_t row = 0; row < shape.batch * shape.seq; ++row) {
    const T* gradient = dx + row * h;
    const auto value = [&](std::int64_t j) { return gradient[j]; };
    put(dtable + row_of(tokens[row], call.operands[2], h) * h, h, true, value);
    put(dpositions + row % shape.seq * h, h, true, value);
  }
}

template void embedding_forward<float>(const KernelCall&);
template void embedding_forward<double>(const KernelCall&);
template void embedding_backward<float>(const KernelCall&);
template void embedding_backward<double>(const KernelCall&);

}  // namespace krigtune
