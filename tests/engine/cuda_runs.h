#pragma once
// Cases done by the host's kernels and by the device's.
#include <cuda_runtime_api.h>

#include <memory>

#include "cuda/blas_gemm.h"
#include "cuda/check.h"
#include "cuda/cuda_trainer.h"
#include "cuda_cases.h"
#include "host/call_kernel.h"

namespace krigtune::cuda {

/// Why nothing can run here; empty: it can.
inline std::string no_device_reason() {
  try {
    usable_gpus();
    return "";
  } catch (const DeviceError& error) {
    return error.what();
  }
}

/// Bytes on the device.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(const std::vector<std::byte>& bytes) : size_(bytes.size()) {
    KRIGTUNE_CHECK_CUDA(cudaMalloc(&data_, size_));
    KRIGTUNE_CHECK_CUDA(cudaMemcpy(data_, bytes.data(), size_, cudaMemcpyHostToDevice));
  }
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  void* data() const { return data_; }
  /// Once all that was started has ended.
  std::vector<std::byte> read() const {
    std::vector<std::byte> bytes(size_);
    KRIGTUNE_CHECK_CUDA(cudaDeviceSynchronize());
    KRIGTUNE_CHECK_CUDA(cudaMemcpy(bytes.data(), data_, size_, cudaMemcpyDeviceToHost));
    return bytes;
  }

 private:
  void* data_ = nullptr;
  std::size_t size_;
};

inline std::vector<std::byte> bytes_of(std::int64_t number) {
  std::vector<std::byte> bytes(sizeof(number));
  std::memcpy(bytes.data(), &number, sizeof(number));
  return bytes;
}

inline Operation operation_of(const Case& given) {
  Operation operation;
  operation.kind = given.kind;
  operation.layer = 1;
  operation.micro_step = 1;
  operation.shape = given.shape;
  operation.scale = given.scale;
  operation.operands.resize(given.operands.size());
  return operation;
}

inline Case done_by_host(Case given) {
  const Operation operation = operation_of(given);
  BoundOperation bound;
  bound.operation = &operation;
  bound.kernel = kernel_for<float>(given.kind);
  for (Datum& d : given.operands) bound.operands.push_back({d.bytes.data(), d.elems(), d.access, d.type});
  std::vector<float> scratch(static_cast<std::size_t>(call_scratch_elems(bound)));
  call_kernel(bound, given.context, scratch.data());
  return given;
}

inline Case done_by_device(Case given) {
  const Operation operation = operation_of(given);
  std::vector<std::unique_ptr<DeviceBuffer>> buffers;
  std::vector<OperandView> views;
  for (const Datum& d : given.operands) {
    buffers.push_back(std::make_unique<DeviceBuffer>(d.bytes));
    views.push_back({buffers.back()->data(), d.elems(), d.access, d.type});
  }
  const DeviceBuffer scratch(
      std::vector<std::byte>(static_cast<std::size_t>(scratch_floats(operation)) * sizeof(float)));
  const std::unique_ptr<Gemm> gemm = make_blas_gemm();
  const DeviceBuffer step(bytes_of(given.context.step));
  const DeviceCall call{.operation = operation,
                        .operands = views,
                        .context = given.context,
                        .step = static_cast<const std::int64_t*>(step.data()),
                        .scratch = static_cast<float*>(scratch.data()),
                        .gemm = gemm.get()};
  if (is_matrix_product(given.kind)) gemm->prepare(product_of(call));
  device_kernel_for(given.kind)(call);
  for (std::size_t i = 0; i < buffers.size(); ++i) given.operands[i].bytes = buffers[i]->read();
  return given;
}

/// ||a - b|| / ||b||; elements that are the same infinity or both no number are equal.
inline double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0.0;
  double norm = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) {
      norm += std::isfinite(b[i]) ? static_cast<double>(b[i]) * static_cast<double>(b[i]) : 0.0;
      continue;
    }
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2.0);
    norm += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return difference == 0.0 ? 0.0 : std::sqrt(difference / norm);
}

}  // namespace krigtune::cuda
