#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "krigtune/plan/operation.h"

namespace krigtune {

enum class DType : std::uint8_t { kFp32, kInt32 };
std::int64_t size_bytes(DType type);

/// What a buffer is for: the terms in which memory is explained.
enum class Term : std::uint8_t {
  kParameters,          ///< whole, or this rank's shard (stage 3)
  kGradients,           ///< kept over the step: whole (stages 0, 1) or this rank's shard
  kOptimizerState,      ///< AdamW moments: whole (stage 0) or this rank's shard
  kGatheredParameters,  ///< stage 3: a unit's parameters while it is computed
  kReduceBuckets,       ///< stages 2, 3: gradients until their bucket has been reduced
  kActivations,         ///< kept from forward to backward
  kLogits,
  kWorkspace,  ///< gradients of activations and scratch
  kInputs,     ///< tokens, loss
};
inline constexpr int kTermCount = 9;
const char* to_string(Term term);

struct Buffer {
  std::string name;
  Term term{};
  DType type = DType::kFp32;
  std::int64_t elems = 0;
  bool persistent = false;         ///< keeps its contents from step to step
  std::int64_t offset_bytes = -1;  ///< in the arena, a multiple of kAlignmentBytes; set by the memory planner

  std::int64_t bytes() const { return elems * size_bytes(type); }
};
inline constexpr std::int64_t kAlignmentBytes = 64;

/// One parameter tensor in model order. Its padded length is a multiple of N * 16 elements: every rank's shard of it
/// starts on 64 bytes. Tensor t lies at [begin_elems, + elems) of the whole, its shard at begin_elems / N of a shard.
struct ParameterTensor {
  std::string name;
  std::int64_t elems = 0;
  std::int64_t padded_elems = 0;
  std::int64_t begin_elems = 0;
  double initial_mean = 0.0;
  double initial_stddev = 0.0;
};

/// One optimizer step of one rank as data. Pure value; the same for all ranks of the data-parallel group.
struct StepPlan {
  std::int64_t ranks = 1;
  std::int64_t zero_stage = 0;
  std::int64_t micro_batch = 1;
  std::int64_t micro_steps = 1;
  std::int64_t seq_len = 1;
  std::vector<ParameterTensor> tensors;     ///< in model order
  std::int64_t padded_parameter_elems = 0;  ///< Psi: sum of the padded units
  BufferId parameters = -1;                 ///< Psi elements, or Psi / N when sharded
  bool parameters_sharded = false;
  BufferId loss = -1;  ///< one element per micro-step
  std::vector<Buffer> buffers;
  std::vector<Operation> operations;  ///< in issue order
  std::int64_t arena_bytes = 0;       ///< planned peak, to the byte

  std::int64_t samples() const { return ranks * micro_batch * micro_steps; }
};

}  // namespace krigtune
