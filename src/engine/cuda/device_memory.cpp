#include "engine/cuda/device_memory.h"

#include <algorithm>
#include <cstring>

#include "engine/cuda/device_communicator.h"
#include "engine/cuda/kernels/device_kernel.h"
#include "engine/cuda/runtime/check.h"
#include "engine/host/number_types.h"

namespace krigtune::cuda {
namespace {

constexpr std::int64_t kGuardBytes = std::int64_t{1} << 20U;
constexpr int kPattern = 0xFB;  // as in host/arena.cpp: real data do not end with this byte

}  // namespace

DeviceMemory::DeviceMemory(const plan::StepPlan& plan, schedule::NcclKnobs::Buffers buffers)
    : device_bytes_(plan.arena_bytes + kGuardBytes),
      host_bytes_(plan.host_arena_bytes > 0 ? plan.host_arena_bytes + kGuardBytes : 0),
      device_(buffers == schedule::NcclKnobs::Buffers::kPlain ? allocate_device(device_bytes_)
                                                              : allocate_for_nccl(device_bytes_, buffers)),
      host_(allocate_pinned(host_bytes_)) {}

void DeviceMemory::fill_with_numbers() const { fill_numbers(device_.get(), device_bytes_, nullptr); }

void DeviceMemory::fill_with_pattern() const {
  KRIGTUNE_CHECK_CUDA(cudaMemset(device_.get(), kPattern, static_cast<std::size_t>(device_bytes_)));
  std::memset(host_.get(), kPattern, static_cast<std::size_t>(host_bytes_));
}

std::byte* DeviceMemory::at(const plan::Buffer& buffer) const {
  return (buffer.place == schedule::Place::kDevice ? device_.get() : host_.get()) + buffer.offset_bytes;
}

std::byte* DeviceMemory::at(const plan::StepPlan& plan, const plan::Range& range, std::int64_t rank) const {
  const plan::Buffer& buffer = plan.buffers[static_cast<std::size_t>(range.buffer)];
  return at(buffer) + (range.begin_elems + rank * range.rank_stride_elems) * schedule::size_bytes(buffer.type);
}

void DeviceMemory::upload(const plan::StepPlan& plan, const plan::Range& range, std::int64_t rank,
                          const std::vector<float>& values) const {
  const schedule::DType type = plan.buffers[static_cast<std::size_t>(range.buffer)].type;
  const std::size_t bytes = values.size() * static_cast<std::size_t>(schedule::size_bytes(type));
  const void* source = values.data();
  std::vector<std::uint16_t> halves;
  if (engine::is_16_bit(type)) {
    halves.resize(values.size());
    engine::round_to(type, values.data(), static_cast<std::int64_t>(values.size()), halves.data());
    source = halves.data();
  }
  KRIGTUNE_CHECK_CUDA(cudaMemcpy(at(plan, range, rank), source, bytes, cudaMemcpyDefault));
}

std::vector<float> DeviceMemory::download(const plan::StepPlan& plan, const plan::Range& range,
                                          std::int64_t rank) const {
  const schedule::DType type = plan.buffers[static_cast<std::size_t>(range.buffer)].type;
  std::vector<float> values(static_cast<std::size_t>(range.elems));
  const std::byte* source = at(plan, range, rank);
  if (!engine::is_16_bit(type)) {
    KRIGTUNE_CHECK_CUDA(cudaMemcpy(values.data(), source, values.size() * sizeof(float), cudaMemcpyDefault));
    return values;
  }
  std::vector<std::uint16_t> halves(values.size());
  KRIGTUNE_CHECK_CUDA(cudaMemcpy(halves.data(), source, halves.size() * sizeof(std::uint16_t), cudaMemcpyDefault));
  engine::widen(type, halves.data(), range.elems, values.data());
  return values;
}

void DeviceMemory::clear(const plan::Buffer& buffer) const {
  const auto bytes = static_cast<std::size_t>(buffer.bytes());
  if (buffer.place == schedule::Place::kHost) {
    std::memset(at(buffer), 0, bytes);
  } else {
    KRIGTUNE_CHECK_CUDA(cudaMemset(at(buffer), 0, bytes));
  }
}

std::int64_t DeviceMemory::highest_changed_bytes(schedule::Place place) const {
  const std::byte* memory = place == schedule::Place::kDevice ? device_.get() : host_.get();
  constexpr std::int64_t kChunkBytes = std::int64_t{16} << 20U;
  std::vector<std::byte> chunk(static_cast<std::size_t>(kChunkBytes));
  for (std::int64_t end = place == schedule::Place::kDevice ? device_bytes_ : host_bytes_; end > 0;) {
    const std::int64_t begin = std::max<std::int64_t>(0, end - kChunkBytes);
    KRIGTUNE_CHECK_CUDA(
        cudaMemcpy(chunk.data(), memory + begin, static_cast<std::size_t>(end - begin), cudaMemcpyDefault));
    for (std::int64_t i = end - begin; i > 0; --i) {
      if (chunk[static_cast<std::size_t>(i - 1)] != std::byte{kPattern}) return begin + i;
    }
    end = begin;
  }
  return 0;
}

}  // namespace krigtune::cuda
