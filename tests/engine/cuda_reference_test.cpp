// Compares the kernels of the CUDA engine with fp64, at sizes for which they take different code paths: packs of 8 and
// of 4 elements and single ones, rows that fit into registers and longer ones, sums in one slab and in several,
// operands at any alignment. Compiled for a GPU and for the emulation, like cuda_kernels_test.cpp.
#include <gtest/gtest.h>

#include "cuda_case_runs.h"

namespace krigtune::cuda {
namespace {

class CudaReference : public testing::TestWithParam<schedule::DType> {
 protected:
  void SetUp() override {
    if (const std::string reason = no_device_reason(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

// Results are rounded once, to 8 binary digits in bf16 and 11 in fp16, where some gradients of a softmax are subnormal.
// In fp32 it is the rounding of sums that counts.
double rounding_of(schedule::DType type) {
  return type == schedule::DType::kBf16 ? 0x1p-8 : type == schedule::DType::kFp16 ? 0x1.4p-11 : 3e-6;
}

// Operations that only copy or draw are compared with the host's kernels instead, in cuda_kernels_test.cpp.
bool has_reference(schedule::OpKind kind) {
  return kind != schedule::OpKind::kLoadBatch && kind != schedule::OpKind::kZero && kind != schedule::OpKind::kCopy;
}

void expect_reference(const Case& given, const Case& device) {
  const std::vector<std::vector<double>> expected = done_in_fp64(given);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].empty()) continue;
    EXPECT_LE(relative_error(device.operands[i].numbers(), expected[i]), rounding_of(device.operands[i].type))
        << given.name << " of " << given.shape.rows << " x " << given.shape.inner << ", outer " << given.shape.outer
        << ", operand " << i;
  }
}

const Sizes kSizes[] = {
    {5, 27, 40, 7},    // sums over rows in several slabs
    {3, 11, 64, 67},   // rows of an odd number of columns
    {1, 5, 25, 9},     // single elements
    {1, 3, 2056, 13},  // rows of two packs per thread, or of four in fp32
    {1, 2, 6200, 5},   // rows of four packs per thread
    {1, 2, 9008, 5},   // rows that do not fit into registers
    {2, 3, 8, 9001},   // a large vocabulary
};

void expect_references(schedule::DType type, plan::Access out) {
  for (const Sizes& sizes : kSizes) {
    for (const Case& given : kernel_cases(type, out, sizes)) {
      if (has_reference(given.kind)) expect_reference(given, done_by_device(given));
    }
  }
}

TEST_P(CudaReference, KernelsAgreeWithFp64AtAllSizes) { expect_references(GetParam(), plan::Access::kWrite); }

TEST_P(CudaReference, KernelsThatAddAgreeWithFp64AtAllSizes) {
  expect_references(GetParam(), plan::Access::kReadWrite);
}

TEST_P(CudaReference, OperandsMayBeginAtAnyElement) {
  for (const std::int64_t behind_elems : {1, 4}) {
    for (const Sizes& sizes : {Sizes{2, 7, 24, 10}, Sizes{1, 2, 2056, 35}}) {
      for (const Case& given : kernel_cases(GetParam(), plan::Access::kReadWrite, sizes)) {
        expect_same(done_by_device(given, behind_elems), done_by_host(given), tolerance(GetParam()));
      }
    }
  }
}

// An addition and the normalisation of its sum. Their operands are x, branch, y, stats, gain, and bias if `centred`.
struct AddNorm {
  Case add, norm;

  AddNorm(schedule::DType type, const Sizes& sizes, bool centred) {
    Maker m(type, plan::Access::kWrite);
    const std::int64_t rows = sizes.rows();
    const std::int64_t all = rows * sizes.hidden;
    add.name = "add";
    add.kind = schedule::OpKind::kAdd;
    add.operands = {m.in_place(all), m.in(all)};
    norm.name = centred ? "layer norm of a sum" : "RMS norm of a sum";
    norm.kind = centred ? schedule::OpKind::kLayerNormForward : schedule::OpKind::kRmsNormForward;
    norm.operands = {add.operands[0], m.out(all), m.single(centred ? 2 * rows : rows, 0, 1, plan::Access::kWrite),
                     m.in(sizes.hidden)};
    if (centred) norm.operands.push_back(m.in(sizes.hidden));
    for (Case* each : {&add, &norm}) {
      each->shape.rows = rows;
      each->shape.inner = sizes.hidden;
    }
  }
};

TEST_P(CudaReference, AnAdditionAndItsNormAreOneKernel) {
  for (const Sizes& sizes : kSizes) {
    for (const bool centred : {true, false}) {
      AddNorm pair(GetParam(), sizes, centred);
      const DeviceCase add(pair.add);
      DeviceCase norm(pair.norm);
      EXPECT_FALSE(add_norm_fits(add.call(), norm.call()));
      norm.share(0, add, 0);
      ASSERT_TRUE(add_norm_fits(add.call(), norm.call()));
      add_norm_forward(add.call(), norm.call());
      const Case sum = done_by_host(pair.add);
      expect_same(add.result(), sum, 0.0);
      pair.norm.operands[0].bytes = sum.operands[0].bytes;
      Case normalised = norm.result();
      normalised.operands[0].bytes = sum.operands[0].bytes;  // the memory of its own for the sum was not used
      expect_same(normalised, done_by_host(pair.norm), tolerance(GetParam()));
    }
  }
}

TEST_P(CudaReference, AnAdditionIsNotFusedWithANormThatWritesWhereItReads) {
  const AddNorm pair(GetParam(), {2, 7, 24, 10}, true);
  const DeviceCase add(pair.add);
  DeviceCase norm(pair.norm);
  norm.share(0, add, 0);
  norm.share(1, add, 1);
  EXPECT_FALSE(add_norm_fits(add.call(), norm.call()));
  EXPECT_FALSE(add_norm_fits(norm.call(), add.call()));
}

// An update of ranges of several sizes, and a copy of all of them but the second to another type.
struct UpdateCopy {
  Case update, copy;
  std::vector<std::size_t> copied;  ///< operands of the update

  UpdateCopy(schedule::DType type, schedule::OpKind kind, float factor) {
    Maker m(type, plan::Access::kWrite);
    update.name = "update";
    update.kind = kind;
    copy.name = "copy of an update";
    copy.kind = schedule::OpKind::kCopy;
    const auto state = [&](std::int64_t elems, double mean) {
      return m.single(elems, mean, 0.1, plan::Access::kReadWrite);
    };
    std::vector<std::int64_t> sizes = {8, 300, 20000, 1, 8193};
    while (sizes.size() < 70) sizes.push_back(24);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (i != 1) {
        copied.push_back(update.operands.size());
        copy.operands.push_back(m.single(sizes[i], 0.0, 1.0, plan::Access::kRead));
        copy.operands.push_back(
            bytes_of(type, std::vector<float>(static_cast<std::size_t>(sizes[i]), 7.0F), plan::Access::kWrite));
      }
      update.operands.push_back(state(sizes[i], 0.0));
      update.operands.push_back(m.in(sizes[i]));
      update.operands.push_back(state(sizes[i], 0.0));
      if (kind == schedule::OpKind::kAdamW) update.operands.push_back(state(sizes[i], 2.0));
    }
    update.operands.push_back(Maker::singles({4.0F, 3.0F, factor, 2.0F, 0.0F}, plan::Access::kRead));
  }

  // Makes the copy read the memory that was updated, as in a plan.
  void share(DeviceCase& on_device, const DeviceCase& updated) const {
    for (std::size_t i = 0; i < copied.size(); ++i) on_device.share(2 * i, updated, copied[i]);
  }
};

constexpr double kFp32Rounding = 0x1p-23;

TEST_P(CudaReference, AnUpdateAndItsCopyAreOneKernel) {
  for (const schedule::OpKind kind : {schedule::OpKind::kAdamW, schedule::OpKind::kSgd}) {
    for (const float factor : {0.5F, 0.0F}) {  // 0: nothing is updated, all is copied
      for (const std::int64_t behind_elems : {0, 3}) {
        const UpdateCopy pair(GetParam(), kind, factor);
        const DeviceCase update(pair.update, behind_elems);
        DeviceCase copy(pair.copy, behind_elems);
        EXPECT_EQ(pair_kernel_for(update.call(), copy.call()), nullptr);
        pair.share(copy, update);
        const PairKernel kernel = pair_kernel_for(update.call(), copy.call());
        ASSERT_NE(kernel, nullptr);
        kernel(update.call(), copy.call());
        const Case updated = update.result();
        // The two kernels compute the same, but a compiler may fuse other products and sums: on an H100 they differ by
        // 8.4e-8, the rounding of an fp32 number.
        expect_same(updated, done_by_device(pair.update), kFp32Rounding);
        expect_reference(pair.update, updated);
        const Case copied = copy.result();
        for (std::size_t i = 0; i < pair.copied.size(); ++i) {
          const Datum expected = bytes_of(GetParam(), updated.operands[pair.copied[i]].numbers(), plan::Access::kWrite);
          EXPECT_EQ(copied.operands[2 * i + 1].bytes, expected.bytes) << "range " << i;
        }
      }
    }
  }
}

TEST_P(CudaReference, AnUpdateIsNotFusedWithACopyOfAnythingElseOrIntoIt) {
  const UpdateCopy pair(GetParam(), schedule::OpKind::kAdamW, 1.0F);
  const DeviceCase update(pair.update);
  DeviceCase overwrites(pair.copy);
  pair.share(overwrites, update);
  overwrites.share(1, update, 5);  // a gradient that is read by another block
  EXPECT_EQ(pair_kernel_for(update.call(), overwrites.call()), nullptr);
  DeviceCase other(pair.copy);
  pair.share(other, update);
  other.share(2, update, 2);  // a moment
  EXPECT_EQ(pair_kernel_for(update.call(), other.call()), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Types, CudaReference,
                         testing::Values(schedule::DType::kFp32, schedule::DType::kBf16, schedule::DType::kFp16));

// Two runs give the same bits, whatever the order of blocks and threads is.
TEST(CudaDeterminism, KernelsGiveTheSameBitsAgain) {
  if (const std::string reason = no_device_reason(); !reason.empty()) GTEST_SKIP() << reason;
  for (const Case& given : kernel_cases(schedule::DType::kFp32, plan::Access::kReadWrite, {5, 27, 40, 7})) {
    const Case first = done_by_device(given);
    const Case second = done_by_device(given);
    for (std::size_t i = 0; i < first.operands.size(); ++i) {
      EXPECT_EQ(first.operands[i].bytes, second.operands[i].bytes) << given.name << ", operand " << i;
    }
  }
}

}  // namespace
}  // namespace krigtune::cuda
