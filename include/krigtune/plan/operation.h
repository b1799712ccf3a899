#pragma once
#include <cstdint>
#include <vector>

namespace krigtune {

/// The logical streams of one rank. Operations of one stream run in order; streams are ordered by waits only.
enum class Stream : std::uint8_t { kCompute, kGather, kReduce, kCopy, kHost };
inline constexpr int kStreamCount = 5;

/// What an operation computes. The comment gives its operands in order; [x] is optional, (...)* repeats.
/// An output with Access::kReadWrite is added to, with kWrite it is overwritten. rows = batch * seq tokens.
enum class OpKind : std::uint8_t {
  kLoadBatch,          ///< tokens, targets                        shape: batch, seq, outer = vocabulary
  kZero,               ///< (range)*
  kEmbeddingForward,   ///< tokens, table, positions, x            batch, seq, inner = hidden
  kEmbeddingBackward,  ///< tokens, dx, dtable, dpositions, [table, positions: held, not read]
  kLayerNormForward,   ///< x, gain, bias, y, stats                rows, inner; stats: rows means, then rows 1/stddev
  kLayerNormBackward,  ///< dy, x, gain, stats, dx, dgain, dbias
  kLinearForward,  ///< x, weight, y, [bias]                   rows, inner, outer; weight is outer x inner; row-major
  kLinearBackwardInput,   ///< dy, weight, dx
  kLinearBackwardWeight,  ///< dy, x, dweight, [dbias]
  kAttentionForward,  ///< qkv, out, logsumexp, scratch           batch, seq, heads, inner = hidden; qkv row: q | k | v;
                      ///<   logsumexp: batch x heads x seq; scratch: seq * seq
  kAttentionBackward,  ///< dout, qkv, out, logsumexp, dqkv, scratch (2 * seq * seq)
  kGeluForward,        ///< x, y                                   rows, inner
  kGeluBackward,       ///< x, dy (in place: becomes dx)
  kAdd,                ///< y, x: y += x
  kCrossEntropy,       ///< logits (become scale * dlogits), targets, loss (mean over rows)  rows, outer = vocabulary
  kAccumulate,         ///< (source, destination)*
  kAdamW,              ///< (parameter, gradient, first moment, second moment)*
  kAllReduce,          ///< (whole)*: in place
  kReduceScatter,      ///< (whole)*: in place; rank r's result is the r-th 1/N of each range
  kAllGather,          ///< (shard, whole)*: rank r's shard becomes the r-th 1/N of each whole range; in place allowed
};
inline constexpr int kOpKindCount = 20;
const char* to_string(OpKind kind);
bool is_collective(OpKind kind);

enum class Phase : std::uint8_t { kForward, kBackward, kOptimizer };
const char* to_string(Phase phase);

using BufferId = std::int32_t;
using OpId = std::int32_t;

/// Elements [begin + rank * rank_stride, ... + elems) of a buffer. All plans are the same for all ranks.
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
  std::int64_t batch = 0, seq = 0, heads = 0;
  std::int64_t rows = 0, inner = 0, outer = 0;
};

/// One operation: no host pointer, no closure. All its operands are ready once its stream's earlier operations and
/// the operations in `waits` (of other streams) are done.
struct Operation {
  OpKind kind{};
  Stream stream = Stream::kCompute;
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
