// Tests kernels on more than 2^31 elements and on long sequences. It needs a GPU, because the emulation would take
// hours; cuda_indices_test.cpp tests there what does not need the memory.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cuda_case_runs.h"
#include "engine/cuda/runtime/check.h"
#include "engine/cuda/runtime/handles.h"

namespace krigtune::cuda {
namespace {

using schedule::DType;

class CudaLarge : public testing::Test {
 protected:
  void SetUp() override {
    if (is_emulated()) GTEST_SKIP() << "it takes hours on the emulation of CUDA";
    if (const std::string reason = no_device_reason(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

/// Computes the cross-entropy of many logits, with all rows in one call or in several.
class ManyLogits {
 public:
  static constexpr std::int64_t kRows = 43'000;
  static constexpr std::int64_t kVocabulary = 50'304;  // 2.16e9 logits in all
  static_assert(kRows * kVocabulary > std::int64_t{1} << 31);

  ManyLogits()
      : logits_(allocate_device(2 * kRows * kVocabulary)),
        targets_(allocate_device(4 * kRows)),
        scratch_(allocate_device(4 * kRows)),
        loss_(allocate_device(4)) {
    std::vector<std::int32_t> targets(static_cast<std::size_t>(kRows));
    for (std::size_t i = 0; i < targets.size(); ++i) {
      targets[i] = static_cast<std::int32_t>(i * 7919 % static_cast<std::size_t>(kVocabulary));
    }
    KRIGTUNE_CHECK_CUDA(cudaMemcpy(targets_.get(), targets.data(), 4 * targets.size(), cudaMemcpyDefault));
  }

  /// Returns the mean loss over all rows, and leaves the gradient in place of the logits.
  double run(std::int64_t rows_at_once) {
    fill_numbers(logits_.get(), 2 * kRows * kVocabulary, nullptr);
    double sum = 0.0;
    for (std::int64_t first = 0; first < kRows; first += rows_at_once) {
      const std::int64_t rows = std::min(rows_at_once, kRows - first);
      sum += static_cast<double>(rows) * loss_of(first, rows);
    }
    return sum / static_cast<double>(kRows);
  }
  std::vector<std::uint16_t> gradient(std::int64_t row) const {
    std::vector<std::uint16_t> values(static_cast<std::size_t>(kVocabulary));
    KRIGTUNE_CHECK_CUDA(
        cudaMemcpy(values.data(), logits_.get() + 2 * row * kVocabulary, 2 * values.size(), cudaMemcpyDefault));
    return values;
  }

 private:
  double loss_of(std::int64_t first, std::int64_t rows) {
    plan::Operation operation;
    operation.kind = schedule::OpKind::kCrossEntropy;
    operation.shape.rows = rows;
    operation.shape.outer = kVocabulary;
    operation.shape.inner = kVocabulary;
    const std::vector<engine::OperandView> views = {
        {logits_.get() + 2 * first * kVocabulary, rows * kVocabulary, plan::Access::kReadWrite, DType::kBf16},
        {targets_.get() + 4 * first, rows, plan::Access::kRead, DType::kInt32},
        {loss_.get(), 1, plan::Access::kWrite, DType::kFp32}};
    const engine::StepContext context;
    device_kernel_for(operation.kind)({.operation = operation,
                                       .operands = views,
                                       .context = context,
                                       .scratch = reinterpret_cast<float*>(scratch_.get())});
    float loss = 0.0F;
    KRIGTUNE_CHECK_CUDA(cudaDeviceSynchronize());
    KRIGTUNE_CHECK_CUDA(cudaMemcpy(&loss, loss_.get(), sizeof(loss), cudaMemcpyDefault));
    return static_cast<double>(loss);
  }

  DeviceBytes logits_, targets_, scratch_, loss_;
};

TEST_F(CudaLarge, CrossEntropyOfMoreThanTwoToThe31Logits) {
  constexpr std::int64_t kCrossing = (std::int64_t{1} << 31) / ManyLogits::kVocabulary;  // the row with element 2^31
  const std::vector<std::int64_t> rows = {0, 1, kCrossing - 1, kCrossing, kCrossing + 1, ManyLogits::kRows - 1};
  ManyLogits logits;
  const double in_parts = logits.run(10'000);
  std::vector<std::vector<std::uint16_t>> gradients;
  for (const std::int64_t row : rows) gradients.push_back(logits.gradient(row));
  const double together = logits.run(ManyLogits::kRows);
  EXPECT_LE(std::abs(together - in_parts), 1e-5 * in_parts);
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(logits.gradient(rows[i]), gradients[i]) << "row " << rows[i];
}

/// Returns the same numbers in fp32, which the plain kernels take.
Case in_fp32(Case given) {
  for (Datum& datum : given.operands) {
    if (engine::is_16_bit(datum.type)) datum = bytes_of(DType::kFp32, datum.numbers(), datum.access);
  }
  return given;
}

TEST_F(CudaLarge, FlashAttentionOfLongSequencesIsThatOfThePlainKernels) {
  for (const std::int64_t seq : {4096, 32768}) {
    for (const std::int64_t d : {64, 128}) {
      plan::Shape s;
      s.batch = 1;
      s.seq = seq;
      s.heads = 2;
      s.kv_heads = 1;
      s.inner = s.heads * d;
      s.rows = seq;
      Maker m(DType::kBf16, plan::Access::kWrite);
      Case forward{"", schedule::OpKind::kAttentionForward, s, {}, 1.0, {}};
      forward.name = "sequence " + std::to_string(seq) + ", heads of " + std::to_string(d);
      forward.operands = {m.in(seq * (s.inner + 2 * d)), m.out(seq * s.inner),
                          m.single(s.heads * seq, 0, 1, plan::Access::kWrite)};
      const Case flash = done_by_device(forward);
      expect_same(flash, done_by_device(in_fp32(forward)), tolerance(DType::kBf16));
      const Case backward = backward_of(flash, plan::Access::kWrite);
      // Gradients are sums of up to 32768 terms in which P is rounded to bf16.
      expect_same(done_by_device(backward), done_by_device(in_fp32(backward)), 2.0 * tolerance(DType::kBf16));
    }
  }
}

}  // namespace
}  // namespace krigtune::cuda
