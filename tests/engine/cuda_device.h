#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cuda/kernels/device_kernel.h"
#include "krigtune/engine/trainer.h"

namespace krigtune::cuda {

// What the tests of the device kernels need of a device. Two are made: cuda_device_on_gpu.cpp is one, and
// cuda_device_on_cpu.cpp plays one with the same kernels compiled as plain C++.

/// Why nothing can run here; empty: it can.
std::string no_device_reason();

/// Bytes on the device.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(const std::vector<std::byte>& bytes);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  void* data() const { return data_; }
  /// Once all that was started has ended.
  std::vector<std::byte> read() const;

 private:
  void* data_ = nullptr;
  std::size_t size_;
};

std::unique_ptr<Gemm> make_test_gemm();

/// Trains a plan of one rank on the device.
class OneRankTrainer {
 public:
  virtual ~OneRankTrainer() = default;
  virtual double step() = 0;  ///< the mean loss
  virtual std::vector<float> parameters() = 0;
};
std::unique_ptr<OneRankTrainer> make_one_rank_trainer(const StepPlan& plan, const TrainingOptions& options);

}  // namespace krigtune::cuda
