#pragma once
#include <cstdint>
#include <vector>

#include "krigtune/schedule/op_kind.h"
#include "krigtune/schedule/streams.h"

namespace krigtune {

using BufferId = std::int32_t;
using OpId = std::int32_t;

/// Elements [begin + rank * rank_stride, ... + elems) of a buffer, rank: within the operation's group. All plans are
/// the same for all ranks.
struct Range {
  BufferId buffer = -1;
  std::int64_t begin_elems = 0;
  std::int64_t elems = 0;
  std::int64_t rank_stride_elems = 0;
};

enum class Access : std::uint8_t { kRead, kWrite, kReadWrite };

struct Operand {
  Range range;
  Access access = Access::kRead;
};

struct Shape {
  std::int64_t batch = 0, seq = 0, heads = 0, kv_heads = 0;
  std::int64_t rows = 0, inner = 0, outer = 0;
  std::int32_t site = 0;  ///< tells the dropouts of a layer apart
  double dropout = 0.0;   ///< probability
};

/// One operation: no host pointer, no closure. All its operands are ready once its stream's earlier operations and
/// the operations in `waits` (of other streams) are done.
struct Operation {
  OpKind kind{};
  Stream stream = Stream::kCompute;
  Group group = Group::kData;
  Phase phase = Phase::kForward;
  std::int32_t layer = -1;  ///< transformer block, -1: embedding, head or none
  std::int32_t micro_step = 0;
  Shape shape;
  double scale = 1.0;
  std::vector<Operand> operands;
  std::vector<OpId> waits;
  double flops = 0.0;
  std::int64_t bytes_read = 0;     ///< of this rank's memory
  std::int64_t bytes_written = 0;  ///< likewise
  std::int64_t wire_bytes = 0;     ///< collectives: sent by one rank
};

}  // namespace krigtune
