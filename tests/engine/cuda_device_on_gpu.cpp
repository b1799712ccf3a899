#include <cuda_runtime_api.h>

#include "cuda/blas_gemm.h"
#include "cuda/check.h"
#include "cuda/cuda_trainer.h"
#include "cuda_device.h"
#include "krigtune/core/clock.h"

namespace krigtune::cuda {
namespace {

class TrainerOnGpu final : public OneRankTrainer {
 public:
  TrainerOnGpu(const StepPlan& plan, const TrainingOptions& options) : trainer_(plan, clock_, options) {}
  double step() override { return trainer_.step().loss; }
  std::vector<float> parameters() override { return trainer_.parameters(); }

 private:
  SystemClock clock_;
  CudaTrainer trainer_;
};

}  // namespace

std::string no_device_reason() {
  try {
    usable_gpus();
    return "";
  } catch (const DeviceError& error) {
    return error.what();
  }
}

DeviceBuffer::DeviceBuffer(const std::vector<std::byte>& bytes) : size_(bytes.size()) {
  KRIGTUNE_CHECK_CUDA(cudaMalloc(&data_, size_));
  KRIGTUNE_CHECK_CUDA(cudaMemcpy(data_, bytes.data(), size_, cudaMemcpyHostToDevice));
}
DeviceBuffer::~DeviceBuffer() { cudaFree(data_); }
std::vector<std::byte> DeviceBuffer::read() const {
  std::vector<std::byte> bytes(size_);
  KRIGTUNE_CHECK_CUDA(cudaDeviceSynchronize());
  KRIGTUNE_CHECK_CUDA(cudaMemcpy(bytes.data(), data_, size_, cudaMemcpyDeviceToHost));
  return bytes;
}

std::unique_ptr<Gemm> make_test_gemm() { return make_blas_gemm(); }

std::unique_ptr<OneRankTrainer> make_one_rank_trainer(const StepPlan& plan, const TrainingOptions& options) {
  return std::make_unique<TrainerOnGpu>(plan, options);
}

}  // namespace krigtune::cuda
