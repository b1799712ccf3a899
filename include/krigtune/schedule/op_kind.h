#pragma once
#include <cstdint>

namespace krigtune {

/// What an operation computes. The comment gives its operands in order; [x] is optional, (...)* repeats.
/// An output with Access::kReadWrite is added to, with kWrite it is overwritten. rows = tokens that this rank holds.
/// Matrices are row-major. Numbers are computed in fp32 and rounded to the type of the buffer that they are put into.
enum class OpKind : std::uint8_t {
  kLoadBatch,             ///< tokens, targets                        batch, seq, outer = vocabulary
  kZero,                  ///< (range)*
  kCopy,                  ///< (source, destination)*: types and places may differ
  kAccumulate,            ///< (source, destination)*: destination += source; kWrite: = source
  kEmbeddingForward,      ///< tokens, table, x                       rows, inner = hidden, outer = rows of the table; a
                          ///<   table split over the tensor group holds tokens [rank * outer, ...), others give 0
  kEmbeddingBackward,     ///< tokens, dx, dtable, [table: held, not read]   likewise
  kPositionsForward,      ///< x, positions: x += positions           batch, seq, rows, inner; where rows < batch * seq,
                          ///<   tensor rank r holds the tokens [r * rows, ...)
  kPositionsBackward,     ///< dx, dpositions, [positions: held, not read]   likewise
  kLayerNormForward,      ///< x, gain, bias, y, stats                rows, inner; stats: rows means, then rows 1/stddev
  kLayerNormBackward,     ///< dy, x, gain, stats, dx, dgain, dbias
  kRmsNormForward,        ///< x, gain, y, stats                      rows, inner; stats: rows 1/rms
  kRmsNormBackward,       ///< dy, x, gain, stats, dx, dgain
  kLinearForward,         ///< x, weight, y, [bias]                   rows, inner, outer; weight is outer x inner
  kLinearBackwardInput,   ///< dy, weight, dx
  kLinearBackwardWeight,  ///< dy, x, dweight, [dbias]
  kAddBias,               ///< y, bias                                rows, inner: y += bias
  kBiasBackward,          ///< dy, dbias                              rows, inner
  kRotaryForward,         ///< qkv in place: q and k are rotated      batch, seq, heads, kv_heads, inner
  kRotaryBackward,        ///< dqkv in place: rotated back
  kAttentionForward,   ///< qkv, out, logsumexp, [probabilities, [mask, dropped]]   batch, seq, heads, kv_heads, inner;
                       ///<   qkv row: q (inner = heads d) | k (kv_heads d) | v; logsumexp: batch x heads x seq;
                       ///<   probabilities and dropped: batch x heads x seq x seq, kept by eager attention; dropout
  kAttentionBackward,  ///< dout, qkv, out, logsumexp, dqkv, [probabilities, [mask, dropped]]
  kGeluForward,        ///< x, y                                   rows, inner
  kGeluBackward,       ///< x, dy (in place: becomes dx)
  kSwigluForward,      ///< gate_up, y                             rows, inner; gate_up row: gate (inner) | up (inner)
  kSwigluBackward,     ///< gate_up, dy, dgate_up
  kDropoutForward,     ///< x in place, mask                       batch, seq, rows, inner, site; dropout
  kDropoutBackward,    ///< dx in place, mask                      likewise
  kAdd,                ///< y, x: y += x
  kCrossEntropy,       ///< logits (become scale * dlogits), targets, loss (mean over rows), [control]  rows, outer
  kVocabMax,           ///< logits, top (largest of each row)      rows, outer = columns of this rank, inner = whole
                       ///<   vocabulary; columns behind its end fill up and count for nothing; likewise the next two
  kVocabSumExp,        ///< logits (become exp(l - top)), targets, top, sums, at_target (l - top, 0 if elsewhere)
  kVocabCrossEntropy,  ///< logits (those; become scale * dlogits), targets, sums, at_target, loss, [control]
  kGradientNorm,       ///< sum, (range)*                          sum += scale * squares of the ranges
  kLossScale,          ///< sum (squared norm of the scaled gradients), control: clips, and adapts the loss scale
  kAdamW,              ///< (fp32 parameter, gradient, first moment, second moment)*, [control]
  kSgd,                ///< (fp32 parameter, gradient, momentum)*, [control]
  kAllReduce,          ///< (whole)*: in place, sum
  kAllReduceMax,       ///< (whole)*: in place, maximum
  kReduceScatter,      ///< (whole)*: in place; rank r's result is the r-th 1/N of each range
  kAllGather,          ///< (shard, whole)*: rank r's shard becomes the r-th 1/N of each whole range; in place allowed
};
inline constexpr int kOpKindCount = 40;
const char* to_string(OpKind kind);

/// How its work is counted, and what it is timed by.
enum class OpFamily : std::uint8_t { kElements, kProduct, kAttention, kCollective };
OpFamily family_of(OpKind kind);
inline bool is_collective(OpKind kind) { return family_of(kind) == OpFamily::kCollective; }
/// Matrix products and attention.
inline bool is_product(OpKind kind) {
  return family_of(kind) == OpFamily::kProduct || family_of(kind) == OpFamily::kAttention;
}
double flops_per_elem(OpKind kind);  ///< of an operation on elements, as its kernel counts them

/// The state of clipping and of dynamic loss scaling: elements of StepPlan::control.
enum ControlElement : std::uint8_t {
  kLossScaleElement,  ///< by which the loss is multiplied
  kGoodStepsElement,  ///< since the scale was changed
  kFactorElement,     ///< of the gradients of this step: 1 / scale, and clipping; 0: an overflow, nothing is updated
  kUpdatesElement,    ///< optimizer updates done, overflows left out
  kNormElement,       ///< of the step's unscaled gradients, before clipping
  kControlElementCount
};

}  // namespace krigtune
