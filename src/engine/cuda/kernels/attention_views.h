#pragma once
// What the forward and the backward pass of attention share: where the parts of a row are, and what is kept of the
// probabilities.
#include <stdexcept>

#include "engine/cuda/kernels/philox.h"

namespace krigtune::cuda {

inline constexpr int kMostHeadSize = 512;

struct AttentionSizes {
  std::int64_t batch, seq, heads, kv_heads, queries_per_key, d, qkv_width, out_width;
  float scale;

  explicit AttentionSizes(const plan::Shape& s) {
    batch = s.batch;
    seq = s.seq;
    heads = s.heads;
    kv_heads = s.kv_heads > 0 ? s.kv_heads : s.heads;
    queries_per_key = heads / kv_heads;
    d = s.inner / s.heads;
    qkv_width = s.inner + 2 * kv_heads * d;
    out_width = s.inner;
    scale = 1.0F / std::sqrt(static_cast<float>(d));
    if (d > kMostHeadSize) throw std::logic_error("heads of more than 512 elements do not fit in shared memory");
  }
};

/// The rows of qkv or dqkv. Heads of queries are counted separately from those of keys and values.
class QkvRows {
 public:
  QkvRows(const Elements& qkv, const AttentionSizes& z) : qkv_(qkv), z_(z) {}

  __device__ Elements query(std::int64_t b, std::int64_t head, std::int64_t i) const { return part(b, i, head * z_.d); }
  __device__ Elements key(std::int64_t b, std::int64_t kv_head, std::int64_t j) const {
    return part(b, j, z_.out_width + kv_head * z_.d);
  }
  __device__ Elements value(std::int64_t b, std::int64_t kv_head, std::int64_t j) const {
    return part(b, j, z_.out_width + (z_.kv_heads + kv_head) * z_.d);
  }

 private:
  __device__ Elements part(std::int64_t b, std::int64_t t, std::int64_t column) const {
    return qkv_.from((b * z_.seq + t) * z_.qkv_width + column);
  }

  Elements qkv_;
  AttentionSizes z_;
};

/// A row of batch x heads x seq: its sequence, head and position.
struct AttentionRow {
  std::int64_t b, head, i;

  __device__ AttentionRow(std::int64_t row, std::int64_t heads, std::int64_t seq)
      : b(row / seq / heads), head(row / seq % heads), i(row % seq) {}
  /// Returns where its part of the output begins.
  __device__ std::int64_t output(const AttentionSizes& z) const { return (b * z.seq + i) * z.out_width + head * z.d; }
};

__device__ inline float dot(const Elements& a, const Elements& b, std::int64_t count) {
  float sum = 0.0F;
#pragma unroll 2  // more would spill registers
  for (std::int64_t c = 0; c < count; ++c) sum += a(c) * b(c);
  return sum;
}

/// Dropout's factors m, and what eager attention keeps: P in operand `first`, the mask in the next one, and P m in the
/// one after that.
class KeptProbabilities {
 public:
  KeptProbabilities(const DeviceCall& call, std::size_t first, const AttentionSizes& z)
      : draws_(call, DropoutDraws::kProbabilities),
        p_(call, call.has(first) ? first : 0),
        dropped_(call, call.has(first + 2) ? first + 2 : 0),
        mask_(call.has(first + 1) ? call.data<std::uint8_t>(first + 1) : nullptr),
        there_(call.has(first)),
        first_head_(call.context.tensor_rank * call.shape().heads),
        seq_(z.seq) {}

  __device__ bool there() const { return there_; }
  __device__ bool drops() const { return draws_.drops(); }
  __device__ float factor(const AttentionRow& at, std::int64_t j) const {
    if (!draws_.drops()) return 1.0F;
    return draws_.keeps(at.b, ((first_head_ + at.head) * seq_ + at.i) * seq_ + j) ? draws_.scale() : 0.0F;
  }
  /// Returns the factor by the mask that the forward pass has kept, or else draws it again.
  __device__ float kept_factor(const AttentionRow& at, std::int64_t row, std::int64_t j) const {
    if (mask_ == nullptr) return factor(at, j);
    return mask_[row * seq_ + j] != 0 ? draws_.scale() : 0.0F;
  }
  __device__ float probability(std::int64_t row, std::int64_t j) const { return p_(row * seq_ + j); }
  /// Keeps the probability. `factor` is that of dropout.
  __device__ void keep(std::int64_t row, std::int64_t j, float p, float factor) const {
    p_.set(row * seq_ + j, p);
    if (mask_ == nullptr) return;
    mask_[row * seq_ + j] = factor != 0.0F ? 1 : 0;
    dropped_.set(row * seq_ + j, p * factor);
  }

 private:
  DropoutDraws draws_;
  Elements p_;
  Elements dropped_;
  std::uint8_t* mask_;
  bool there_;
  std::int64_t first_head_;
  std::int64_t seq_;
};

}  // namespace krigtune::cuda
