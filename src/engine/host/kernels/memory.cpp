// Operations that only move or add elements.
#include <algorithm>

#include "engine/host/kernels/elementary.h"
#include "engine/host/kernels/kernel_functions.h"
#include "krigtune/rng.h"

namespace krigtune::engine::KRIGTUNE_KERNELS {

template <class T>
void zero(const KernelCall& call) {
  for (const OperandView& range : call.operands) clear(static_cast<T*>(range.data), range.elems);
}

template <class T>
void add(const KernelCall& call) {
  T* y = call.data<T>(0);
  const T* x = call.data<const T>(1);
  put(y, call.operands[0].elems, true, [&](std::int64_t i) { return x[i]; });
}

template <class T>
void accumulate(const KernelCall& call) {
  for (std::size_t pair = 0; pair + 1 < call.operands.size(); pair += 2) {
    const T* source = call.data<const T>(pair);
    const OperandView& destination = call.operands[pair + 1];
    put(static_cast<T*>(destination.data), destination.elems, destination.adds(),
        [&](std::int64_t i) { return source[i]; });
  }
}

template void zero<float>(const KernelCall&);
template void zero<double>(const KernelCall&);
template void add<float>(const KernelCall&);
template void add<double>(const KernelCall&);
template void accumulate<float>(const KernelCall&);
template void accumulate<double>(const KernelCall&);

// A synthetic corpus that can be learned: x_{t+1} = (5 x_t + 3) mod K with probability 9/10, else uniform, where K =
// min(vocabulary, 64). If K is a power of two, the rule visits all K tokens (Hull and Dobell 1962). Its entropy is
// about 0.1 ln K + 0.33 nats, compared with ln(vocabulary) before training. Sequence g of the whole job (counted over
// steps, micro-steps, ranks and the batch) is a function of (seed, g) alone, so a global batch contains the same
// sequences however it is split into micro-batches.
namespace {

constexpr std::int64_t kMostTokens = 64;
constexpr std::uint32_t kNoiseOf256 = 26;
constexpr std::uint64_t kCorpusKey = 0x636f72707573ULL;  // makes the corpus independent of the initial values

void fill_sequence(std::uint64_t seed, std::uint64_t sequence, std::int64_t vocabulary, std::int64_t seq_len,
                   std::int32_t* tokens, std::int32_t* targets) {
  Rng rng(seed ^ kCorpusKey, sequence);
  const auto distinct = static_cast<std::uint32_t>(std::min(vocabulary, kMostTokens));
  std::uint32_t current = rng() % distinct;
  for (std::int64_t t = 0; t < seq_len; ++t) {
    const std::uint32_t draw = rng();
    const bool noise = (draw & 0xFFU) < kNoiseOf256;
    const std::uint32_t next = noise ? (draw >> 8U) % distinct : (5 * current + 3) % distinct;
    tokens[t] = static_cast<std::int32_t>(current);
    targets[t] = static_cast<std::int32_t>(next);
    current = next;
  }
}

}  // namespace

template <class T>
void load_batch(const KernelCall& call) {
  const plan::Shape& shape = call.shape();
  const StepContext& at = call.context;
  const std::int64_t micro_batches = (at.step * at.micro_steps + call.operation.micro_step) * at.ranks + at.rank;
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    fill_sequence(at.options.seed, static_cast<std::uint64_t>(micro_batches * shape.batch + b), shape.outer, shape.seq,
                  call.integers(0) + b * shape.seq, call.integers(1) + b * shape.seq);
  }
}

template void load_batch<float>(const KernelCall&);
template void load_batch<double>(const KernelCall&);

}  // namespace krigtune::engine::KRIGTUNE_KERNELS
