#pragma once
#include <array>
#include <cstdint>

#include "engine/host/kernels/kernel.h"
#include "krigtune/rng.h"

namespace krigtune::engine::KRIGTUNE_KERNELS {

/// Decides which elements of one sequence are dropped at one site of the model. The mask is a pure function of the
/// seed, the sequence's number in the whole job (which counts steps, micro-steps, ranks and the batch, as kLoadBatch
/// does), the layer, the site and the element. So it is the same however the batch is split, on every tensor-parallel
/// rank, and when it is computed again.
class DropoutMask {
 public:
  enum class Of : std::uint32_t { kHidden = 0x64726f70, kProbabilities = 0x70726f62 };

  DropoutMask(const KernelCall& call, Of of, std::int64_t sequence_in_batch)
      : dropped_below_(static_cast<std::uint64_t>(call.shape().dropout * 0x1.0p32)) {
    const StepContext& at = call.context;
    const std::int64_t micro_batches = (at.step * at.micro_steps + call.operation.micro_step) * at.ranks + at.rank;
    const auto sequence = static_cast<std::uint64_t>(micro_batches * call.shape().batch + sequence_in_batch);
    key_ = {static_cast<std::uint32_t>(at.options.seed) ^ static_cast<std::uint32_t>(of),
            static_cast<std::uint32_t>(at.options.seed >> 32U)};
    counter_ = {0, 0, static_cast<std::uint32_t>(sequence), static_cast<std::uint32_t>(sequence >> 32U)};
    place_ = (static_cast<std::uint32_t>(call.operation.layer + 1) << 16U) |
             (static_cast<std::uint32_t>(call.shape().site) << 12U);
  }

  /// Sets keeps[i] to 1 if element first + i is kept, else to 0. Four elements share a block of Philox.
  template <class Number>
  void fill(std::int64_t first, std::int64_t count, Number* keeps) {
    for (std::int64_t i = 0; i < count;) {
      const auto element = static_cast<std::uint64_t>(first + i);
      const std::uint64_t block = element / 4;
      counter_[0] = static_cast<std::uint32_t>(block);
      counter_[1] = place_ ^ static_cast<std::uint32_t>(block >> 32U);
      const std::array<std::uint32_t, 4> words = philox4x32(counter_, key_);
      for (std::uint64_t lane = element % 4; lane < 4 && i < count; ++lane, ++i) {
        keeps[i] = words[lane] >= dropped_below_ ? Number(1) : Number(0);
      }
    }
  }

 private:
  std::uint64_t dropped_below_;  ///< threshold out of 2^32
  std::uint32_t place_;
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
};

}  // namespace krigtune::engine::KRIGTUNE_KERNELS
