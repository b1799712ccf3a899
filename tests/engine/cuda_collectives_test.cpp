// Compares the emulated collectives bit by bit with their definition, computed element by element on the host. One call
// takes several tensors of odd sizes, aligned or not, and must leave the memory around them as it was. Compiled for a
// GPU and for the emulation of CUDA.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "cuda_case_runs.h"
#include "engine/cuda/kernels/emulated_collective.h"
#include "engine/host/number_types.h"
#include "krigtune/rng.h"

namespace krigtune::cuda {
namespace {

using schedule::DType;

constexpr std::size_t kAroundElems = 9;

/// Numbers of one type, with other numbers before and after them in memory.
class Tensor {
 public:
  Tensor(DType type, std::int64_t elems, std::int64_t first, Rng& rng)
      : type_(type), elems_(elems), first_(static_cast<std::size_t>(first)), bytes_(at(elems) + kAroundElems * size()) {
    for (std::size_t i = 0; i < bytes_.size() / size(); ++i) put(i, static_cast<float>(rng.normal()));
    device_ = std::make_unique<DeviceBuffer>(bytes_);
  }

  std::size_t size() const { return static_cast<std::size_t>(schedule::size_bytes(type_)); }
  std::int64_t elems() const { return elems_; }
  float get(std::int64_t i) const { return read(first_ + static_cast<std::size_t>(i)); }
  void set(std::int64_t i, float value) { put(first_ + static_cast<std::size_t>(i), value); }

  engine::OperandView view() const {
    return {static_cast<std::byte*>(device_->data()) + first_ * size(), elems_, plan::Access::kReadWrite, type_};
  }
  bool is_aligned(std::int64_t part_elems) const {
    return (first_ * size()) % 16 == 0 && static_cast<std::size_t>(part_elems) * size() % 16 == 0;
  }
  /// Returns whether the device holds the same bytes as the host, including those around the tensor.
  bool is_as_on_device() const { return device_->read() == bytes_; }

 private:
  std::size_t at(std::int64_t i) const { return (first_ + static_cast<std::size_t>(i)) * size(); }
  float read(std::size_t i) const {
    float value = 0.0F;
    std::uint16_t bits = 0;
    if (type_ == DType::kFp32) {
      std::memcpy(&value, bytes_.data() + i * size(), sizeof(value));
    } else {
      std::memcpy(&bits, bytes_.data() + i * size(), sizeof(bits));
      engine::widen(type_, &bits, 1, &value);
    }
    return value;
  }
  void put(std::size_t i, float value) {
    if (type_ == DType::kFp32) {
      std::memcpy(bytes_.data() + i * size(), &value, sizeof(value));
      return;
    }
    std::uint16_t bits = 0;
    engine::round_to(type_, &value, 1, &bits);
    std::memcpy(bytes_.data() + i * size(), &bits, sizeof(bits));
  }

  DType type_;
  std::int64_t elems_;
  std::size_t first_;
  std::vector<std::byte> bytes_;
  std::unique_ptr<DeviceBuffer> device_;
};

/// Numbers of elements of the tensors or, if they have a part for each rank, of a part: a few, none, and several tiles
/// of packs with and without a remainder.
const std::vector<std::int64_t> kElems = {1, 3, 8, 16, 100, 0, 1000, 4099, 32768 + 64, 65536, 70000};

class CudaCollectives : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    if (const std::string reason = no_device_reason(); !reason.empty()) GTEST_SKIP() << reason;
  }

  std::vector<Tensor> tensors(std::int64_t parts, std::int64_t first, Rng& rng) const {
    std::vector<Tensor> all;
    for (const std::int64_t elems : kElems) all.emplace_back(GetParam(), parts * elems, first, rng);
    return all;
  }
  static std::vector<engine::OperandView> views(const std::vector<Tensor>& tensors) {
    std::vector<engine::OperandView> all;
    for (const Tensor& tensor : tensors) all.push_back(tensor.view());
    return all;
  }
};

void sum_parts(Tensor& whole, std::int64_t ranks) {
  const std::int64_t part = whole.elems() / ranks;
  for (std::int64_t e = 0; e < part; ++e) {
    float sum = 0.0F;
    for (std::int64_t rank = 0; rank < ranks; ++rank) sum += whole.get(rank * part + e);
    whole.set(e, sum);
  }
}

void scale(Tensor& whole, std::int64_t ranks) {
  const auto factor = static_cast<float>(std::sqrt(static_cast<double>(ranks)));
  for (std::int64_t e = 0; e < whole.elems(); ++e) whole.set(e, factor * whole.get(e));
}

// Part r of the whole becomes the shard rotated by r packs of 16 bytes if both are aligned, and by r elements
// otherwise.
void turn_parts(const Tensor& shard, Tensor& whole, std::int64_t ranks) {
  const std::int64_t part = shard.elems();
  const bool packed = shard.is_aligned(part) && whole.is_aligned(part);
  const std::int64_t turn = packed ? 16 / static_cast<std::int64_t>(shard.size()) : 1;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    for (std::int64_t e = 0; e < part; ++e) whole.set(rank * part + e, shard.get((e + rank * turn) % part));
  }
}

TEST_P(CudaCollectives, ReduceWhatIsWrittenDown) {
  Rng rng(11, 0);
  using Alone = void (*)(std::span<const engine::OperandView>, std::int64_t, Queue);
  using OnHost = void (*)(Tensor&, std::int64_t);
  const std::vector<std::pair<Alone, OnHost>> kinds = {{reduce_scatter_alone, sum_parts}, {all_reduce_alone, scale}};
  for (const auto& [alone, on_host] : kinds) {
    for (const std::int64_t ranks : {2, 5, 8}) {
      for (const std::int64_t first : {0, 1, 4}) {
        std::vector<Tensor> all = tensors(alone == reduce_scatter_alone ? ranks : 1, first, rng);
        alone(views(all), ranks, nullptr);
        for (std::size_t i = 0; i < all.size(); ++i) {
          on_host(all[i], ranks);
          EXPECT_TRUE(all[i].is_as_on_device()) << "tensor " << i << ", " << ranks << " ranks, from " << first;
        }
      }
    }
  }
}

TEST_P(CudaCollectives, GatherWhatIsWrittenDown) {
  Rng rng(12, 0);
  for (const std::int64_t ranks : {2, 3, 8}) {
    for (const std::int64_t first : {0, 1, 8}) {
      const std::vector<Tensor> shards = tensors(1, ranks == 3 ? 2 : 0, rng);
      std::vector<Tensor> wholes = tensors(ranks, first, rng);
      std::vector<engine::OperandView> operands;
      for (std::size_t i = 0; i < shards.size(); ++i) {
        operands.push_back(shards[i].view());
        operands.push_back(wholes[i].view());
      }
      gather_alone(operands, ranks, nullptr);
      for (std::size_t i = 0; i < shards.size(); ++i) {
        turn_parts(shards[i], wholes[i], ranks);
        EXPECT_TRUE(wholes[i].is_as_on_device()) << "tensor " << i << ", " << ranks << " ranks, to " << first;
        EXPECT_TRUE(shards[i].is_as_on_device()) << "shard " << i;
      }
    }
  }
}

TEST_P(CudaCollectives, GatherWhereTheShardLiesInTheWhole) {
  Rng rng(13, 0);
  constexpr std::int64_t kRanks = 4;
  for (const std::int64_t first : {0, 3}) {
    std::vector<Tensor> wholes = tensors(kRanks, first, rng);
    std::vector<engine::OperandView> operands;
    for (const Tensor& whole : wholes) {
      engine::OperandView shard = whole.view();
      shard.elems /= kRanks;
      operands.push_back(shard);
      operands.push_back(whole.view());
    }
    gather_alone(operands, kRanks, nullptr);
    for (std::size_t i = 0; i < wholes.size(); ++i) {
      const std::int64_t part = wholes[i].elems() / kRanks;
      const std::int64_t turn = wholes[i].is_aligned(part) ? 16 / static_cast<std::int64_t>(wholes[i].size()) : 1;
      for (std::int64_t e = kRanks * part - 1; e >= part; --e) {
        wholes[i].set(e, wholes[i].get((e % part + e / part * turn) % part));
      }
      EXPECT_TRUE(wholes[i].is_as_on_device()) << "tensor " << i << " from " << first;
    }
  }
}

// These are more tensors than fit into the arguments of one kernel.
TEST_P(CudaCollectives, TakeAnyNumberOfTensors) {
  Rng rng(14, 0);
  std::vector<Tensor> all;
  for (std::int64_t i = 0; i < 250; ++i) all.emplace_back(GetParam(), 1 + i % 37, i % 3, rng);
  all_reduce_alone(views(all), 4, nullptr);
  all_reduce_alone({}, 4, nullptr);
  for (std::size_t i = 0; i < all.size(); ++i) {
    scale(all[i], 4);
    EXPECT_TRUE(all[i].is_as_on_device()) << "tensor " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaCollectives, testing::Values(DType::kFp32, DType::kBf16, DType::kFp16));

}  // namespace
}  // namespace krigtune::cuda
