#pragma once
#include <memory>

#include "cuda_cases.h"
#include "engine/cuda/kernels/device_kernel.h"

namespace krigtune::cuda {

/// Returns why kernels cannot run on this machine; empty if they can.
std::string no_device_reason();

/// Returns whether kernels run on the emulation of CUDA instead of a GPU.
bool is_emulated();
/// Limits the shared memory of a block from now on, and returns true. On a GPU, changes nothing and returns false.
bool limit_shared_memory(int bytes);
inline constexpr int kHopperSharedBytes = 227 << 10;

/// Owns bytes on the device.
class DeviceBuffer {
 public:
  /// Copies `bytes` to the device, `behind_bytes` after an aligned address.
  explicit DeviceBuffer(const std::vector<std::byte>& bytes, std::size_t behind_bytes = 0);
  void write(const std::vector<std::byte>& bytes) const;
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  void* data() const { return static_cast<std::byte*>(memory_) + behind_bytes_; }
  /// Waits until the device has finished all its work, and returns the bytes.
  std::vector<std::byte> read() const;

 private:
  void* memory_ = nullptr;
  std::size_t size_, behind_bytes_;
};

/// Holds a case with its operands on the device.
class DeviceCase {
 public:
  /// Each operand begins `behind_elems` of its elements after an aligned address.
  explicit DeviceCase(Case given, std::int64_t behind_elems = 0);

  DeviceCall call() const;
  /// Chooses the algorithm of a matrix product by trying several on the operands, and then restores the operands. Does
  /// nothing for other operations.
  void prepare() const;
  /// Makes the operand use the memory of operand `others` of another case.
  void share(std::size_t operand, const DeviceCase& other, std::size_t others) {
    views_[operand].data = other.views_[others].data;
  }
  /// Returns the case with the present contents of its own device memory, which does not include shared operands.
  Case result() const;

 private:
  Case given_;
  plan::Operation operation_;
  std::vector<std::unique_ptr<DeviceBuffer>> buffers_;
  std::vector<engine::OperandView> views_;
  std::unique_ptr<DeviceBuffer> scratch_, step_;
  std::unique_ptr<Gemm> gemm_;  ///< null unless the operation is a matrix product
};

Case done_by_host(Case given);
Case done_by_device(Case given, std::int64_t behind_elems = 0);
/// Runs the host's kernel in fp64 without rounding the operands, and returns the numbers of each operand afterwards;
/// none for an operand that does not hold numbers.
std::vector<std::vector<double>> done_in_fp64(const Case& given);

/// Returns the tolerance for comparisons with the host's kernels. The unit roundoff of bf16 is 2^-8, and some results
/// are rounded twice.
inline double tolerance(schedule::DType type) { return engine::is_16_bit(type) ? 1e-2 : 1e-5; }

/// Returns ||a - b|| / ||b||. Elements that are the same infinity or both NaN count as equal.
double relative_error(const std::vector<float>& a, const std::vector<double>& b);

void expect_same(const Case& device, const Case& host, double most);

}  // namespace krigtune::cuda
