// Compares attention on Hopper's wgmma and TMA with its definition in fp64. Compiled for a GPU and for the emulation,
// like cuda_kernels_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>

#include "cuda_case_runs.h"
#include "engine/cuda/attention_check.h"
#include "engine/cuda/kernels/flash_attention.h"
#include "engine/cuda/kernels/flash_attention_hopper.h"

namespace krigtune::cuda {
namespace {

struct Sizes16 {
  std::int64_t seq, d, heads, kv_heads, batch = 1;
};

/// `stddev`: of the elements of queries, keys and values; scores grow with its square.
Case case_of(schedule::DType type, const Sizes16& z, plan::Access out = plan::Access::kWrite, double stddev = 1.0) {
  plan::Shape s;
  s.batch = z.batch;
  s.seq = z.seq;
  s.heads = z.heads;
  s.kv_heads = z.kv_heads;
  s.inner = z.heads * z.d;
  s.rows = z.batch * z.seq;
  Maker m(type, out);
  Case result{"", schedule::OpKind::kAttentionForward, s, {}, 1.0, {}};
  result.name = "seq " + std::to_string(z.seq) + ", d " + std::to_string(z.d) + ", heads " + std::to_string(z.heads) +
                "/" + std::to_string(z.kv_heads);
  result.operands = {m.in(s.rows * (s.inner + 2 * z.kv_heads * z.d), 0.0, stddev), m.out(s.rows * s.inner),
                     m.single(z.batch * z.heads * z.seq, 0, 1, plan::Access::kWrite)};
  return result;
}

Case done_on_hopper(const Case& given, Meets meets = Meets::kEarlierKeys) {
  const DeviceCase on_device(given);
  hopper_attention_forward(on_device.call(), meets);
  return on_device.result();
}

Case gradients_on_hopper(const Case& backward) {
  const DeviceCase on_device(backward);
  DeviceCall call = on_device.call();
  call.hopper_attention = true;
  device_kernel_for(backward.kind)(call);
  return on_device.result();
}

/// Returns the relative error of the columns [begin, end) of the rows.
double error_of_columns(const std::vector<float>& actual, const std::vector<double>& expected, std::int64_t width,
                        std::int64_t begin, std::int64_t end) {
  std::vector<float> a;
  std::vector<double> b;
  for (std::size_t e = 0; e < actual.size(); ++e) {
    const std::int64_t column = static_cast<std::int64_t>(e) % width;
    if (column < begin || column >= end) continue;
    a.push_back(actual[e]);
    b.push_back(expected[e]);
  }
  return relative_error(a, b);
}

/// Computes attention of every query to all keys of its sequence. Returns nothing for operand 0, then the output, and
/// the log-sum-exp by head and query.
std::vector<std::vector<double>> attention_with_all_keys(const Case& given) {
  const plan::Shape& s = given.shape;
  const std::int64_t d = s.inner / s.heads;
  const std::int64_t width = s.inner + 2 * s.kv_heads * d;
  const std::vector<float> qkv = given.operands[0].numbers();
  const auto at = [&](std::int64_t token, std::int64_t place, std::int64_t c) {
    return static_cast<double>(qkv[static_cast<std::size_t>(token * width + place * d + c)]);
  };
  std::vector<double> out(static_cast<std::size_t>(s.rows * s.inner));
  std::vector<double> logsumexp;
  for (std::int64_t row = 0; row < s.batch * s.heads * s.seq; ++row) {
    const std::int64_t head = row / s.seq % s.heads;
    const std::int64_t first = row / s.seq / s.heads * s.seq;
    const std::int64_t key = s.heads + head / (s.heads / s.kv_heads);
    std::vector<double> weights;
    double total = 0.0;
    for (std::int64_t j = 0; j < s.seq; ++j) {
      double score = 0.0;
      for (std::int64_t c = 0; c < d; ++c) score += at(first + row % s.seq, head, c) * at(first + j, key, c);
      weights.push_back(std::exp(score / std::sqrt(static_cast<double>(d))));
      total += weights.back();
    }
    logsumexp.push_back(std::log(total));
    for (std::int64_t j = 0; j < s.seq; ++j) {
      for (std::int64_t c = 0; c < d; ++c) {
        out[static_cast<std::size_t>((first + row % s.seq) * s.inner + head * d + c)] +=
            weights[static_cast<std::size_t>(j)] / total * at(first + j, key + s.kv_heads, c);
      }
    }
  }
  return {{}, out, logsumexp};
}

class HopperAttention : public testing::TestWithParam<schedule::DType> {
 protected:
  void SetUp() override {
    std::string reason = no_device_reason();
    if (reason.empty() && !may_use_hopper_attention(0))
      reason = "this GPU is no Hopper, or there is no 90a code for it";
    if (!reason.empty()) GTEST_SKIP() << reason;
  }

  // Weights are rounded to 16 bits before they are multiplied, and so is the output; cuda_flash_attention_test.cpp
  // explains these numbers.
  static double most_error() { return GetParam() == schedule::DType::kBf16 ? 6e-3 : 7.5e-4; }

  static void expect_near(const Case& device, const std::vector<std::vector<double>>& expected) {
    EXPECT_LE(relative_error(device.operands[1].numbers(), expected[1]), most_error());
    EXPECT_LE(relative_error(device.operands[2].numbers(), expected[2]), 1e-6);
  }
};

// The cases have lengths around the edges of boxes and tiles, enough tiles to reuse the buffers (641: six tiles),
// several sequences, and heads that share keys. Every other case adds to what is there.
TEST_P(HopperAttention, IsWhatTheHostComputesInFp64) {
  int index = GetParam() == schedule::DType::kBf16 ? 0 : 1;
  for (const Sizes16& z :
       {Sizes16{1, 64, 1, 1}, Sizes16{64, 128, 2, 2}, Sizes16{65, 64, 4, 2}, Sizes16{127, 128, 2, 1},
        Sizes16{129, 64, 2, 1, 2}, Sizes16{200, 128, 3, 1, 2}, Sizes16{641, 64, 1, 1}, Sizes16{385, 128, 1, 1}}) {
    const plan::Access out = index++ % 2 == 0 ? plan::Access::kWrite : plan::Access::kReadWrite;
    const Case given = case_of(GetParam(), z, out);
    SCOPED_TRACE(given.name);
    expect_near(done_on_hopper(given), done_in_fp64(given));
  }
}

TEST_P(HopperAttention, MeetsAllKeysWhereAsked) {
  for (const Sizes16& z : {Sizes16{7, 64, 2, 1}, Sizes16{300, 64, 2, 1}, Sizes16{130, 128, 1, 1, 2}}) {
    const Case given = case_of(GetParam(), z);
    SCOPED_TRACE(given.name);
    expect_near(done_on_hopper(given, Meets::kAllKeys), attention_with_all_keys(given));
  }
}

// Scores reach several hundred, so that exp would overflow if the row's maximum were not subtracted.
TEST_P(HopperAttention, StandsAPeakedSoftmax) {
  for (const std::int64_t d : {64, 128}) {
    const Case given = case_of(GetParam(), {140, d, 2, 1}, plan::Access::kWrite, 8.0);
    SCOPED_TRACE(given.name);
    expect_near(done_on_hopper(given), done_in_fp64(given));
  }
}

// dQ, dK and dV are compared separately. Tiles have 64 rows, and the diagonal lies within one tile or between two.
// Several heads share keys, so that their tiles follow one another in the same buffers.
TEST_P(HopperAttention, HasTheGradientsThatTheHostComputesInFp64) {
  int index = GetParam() == schedule::DType::kBf16 ? 1 : 0;
  for (const Sizes16& z :
       {Sizes16{2, 64, 1, 1}, Sizes16{64, 128, 2, 2}, Sizes16{65, 64, 4, 2}, Sizes16{127, 128, 2, 1},
        Sizes16{129, 64, 2, 1, 2}, Sizes16{200, 128, 3, 1, 2}, Sizes16{385, 64, 1, 1}, Sizes16{330, 128, 1, 1}}) {
    const plan::Access out = index++ % 2 == 0 ? plan::Access::kWrite : plan::Access::kReadWrite;
    const Case given = backward_of(done_by_host(case_of(GetParam(), z)), out);
    SCOPED_TRACE(given.name);
    const std::vector<float> actual = gradients_on_hopper(given).operands[4].numbers();
    const std::vector<double> expected = done_in_fp64(given)[4];
    const std::int64_t queries = z.heads * z.d;
    const std::int64_t keys = queries + z.kv_heads * z.d;
    const std::int64_t width = keys + z.kv_heads * z.d;
    EXPECT_LE(error_of_columns(actual, expected, width, 0, queries), most_error());
    EXPECT_LE(error_of_columns(actual, expected, width, queries, keys), most_error());
    EXPECT_LE(error_of_columns(actual, expected, width, keys, width), most_error());
  }
}

TEST_P(HopperAttention, HasTheSameBitsInEveryRun) {
  const Case given = case_of(GetParam(), {150, 64, 2, 1});
  const Case once = done_on_hopper(given);
  const Case again = done_on_hopper(given);
  EXPECT_EQ(once.operands[1].bytes, again.operands[1].bytes);
  EXPECT_EQ(once.operands[2].bytes, again.operands[2].bytes);
  const Case backward = backward_of(once, plan::Access::kWrite);
  EXPECT_EQ(gradients_on_hopper(backward).operands[4].bytes, gradients_on_hopper(backward).operands[4].bytes);
}

// The operation uses the kernel for Hopper only if its call says so and its operands suit.
TEST_P(HopperAttention, IsTakenWhereTheCallSaysSo) {
  const Case given = case_of(GetParam(), {70, 64, 2, 1});
  const DeviceCase on_device(given);
  DeviceCall call = on_device.call();
  call.hopper_attention = true;
  device_kernel_for(given.kind)(call);
  EXPECT_EQ(on_device.result().operands[1].bytes, done_on_hopper(given).operands[1].bytes);
  Case wide = case_of(GetParam(), {5, 96, 2, 1});
  const DeviceCase plain(wide);
  DeviceCall plain_call = plain.call();
  plain_call.hopper_attention = true;
  device_kernel_for(wide.kind)(plain_call);
  expect_near(plain.result(), done_in_fp64(wide));
}

TEST_P(HopperAttention, AgreesWithTheOtherKernelAsTheCheckAtStartUpWantsIt) {
  // Heads of 128 are compared above; the other kernels take long on the emulation.
  EXPECT_EQ(why_not_hopper_attention(GetParam(), 64), "");
}

INSTANTIATE_TEST_SUITE_P(Types, HopperAttention, testing::Values(schedule::DType::kBf16, schedule::DType::kFp16));

}  // namespace
}  // namespace krigtune::cuda
