// Tests how the communicator uses NCCL, with a library in its place that records the calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "engine/cuda/device_communicator.h"
#include "fake_nccl.h"

namespace krigtune::cuda {
namespace {

using Buffers = schedule::NcclKnobs::Buffers;
using testing::HasSubstr;

class Nccl : public testing::Test {
 protected:
  ~Nccl() override { fake_nccl_is(22809); }

  // Returns the calls of a communicator that is made with these knobs and then destroyed.
  static std::string calls_with(const schedule::NcclKnobs& knobs) {
    constexpr std::int64_t kBytes = 4096;
    const std::size_t before = std::string(fake_nccl_calls()).size();
    {
      const DeviceBytes memory =
          knobs.buffers == Buffers::kPlain ? allocate_device(kBytes) : allocate_for_nccl(kBytes, knobs.buffers);
      const NcclOptions options{knobs, {memory.get(), kBytes}};
      make_nccl_communicator(new_nccl_id(), 1, 4, options, [] {});
    }
    return std::string(fake_nccl_calls()).substr(before);
  }
};

TEST_F(Nccl, DecidesByItselfUnlessToldOtherwise) {
  EXPECT_EQ(calls_with({}), "init rank 1 of 4, blocking 0, CTAs default, policy default\nabort\n");
  EXPECT_EQ(calls_with({Buffers::kPlain, 8}), "init rank 1 of 4, blocking 0, CTAs 8, policy default\nabort\n");
}

// Registered memory comes from NCCL, and is freed after the communicator that registered it.
TEST_F(Nccl, RegistersTheMemoryThatTensorsLieIn) {
  EXPECT_EQ(calls_with({Buffers::kRegistered, 0}),
            "allocate 4096\ninit rank 1 of 4, blocking 0, CTAs default, policy default\nregister its memory, 4096\n"
            "abort\nfree its memory\n");
  EXPECT_EQ(calls_with({Buffers::kSymmetric, 16}),
            "allocate 4096\ninit rank 1 of 4, blocking 0, CTAs 16, policy default\n"
            "window of its memory, 4096, flags 1\nabort\nfree its memory\n");
  EXPECT_EQ(calls_with({Buffers::kCopyEngines, 0}),
            "allocate 4096\ninit rank 1 of 4, blocking 0, CTAs default, policy 2\n"
            "window of its memory, 4096, flags 1\nabort\nfree its memory\n");
}

TEST_F(Nccl, OfAnOlderVersionIsRefusedByName) {
  const auto refusal = [](Buffers buffers) {
    try {
      allocate_for_nccl(1, buffers);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  fake_nccl_is(22602);
  EXPECT_THAT(refusal(Buffers::kSymmetric), HasSubstr("symmetric buffers need NCCL 2.27 or newer, and "));
  EXPECT_THAT(refusal(Buffers::kCopyEngines), HasSubstr("copy_engines buffers need NCCL 2.28"));
  EXPECT_EQ(refusal(Buffers::kRegistered), "");
  fake_nccl_is(21805);
  EXPECT_THAT(refusal(Buffers::kRegistered), HasSubstr("registered buffers need NCCL 2.19"));
}

}  // namespace
}  // namespace krigtune::cuda
