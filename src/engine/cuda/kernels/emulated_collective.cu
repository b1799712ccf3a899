// Collectives of one rank without the others. The bytes that this rank would move are moved in its own memory, by as
// many blocks as NCCL has channels, so that kernels beside it lose the bandwidth and the multiprocessors that NCCL
// would take from them; then one thread holds the stream until the time is over that the network would need. What is
// not imitated: other ranks that are late.
#include <cmath>

#include "engine/cuda/kernels/elements.h"
#include "engine/cuda/kernels/emulated_collective.h"

namespace krigtune::cuda {
namespace {

constexpr unsigned kChannels = 16;  // what NCCL takes on one node of H100 where nobody says otherwise
constexpr unsigned kThreads = 512;

template <class Body>
__global__ void __launch_bounds__(kThreads) run_channels(std::int64_t count, Body body) {
  constexpr std::int64_t kStride = static_cast<std::int64_t>(kChannels) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += kStride) {
    body(i);
  }
}

template <class Body>
void launch_channels(Queue queue, std::int64_t count, Body body) {
  launch(queue, kChannels, kThreads, 0, run_channels<Body>, count, body);
}

Elements elements_of(const engine::OperandView& view) { return {view.data, view.type, false}; }

// Copies words: what they mean does not matter.
template <class Word>
void turn_parts(const void* shard, void* whole, std::int64_t part_bytes, std::int64_t ranks, Queue queue) {
  const std::int64_t words = part_bytes / static_cast<std::int64_t>(sizeof(Word));
  const auto* from = static_cast<const Word*>(shard);
  auto* to = static_cast<Word*>(whole);
  if (from != to) copy_bytes(queue, from, to, part_bytes);
  launch_channels(queue, words * (ranks - 1), [=] __device__(std::int64_t i) {
    const std::int64_t rank = 1 + i / words;
    to[words + i] = from[(i % words + rank) % words];
  });
}

bool is_aligned(const void* data, std::int64_t bytes) {
  return (reinterpret_cast<std::uintptr_t>(data) | static_cast<std::uintptr_t>(bytes)) % sizeof(uint4) == 0;
}

}  // namespace

void reserve_link(Moment* free_from, Moment* until, Moment length_ns, Queue queue) {
  launch_elements(queue, 1, [=] __device__(std::int64_t) {
    const Moment now = global_time_ns();
    Moment seen = *free_from;
    for (;;) {
      const Moment end = (seen > now ? seen : now) + length_ns;
      const Moment there = atomicCAS(free_from, seen, end);
      if (there == seen) {
        *until = end;
        return;
      }
      seen = there;
    }
  });
}

void hold_until(const Moment* until, Queue queue) {
  launch_elements(queue, 1, [=] __device__(std::int64_t) {
    constexpr std::uint32_t kPauseNs = 200;
    while (global_time_ns() < *until) pause_ns(kPauseNs);
  });
}

void gather_alone(std::span<const engine::OperandView> operands, std::int64_t ranks, Queue queue) {
  for (std::size_t i = 0; i + 1 < operands.size(); i += 2) {
    const engine::OperandView& shard = operands[i];
    void* whole = operands[i + 1].data;
    const std::int64_t bytes = shard.elems * schedule::size_bytes(shard.type);
    if (is_aligned(shard.data, bytes) && is_aligned(whole, bytes)) {
      turn_parts<uint4>(shard.data, whole, bytes, ranks, queue);
    } else {
      turn_parts<std::uint16_t>(shard.data, whole, bytes, ranks, queue);
    }
  }
}

void reduce_scatter_alone(std::span<const engine::OperandView> operands, std::int64_t ranks, Queue queue) {
  for (const engine::OperandView& view : operands) {
    const Elements whole = elements_of(view);
    const std::int64_t part = view.elems / ranks;
    launch_channels(queue, part, [=] __device__(std::int64_t e) {
      float sum = 0.0F;
      for (std::int64_t rank = 0; rank < ranks; ++rank) sum += whole(rank * part + e);
      whole.set(e, sum);
    });
  }
}

void all_reduce_alone(std::span<const engine::OperandView> operands, std::int64_t ranks, Queue queue) {
  const auto factor = static_cast<float>(std::sqrt(static_cast<double>(ranks)));
  for (const engine::OperandView& view : operands) {
    const Elements whole = elements_of(view);
    launch_channels(queue, view.elems, [=] __device__(std::int64_t e) { whole.set(e, factor * whole(e)); });
  }
}

}  // namespace krigtune::cuda
