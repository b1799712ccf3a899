// Flash attention against the host's kernels, and against the definition in fp64. Compiled as cuda_kernels_test.cpp.
#include <gtest/gtest.h>

#include "cuda/kernels/flash_attention.h"
#include "cuda_runs.h"

namespace krigtune::cuda {
namespace {

Shape shape(std::int64_t seq, std::int64_t d, std::int64_t heads, std::int64_t kv_heads, std::int64_t batch = 1) {
  Shape s;
  s.batch = batch;
  s.seq = seq;
  s.heads = heads;
  s.kv_heads = kv_heads;
  s.inner = heads * d;
  s.rows = batch * seq;
  return s;
}

std::int64_t qkv_width(const Shape& s) { return s.inner + 2 * s.kv_heads * (s.inner / s.heads); }

/// stddev: of queries and keys' elements; scores grow with its square.
Case forward_case(DType type, const Shape& s, Access out, double stddev = 1.0) {
  Maker m(type, out);
  Case result{"", OpKind::kAttentionForward, s, {}, 1.0, {}};
  result.name = "seq " + std::to_string(s.seq) + ", d " + std::to_string(s.inner / s.heads) + ", heads " +
                std::to_string(s.heads) + "/" + std::to_string(s.kv_heads);
  result.operands = {m.in(s.batch * s.seq * qkv_width(s), 0.0, stddev), m.out(s.batch * s.seq * s.inner),
                     m.single(s.batch * s.heads * s.seq, 0, 1, Access::kWrite)};
  return result;
}

// All lengths with both widths; each sharing of heads with several of them.
std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const std::int64_t d : {64, 128}) {
    for (const std::int64_t seq : {1, 64, 200}) all.push_back(shape(seq, d, 2, 2));
    for (const std::int64_t seq : {65, 129}) all.push_back(shape(seq, d, 4, 2));
    for (const std::int64_t seq : {7, 127}) all.push_back(shape(seq, d, 4, 1, seq == 7 ? 2 : 1));
    all.push_back(shape(257, d, 1, 1));
  }
  return all;
}

class FlashAttention : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (const std::string reason = no_device_reason(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

// Probabilities and gradients of scores are rounded to 16 bits before they are multiplied (bf16: 2^-9 at most each),
// and so are the results.
double most_error(DType type) { return type == DType::kBf16 ? 6e-3 : 1e-3; }

TEST_P(FlashAttention, AttendsAsTheHostDoes) {
  int index = GetParam() == DType::kBf16 ? 0 : 1;
  for (const Shape& s : shapes()) {
    const Access out = index++ % 2 == 0 ? Access::kWrite : Access::kReadWrite;
    const Case given = forward_case(GetParam(), s, out);
    const Case host = done_by_host(given);
    const Case device = done_by_device(given);
    EXPECT_LE(relative_error(device.operands[1].numbers(), host.operands[1].numbers()), most_error(GetParam()))
        << given.name;
    EXPECT_LE(relative_error(device.operands[2].numbers(), host.operands[2].numbers()), 1e-5) << given.name;
    const Case backward = backward_of(host, out);
    EXPECT_LE(
        relative_error(done_by_device(backward).operands[4].numbers(), done_by_host(backward).operands[4].numbers()),
        most_error(GetParam()))
        << given.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, FlashAttention, testing::Values(DType::kBf16, DType::kFp16));

}  // namespace
}  // namespace krigtune::cuda
