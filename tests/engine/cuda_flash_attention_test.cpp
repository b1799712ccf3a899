// Compares flash attention with the host's kernels, and with its definition in fp64. Compiled for a GPU and for the
// emulation, like cuda_kernels_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>

#include "cuda_case_runs.h"
#include "engine/cuda/kernels/flash_attention.h"

namespace krigtune::cuda {
namespace {

plan::Shape shape(std::int64_t seq, std::int64_t d, std::int64_t heads, std::int64_t kv_heads, std::int64_t batch = 1) {
  plan::Shape s;
  s.batch = batch;
  s.seq = seq;
  s.heads = heads;
  s.kv_heads = kv_heads;
  s.inner = heads * d;
  s.rows = batch * seq;
  return s;
}

std::int64_t qkv_width(const plan::Shape& s) { return s.inner + 2 * s.kv_heads * (s.inner / s.heads); }

/// `stddev`: of the elements of queries, keys and values; scores grow with its square.
Case forward_case(schedule::DType type, const plan::Shape& s, plan::Access out, double stddev = 1.0) {
  Maker m(type, out);
  Case result{"", schedule::OpKind::kAttentionForward, s, {}, 1.0, {}};
  result.name = "seq " + std::to_string(s.seq) + ", d " + std::to_string(s.inner / s.heads) + ", heads " +
                std::to_string(s.heads) + "/" + std::to_string(s.kv_heads);
  result.operands = {m.in(s.batch * s.seq * qkv_width(s), 0.0, stddev), m.out(s.batch * s.seq * s.inner),
                     m.single(s.batch * s.heads * s.seq, 0, 1, plan::Access::kWrite)};
  return result;
}

// Every length occurs with both head sizes, and every ratio of heads to heads of keys with several lengths.
std::vector<plan::Shape> shapes() {
  std::vector<plan::Shape> all;
  for (const std::int64_t d : {64, 128}) {
    for (const std::int64_t seq : {1, 64, 200}) all.push_back(shape(seq, d, 2, 2));
    for (const std::int64_t seq : {65, 129}) all.push_back(shape(seq, d, 4, 2));
    for (const std::int64_t seq : {7, 127}) all.push_back(shape(seq, d, 4, 1, seq == 7 ? 2 : 1));
    all.push_back(shape(257, d, 1, 1));
  }
  return all;
}

/// Attention and its gradients by definition, computed for one head of one sequence at a time.
struct Reference {
  std::vector<double> out, logsumexp, dq, dk, dv;  ///< dq is like out; rows of dk and dv have kv_heads * d elements
};

class Definition {
 public:
  Definition(const plan::Shape& s, std::vector<float> qkv, std::vector<float> dout)
      : s_(s), d_(s.inner / s.heads), qkv_(std::move(qkv)), dout_(std::move(dout)) {
    const auto rows = static_cast<std::size_t>(s.batch * s.seq);
    result_.out.resize(rows * static_cast<std::size_t>(s.inner));
    result_.dq = result_.out;
    result_.dk.resize(rows * static_cast<std::size_t>(s.kv_heads * d_));
    result_.dv = result_.dk;
  }

  Reference computed() {
    for (std::int64_t b = 0; b < s_.batch; ++b) {
      for (std::int64_t head = 0; head < s_.heads; ++head) {
        for (std::int64_t i = 0; i < s_.seq; ++i) attend(b, head, i);
      }
    }
    return std::move(result_);
  }

 private:
  std::int64_t kv_of(std::int64_t head) const { return head / (s_.heads / s_.kv_heads); }
  double in(std::int64_t token, std::int64_t place, std::int64_t c) const {
    return static_cast<double>(qkv_[static_cast<std::size_t>(token * qkv_width(s_) + place * d_ + c)]);
  }
  double query(std::int64_t token, std::int64_t head, std::int64_t c) const { return in(token, head, c); }
  double key(std::int64_t token, std::int64_t head, std::int64_t c) const {
    return in(token, s_.heads + kv_of(head), c);
  }
  double value(std::int64_t token, std::int64_t head, std::int64_t c) const {
    return in(token, s_.heads + s_.kv_heads + kv_of(head), c);
  }

  void attend(std::int64_t b, std::int64_t head, std::int64_t i) {
    const std::int64_t first = b * s_.seq;
    const double scale = 1.0 / std::sqrt(static_cast<double>(d_));
    std::vector<double> p;
    for (std::int64_t j = 0; j <= i; ++j) {
      double score = 0.0;
      for (std::int64_t c = 0; c < d_; ++c) score += query(first + i, head, c) * key(first + j, head, c);
      p.push_back(score * scale);
    }
    const double top = *std::max_element(p.begin(), p.end());
    double total = 0.0;
    for (const double score : p) total += std::exp(score - top);
    result_.logsumexp.push_back(top + std::log(total));
    for (double& score : p) score = std::exp(score - result_.logsumexp.back());
    const auto at = static_cast<std::size_t>((first + i) * s_.inner + head * d_);
    std::vector<double> da(p.size());
    double mean = 0.0;  // D: sum_j P_j dA_j
    for (std::size_t j = 0; j < p.size(); ++j) {
      const std::int64_t token = first + static_cast<std::int64_t>(j);
      for (std::int64_t c = 0; c < d_; ++c) {
        const auto e = at + static_cast<std::size_t>(c);
        result_.out[e] += p[j] * value(token, head, c);
        da[j] += static_cast<double>(dout_[e]) * value(token, head, c);
      }
      mean += p[j] * da[j];
    }
    for (std::size_t j = 0; j < p.size(); ++j) {
      const std::int64_t token = first + static_cast<std::int64_t>(j);
      const double ds = p[j] * (da[j] - mean) * scale;
      for (std::int64_t c = 0; c < d_; ++c) {
        const auto e = at + static_cast<std::size_t>(c);
        const auto of_key = static_cast<std::size_t>((token * s_.kv_heads + kv_of(head)) * d_ + c);
        result_.dq[e] += ds * key(token, head, c);
        result_.dk[of_key] += ds * query(first + i, head, c);
        result_.dv[of_key] += p[j] * static_cast<double>(dout_[e]);
      }
    }
  }

  plan::Shape s_;
  std::int64_t d_;
  std::vector<float> qkv_, dout_;
  Reference result_;
};

/// Returns the columns [begin, end) of the rows.
std::vector<float> columns(const std::vector<float>& rows, std::int64_t width, std::int64_t begin, std::int64_t end) {
  std::vector<float> part;
  for (std::size_t e = 0; e < rows.size(); ++e) {
    const std::int64_t column = static_cast<std::int64_t>(e) % width;
    if (column >= begin && column < end) part.push_back(rows[e]);
  }
  return part;
}

double operand_error(const Case& actual, const Case& expected, std::size_t operand) {
  const std::vector<float> numbers = expected.operands[operand].numbers();
  return relative_error(actual.operands[operand].numbers(), {numbers.begin(), numbers.end()});
}

class FlashAttention : public testing::TestWithParam<schedule::DType> {
 protected:
  void SetUp() override {
    if (const std::string reason = no_device_reason(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

// Probabilities and gradients of scores are rounded to 16 bits before they are multiplied (the typical relative error
// is 2^-9 in bf16 and 2^-12 in fp16), and so are the results. We see errors of twice that, and allow three times that.
double most_error(schedule::DType type) { return type == schedule::DType::kBf16 ? 6e-3 : 7.5e-4; }

// About half of the cases add to what is there.
TEST_P(FlashAttention, AttendsAsTheHostDoes) {
  int index = GetParam() == schedule::DType::kBf16 ? 0 : 1;
  for (const plan::Shape& s : shapes()) {
    const plan::Access out = index++ % 2 == 0 ? plan::Access::kWrite : plan::Access::kReadWrite;
    const Case given = forward_case(GetParam(), s, out);
    SCOPED_TRACE(given.name);
    const Case host = done_by_host(given);
    const Case device = done_by_device(given);
    EXPECT_LE(operand_error(device, host, 1), most_error(GetParam()));
    EXPECT_LE(operand_error(device, host, 2), 1e-6);
    const Case backward = backward_of(host, out);
    EXPECT_LE(operand_error(done_by_device(backward), done_by_host(backward), 4), most_error(GetParam()));
  }
}

void expect_the_definition(const Case& given, double most, double most_of_scores) {
  SCOPED_TRACE(given.name);
  const plan::Shape& s = given.shape;
  const Case forward = done_by_device(given);
  const Case backward = done_by_device(backward_of(forward, plan::Access::kWrite));
  const Reference expected = Definition(s, given.operands[0].numbers(), backward.operands[0].numbers()).computed();
  EXPECT_LE(relative_error(forward.operands[1].numbers(), expected.out), most);
  EXPECT_LE(relative_error(forward.operands[2].numbers(), expected.logsumexp), 1e-6);
  const std::int64_t width = qkv_width(s);
  const std::int64_t values = (width + s.inner) / 2;
  const std::vector<float> gradient = backward.operands[4].numbers();
  EXPECT_LE(relative_error(columns(gradient, width, 0, s.inner), expected.dq), most_of_scores);
  EXPECT_LE(relative_error(columns(gradient, width, s.inner, values), expected.dk), most_of_scores);
  EXPECT_LE(relative_error(columns(gradient, width, values, width), expected.dv), most);
}

TEST_P(FlashAttention, IsWhatItsDefinitionSays) {
  for (const plan::Shape& s : {shape(133, 64, 4, 2, 2), shape(70, 128, 3, 1), shape(150, 128, 1, 1)}) {
    expect_the_definition(forward_case(GetParam(), s, plan::Access::kWrite), most_error(GetParam()),
                          most_error(GetParam()));
  }
}

// Scores reach several hundred, so that one key has nearly all of a row's weight, and exp would overflow if the row's
// maximum were not subtracted. dS is then a small difference of V dO and D, and D is computed from the rounded output.
TEST_P(FlashAttention, StandsAPeakedSoftmax) {
  for (const std::int64_t d : {64, 128}) {
    expect_the_definition(forward_case(GetParam(), shape(140, d, 2, 1), plan::Access::kWrite, 8.0),
                          most_error(GetParam()), 2 * most_error(GetParam()));
  }
}

TEST_P(FlashAttention, HasTheSameBitsInEveryRun) {
  const Case given = forward_case(GetParam(), shape(150, 64, 4, 1), plan::Access::kWrite);
  const Case forward = done_by_device(given);
  EXPECT_EQ(forward.operands[1].bytes, done_by_device(given).operands[1].bytes);
  const Case backward = backward_of(forward, plan::Access::kWrite);
  EXPECT_EQ(done_by_device(backward).operands[4].bytes, done_by_device(backward).operands[4].bytes);
}

bool fits(Case given) { return flash_fits(DeviceCase(std::move(given)).call()); }

TEST_P(FlashAttention, TakesWhatItCanAndNothingElse) {
  const auto forward = [](schedule::DType type, std::int64_t d) {
    return forward_case(type, shape(3, d, 2, 1), plan::Access::kWrite);
  };
  EXPECT_TRUE(fits(forward(GetParam(), 64)));
  EXPECT_TRUE(fits(forward(GetParam(), 128)));
  EXPECT_TRUE(fits(backward_of(forward(GetParam(), 128), plan::Access::kReadWrite)));
  EXPECT_FALSE(fits(forward(GetParam(), 96)));
  EXPECT_FALSE(fits(forward(schedule::DType::kFp32, 64)));
  Case keeps = forward(GetParam(), 64);
  keeps.operands.push_back(keeps.operands[1]);
  EXPECT_FALSE(fits(keeps));
  Case drops = forward(GetParam(), 64);
  drops.shape.dropout = 0.1;
  EXPECT_FALSE(fits(drops));
}

// A block on Ada has 99 KiB of shared memory. The forward pass fits, the gradients of wide heads do not.
TEST_P(FlashAttention, LeavesGradientsToPlainKernelsWhereSharedMemoryIsShort) {
  if (!limit_shared_memory(99 << 10)) GTEST_SKIP() << "a GPU's shared memory is what it is";
  const Case wide = forward_case(GetParam(), shape(70, 128, 2, 1), plan::Access::kWrite);
  EXPECT_TRUE(fits(wide));
  const Case host = done_by_host(wide);
  const Case backward = backward_of(host, plan::Access::kWrite);
  EXPECT_FALSE(fits(backward));
  EXPECT_TRUE(fits(backward_of(done_by_host(forward_case(GetParam(), shape(70, 64, 2, 1), plan::Access::kWrite)),
                               plan::Access::kWrite)));
  EXPECT_LE(operand_error(done_by_device(backward), done_by_host(backward), 4), most_error(GetParam()));
  limit_shared_memory(kHopperSharedBytes);
}

INSTANTIATE_TEST_SUITE_P(Types, FlashAttention, testing::Values(schedule::DType::kBf16, schedule::DType::kFp16));

}  // namespace
}  // namespace krigtune::cuda
