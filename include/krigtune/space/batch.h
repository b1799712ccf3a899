#pragma once
#include <cstdint>
#include <optional>

namespace krigtune {

// The batch identity, on integers:
//
//   train_batch_size = micro_batch * dp * gradient_accumulation_steps
//   dp = ranks / (tensor_parallel * pipeline_parallel)
//
// Whoever counts ranks or sequences uses these functions. Conditions of a session read the same names as real numbers,
// which need not divide: Vocabulary writes the two lines for one configuration, Binder (lattice_rules.cpp) for bounds
// over many.

/// Replicas of the model, each with a micro-batch of its own. Empty: the ranks do not split into whole ones.
inline std::optional<std::int64_t> data_parallel_ranks(std::int64_t ranks, std::int64_t tensor_parallel,
                                                       std::int64_t pipeline_parallel) {
  for (const std::int64_t ways : {tensor_parallel, pipeline_parallel}) {
    if (ways < 1 || ranks % ways != 0) return std::nullopt;
    ranks /= ways;
  }
  return ranks;
}

/// Sequences of an optimizer step.
inline std::int64_t sequences_of_step(std::int64_t micro_batch, std::int64_t dp, std::int64_t accumulation_steps) {
  return micro_batch * dp * accumulation_steps;
}

/// The micro-steps of a step of so many sequences; with steps in the place of micro_batch, the micro-batch. Empty: the
/// product of the other two does not divide them. It divides in turn, so that nothing overflows.
inline std::optional<std::int64_t> accumulation_steps(std::int64_t train_batch_size, std::int64_t micro_batch,
                                                      std::int64_t dp) {
  if (micro_batch < 1 || dp < 1 || train_batch_size % micro_batch != 0) return std::nullopt;
  const std::int64_t micro_batches = train_batch_size / micro_batch;
  if (micro_batches % dp != 0) return std::nullopt;
  return micro_batches / dp;
}

}  // namespace krigtune
