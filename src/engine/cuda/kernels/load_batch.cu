// The synthetic corpus of host/kernels/load_batch.cpp, token for token; one thread writes one sequence.
#include "cuda/kernels/elements.h"
#include "cuda/kernels/philox.h"

namespace krigtune::cuda {
namespace {

constexpr std::int64_t kMostTokens = 64;
constexpr std::uint32_t kNoiseOf256 = 26;
constexpr std::uint64_t kCorpusKey = 0x636f72707573ULL;

}  // namespace

void load_batch(const DeviceCall& call) {
  const Shape& s = call.shape();
  const StepContext& at = call.context;
  const FirstSequence first(call);
  const std::int64_t seq = s.seq;
  const auto distinct = static_cast<std::uint32_t>(s.outer < kMostTokens ? s.outer : kMostTokens);
  const std::uint64_t seed = at.options.seed ^ kCorpusKey;
  auto* tokens = call.data<std::int32_t>(0);
  auto* targets = call.data<std::int32_t>(1);
  launch_elements(call.queue, s.batch, [=] __device__(std::int64_t b) {
    DeviceRng rng(seed, static_cast<std::uint64_t>(first() + b));
    std::uint32_t current = rng.next() % distinct;
    for (std::int64_t t = b * seq; t < (b + 1) * seq; ++t) {
      const std::uint32_t draw = rng.next();
      const bool noise = (draw & 0xFFU) < kNoiseOf256;
      const std::uint32_t next = noise ? (draw >> 8U) % distinct : (5 * current + 3) % distinct;
      tokens[t] = static_cast<std::int32_t>(current);
      targets[t] = static_cast<std::int32_t>(next);
      current = next;
    }
  });
}

}  // namespace krigtune::cuda
