#pragma once
#include <memory>

#include "cuda_cases.h"
#include "engine/cuda/kernels/device_kernel.h"

namespace krigtune::cuda {

/// Why nothing can run here; empty: it can.
std::string no_device_reason();

/// Whether this is the emulation of CUDA, and no GPU.
bool is_emulated();
/// From now on blocks may have so much shared memory. False, and nothing changes, on a GPU.
bool limit_shared_memory(int bytes);
inline constexpr int kHopperSharedBytes = 227 << 10;

/// Bytes on the device.
class DeviceBuffer {
 public:
  /// Behind so many others, so that it begins where one wants.
  explicit DeviceBuffer(const std::vector<std::byte>& bytes, std::size_t behind_bytes = 0);
  void write(const std::vector<std::byte>& bytes) const;
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  void* data() const { return static_cast<std::byte*>(memory_) + behind_bytes_; }
  /// Once all that was started has ended.
  std::vector<std::byte> read() const;

 private:
  void* memory_ = nullptr;
  std::size_t size_, behind_bytes_;
};

/// A case with its operands on the device.
class DeviceCase {
 public:
  /// Each operand begins so many of its elements behind an aligned address.
  explicit DeviceCase(Case given, std::int64_t behind_elems = 0);

  DeviceCall call() const;
  /// Chooses how a matrix product is made, which is tried on the operands; they are as given afterwards.
  void prepare() const;
  /// The operand lies where another case has its own.
  void share(std::size_t operand, const DeviceCase& other, std::size_t others) {
    views_[operand].data = other.views_[others].data;
  }
  /// With what the device's memory of its own holds now.
  Case result() const;

 private:
  Case given_;
  plan::Operation operation_;
  std::vector<std::unique_ptr<DeviceBuffer>> buffers_;
  std::vector<engine::OperandView> views_;
  std::unique_ptr<DeviceBuffer> scratch_, step_;
  std::unique_ptr<Gemm> gemm_;  ///< null: no product
};

Case done_by_host(Case given);
Case done_by_device(Case given, std::int64_t behind_elems = 0);
/// The numbers of each operand after the host's kernels in fp64, with nothing rounded; of one that holds no numbers:
/// none.
std::vector<std::vector<double>> done_in_fp64(const Case& given);

/// Of the comparison with the host's kernels. A rounding unit of bf16 is 2^-8, and some results are rounded twice.
inline double tolerance(schedule::DType type) { return engine::is_16_bit(type) ? 1e-2 : 1e-5; }

/// ||a - b|| / ||b||; elements that are the same infinity or both no number are equal.
double relative_error(const std::vector<float>& a, const std::vector<double>& b);

void expect_same(const Case& device, const Case& host, double most);

}  // namespace krigtune::cuda
