// Operations that only move or add elements.
#include "engine/cuda/kernels/device.h"
#include "engine/cuda/kernels/device_kernel.h"
#include "engine/cuda/kernels/elements.h"
#include "engine/cuda/kernels/philox.h"

namespace krigtune::cuda {
namespace {

std::int64_t bytes_of(const engine::OperandView& view) { return view.elems * schedule::size_bytes(view.type); }

}  // namespace

void zero(const DeviceCall& call) {
  for (const engine::OperandView& range : call.operands) clear_bytes(call.queue, range.data, bytes_of(range));
}

void copy(const DeviceCall& call) {
  for (std::size_t i = 0; i + 1 < call.operands.size(); i += 2) {
    const engine::OperandView& source = call.operands[i];
    if (source.type == call.operands[i + 1].type) {
      copy_bytes(call.queue, source.data, call.operands[i + 1].data, bytes_of(source));
      continue;
    }
    const Elements from(call, i);
    const Elements to(call, i + 1);
    launch_packs(call.queue, source.elems, {from, to}, [=] __device__(auto at) { to.set(at, from(at)); });
  }
}

void accumulate(const DeviceCall& call) {
  for (std::size_t i = 0; i + 1 < call.operands.size(); i += 2) {
    const Elements from(call, i);
    const Elements to(call, i + 1);
    launch_packs(call.queue, call.operands[i + 1].elems, {from, to}, [=] __device__(auto at) { to.put(at, from(at)); });
  }
}

void add(const DeviceCall& call) {
  const Elements y(call, 0);
  const Elements x(call, 1);
  launch_packs(call.queue, call.operands[0].elems, {y, x}, [=] __device__(auto at) { y.add(at, x(at)); });
}

// Random-looking numbers, for operations that are timed before there are real ones: a matrix product of zeros takes an
// eighth less time than one of numbers (less power, higher clocks). The 16 bits s01111110mmmmmmm, with s and m drawn,
// are a bf16 in +-[1/2, 1) and an fp16 in +-[1.75, 1.87]; two of them are an fp32 in +-[1/2, 1).

void fill_numbers(void* data, std::int64_t bytes, Queue queue) {
  constexpr std::uint32_t kDrawn = 0x807F807FU;
  constexpr std::uint32_t kSize = 0x3F003F00U;
  constexpr std::int64_t kDraw = sizeof(Words);
  auto* words = static_cast<Words*>(data);
  launch_elements(queue, bytes / kDraw, [=] __device__(std::int64_t i) {
    Words drawn = philox({{static_cast<std::uint32_t>(i), 0, 0, 0}}, 0, 0);
    for (std::uint32_t& word : drawn.at) word = (word & kDrawn) | kSize;
    words[i] = drawn;
  });
}

// The number of the step is kept on the device, so that a captured step can be replayed as the next one.

void count_step(std::int64_t* step, Queue queue) {
  launch_elements(queue, 1, [=] __device__(std::int64_t) { ++*step; });
}

// The synthetic corpus of engine/host/kernels/memory.cpp, token for token. One thread writes one sequence.
namespace {

constexpr std::int64_t kMostTokens = 64;
constexpr std::uint32_t kNoiseOf256 = 26;
constexpr std::uint64_t kCorpusKey = 0x636f72707573ULL;

}  // namespace

void load_batch(const DeviceCall& call) {
  const plan::Shape& s = call.shape();
  const engine::StepContext& at = call.context;
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
