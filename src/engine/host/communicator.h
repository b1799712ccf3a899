#pragma once
#include <cstdint>
#include <span>

#include "krigtune/plan/step_plan.h"

namespace krigtune {

/// One range of a collective.
struct Segment {
  void* whole = nullptr;
  std::int64_t elems = 0;       ///< of `whole`; reduce-scatter and all-gather: a multiple of the number of ranks
  const void* shard = nullptr;  ///< all-gather: this rank's elems / N elements; may be its part of `whole` itself
  DType type = DType::kFp32;    ///< sums and maxima need one of floating point
};

/// One collective as one rank issues it. All ranks issue the same ones in the same order.
struct Collective {
  std::span<const Segment> segments;
  std::int64_t wire_bytes = 0;  ///< sent by this rank
};

/// One rank's end of a communicator, in the in-place conventions of NCCL. Sums are formed in fp32 in the order of the
/// ranks and rounded once, so that all-reduce equals reduce-scatter followed by all-gather bit by bit. Each call blocks
/// until this rank's data may be used again, and returns the Clock's seconds at which the data of all ranks were ready.
/// One call at a time. Throws Aborted.
class Communicator {
 public:
  virtual ~Communicator() = default;
  /// whole = the sum of all ranks' wholes.
  virtual double all_reduce(const Collective& collective) = 0;
  /// whole = the maximum of all ranks' wholes, element by element; NaN where one has NaN.
  virtual double all_reduce_max(const Collective& collective) = 0;
  /// The r-th 1/N of whole = the sum of all ranks' r-th parts; the other parts are left as they were.
  virtual double reduce_scatter(const Collective& collective) = 0;
  /// The r-th 1/N of every rank's whole = rank r's shard.
  virtual double all_gather(const Collective& collective) = 0;
};

}  // namespace krigtune
