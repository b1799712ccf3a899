#include "engine/host/update_slices.h"

#include <gtest/gtest.h>

#include "engine/host/number_types.h"
#include "krigtune/rng.h"

namespace krigtune::engine::update_slices_test {

/// AdamW of three tensors, the second with bf16 gradients, and a control that scales them.
struct Update {
  explicit Update(std::uint64_t seed) {
    Rng rng(seed, 0);
    operation.kind = schedule::OpKind::kAdamW;
    for (std::size_t tensor = 0; tensor < kElems.size(); ++tensor) {
      for (std::size_t role = 0; role < 4; ++role) {
        std::vector<float> values(static_cast<std::size_t>(kElems[tensor]));
        for (float& value : values) value = static_cast<float>(std::abs(rng.normal()));
        numbers.push_back(std::move(values));
      }
    }
    control = {1.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F};
    control[static_cast<std::size_t>(schedule::kFactorElement)] = 0.5F;
    control[static_cast<std::size_t>(schedule::kUpdatesElement)] = 3.0F;
    const std::vector<float>& gradient = numbers[5];
    halves.resize(gradient.size());
    round_to(schedule::DType::kBf16, gradient.data(), kElems[1], halves.data());
  }

  BoundOperation bound() {
    BoundOperation all;
    operation.operands.resize(4 * kElems.size() + 1);
    all.operation = &operation;
    all.kernel = kernel_for<float>(operation.kind);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const plan::Access access = i % 4 == 1 ? plan::Access::kRead : plan::Access::kReadWrite;
      all.operands.push_back({numbers[i].data(), kElems[i / 4], access, schedule::DType::kFp32});
    }
    all.operands[5].data = halves.data();
    all.operands[5].type = schedule::DType::kBf16;
    all.operands.push_back(
        {control.data(), static_cast<std::int64_t>(control.size()), plan::Access::kRead, schedule::DType::kFp32});
    return all;
  }

  static void run(const BoundOperation& part) {
    std::vector<float> scratch(static_cast<std::size_t>(call_scratch_elems(part)));
    call_kernel(part, StepContext{}, scratch.data());
  }

  static constexpr std::array<std::int64_t, 3> kElems = {1000, 4099, 7};
  plan::Operation operation;
  std::vector<std::vector<float>> numbers;
  std::vector<std::uint16_t> halves;
  std::vector<float> control;
};

TEST(UpdateSlices, GiveTheSameBitsAsTheWhole) {
  Update whole(1);
  Update::run(whole.bound());
  EXPECT_NE(whole.numbers, Update(1).numbers) << "an update that changes nothing shows nothing";
  for (const int parts : {2, 3, 8}) {
    Update sliced(1);
    const std::vector<BoundOperation> slices = slices_of(sliced.bound(), parts, 1);
    ASSERT_EQ(slices.size(), static_cast<std::size_t>(parts));
    for (const BoundOperation& slice : slices) {
      std::int64_t elems = 0;
      for (std::size_t at = 0; at + 4 <= slice.operands.size(); at += 4) elems += slice.operands[at].elems;
      EXPECT_NEAR(static_cast<double>(elems), 5106.0 / parts, 1.0);
      Update::run(slice);
    }
    EXPECT_EQ(sliced.numbers, whole.numbers) << parts << " parts";
  }
}

TEST(UpdateSlices, AreAsManyAsAreWorthAThread) {
  Update update(1);
  const BoundOperation bound = update.bound();
  EXPECT_EQ(slices_of(bound, 16).size(), 1U);
  EXPECT_EQ(slices_of(bound, 16, 1000).size(), 5U);
  EXPECT_EQ(slices_of(bound, 0, 1000).size(), 1U);
  BoundOperation other = bound;
  plan::Operation copy = update.operation;
  copy.kind = schedule::OpKind::kCopy;
  other.operation = &copy;
  EXPECT_EQ(slices_of(other, 16, 1).size(), 1U);
}

}  // namespace krigtune::engine::update_slices_test
