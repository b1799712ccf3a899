#include "engine/cuda/attention_check.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "engine/cuda/kernels/device_kernel.h"
#include "engine/cuda/kernels/flash_attention.h"
#include "engine/cuda/kernels/flash_attention_hopper.h"
#include "engine/cuda/runtime/check.h"
#include "engine/cuda/runtime/compiled_for.h"
#include "engine/cuda/runtime/handles.h"
#include "engine/host/number_types.h"
#include "krigtune/rng.h"

namespace krigtune::cuda {
namespace {

cudaDeviceProp properties_of(int device) {
  cudaDeviceProp properties{};
  KRIGTUNE_CHECK_CUDA(cudaGetDeviceProperties(&properties, device));
  return properties;
}

plan::Operation attention_operation(std::int64_t head_size) {
  int device = 0;
  KRIGTUNE_CHECK_CUDA(cudaGetDevice(&device));
  plan::Operation operation;
  operation.kind = schedule::OpKind::kAttentionForward;
  plan::Shape& s = operation.shape;
  s.batch = 1;
  s.seq = 4 * 128 + 37;
  s.kv_heads = std::max(1, properties_of(device).multiProcessorCount / 8);
  s.heads = 2 * s.kv_heads;
  s.inner = s.heads * head_size;
  s.rows = s.batch * s.seq;
  operation.operands.resize(3);
  return operation;
}

/// What a kernel has left: output and log-sum-exp, as bytes.
struct Attended {
  std::vector<std::uint16_t> out;
  std::vector<float> logsumexp;

  bool operator==(const Attended& other) const {
    return std::memcmp(out.data(), other.out.data(), out.size() * sizeof(out[0])) == 0 &&
           std::memcmp(logsumexp.data(), other.logsumexp.data(), logsumexp.size() * sizeof(float)) == 0;
  }
};

class AttentionRuns {
 public:
  AttentionRuns(schedule::DType type, std::int64_t head_size)
      : type_(type), operation_(attention_operation(head_size)) {
    const plan::Shape& s = operation_.shape;
    std::vector<float> numbers(static_cast<std::size_t>(s.rows * (s.inner + 2 * s.kv_heads * head_size)));
    constexpr std::uint64_t kSeed = 2027;
    Rng rng(kSeed, 1);
    for (float& number : numbers) number = static_cast<float>(rng.normal());
    std::vector<std::uint16_t> rounded(numbers.size());
    engine::round_to(type, numbers.data(), static_cast<std::int64_t>(numbers.size()), rounded.data());
    qkv_ = allocate_device(bytes_of(rounded));
    KRIGTUNE_CHECK_CUDA(cudaMemcpy(qkv_.get(), rounded.data(), rounded.size() * sizeof(rounded[0]), cudaMemcpyDefault));
    operands_.push_back({qkv_.get(), static_cast<std::int64_t>(rounded.size()), plan::Access::kRead, type});
    result_.out.resize(static_cast<std::size_t>(s.rows * s.inner));
    result_.logsumexp.resize(static_cast<std::size_t>(s.batch * s.heads * s.seq));
    out_ = allocate_device(bytes_of(result_.out));
    logsumexp_ = allocate_device(bytes_of(result_.logsumexp));
    operands_.push_back({out_.get(), s.rows * s.inner, plan::Access::kWrite, type});
    operands_.push_back({logsumexp_.get(), static_cast<std::int64_t>(result_.logsumexp.size()), plan::Access::kWrite,
                         schedule::DType::kFp32});
  }

  template <class Kernel>
  Attended run(const Kernel& kernel) {
    constexpr int kNan = 0xFF;
    KRIGTUNE_CHECK_CUDA(cudaMemset(out_.get(), kNan, result_.out.size() * sizeof(result_.out[0])));
    KRIGTUNE_CHECK_CUDA(cudaMemset(logsumexp_.get(), kNan, result_.logsumexp.size() * sizeof(float)));
    KRIGTUNE_CHECK_CUDA(cudaDeviceSynchronize());
    const engine::StepContext context{};
    kernel(DeviceCall{.operation = operation_, .operands = operands_, .context = context});
    KRIGTUNE_CHECK_CUDA(cudaDeviceSynchronize());
    KRIGTUNE_CHECK_CUDA(
        cudaMemcpy(result_.out.data(), out_.get(), result_.out.size() * sizeof(result_.out[0]), cudaMemcpyDefault));
    KRIGTUNE_CHECK_CUDA(cudaMemcpy(result_.logsumexp.data(), logsumexp_.get(), result_.logsumexp.size() * sizeof(float),
                                   cudaMemcpyDefault));
    return result_;
  }

  std::vector<float> numbers(const Attended& attended) const {
    std::vector<float> widened(attended.out.size());
    engine::widen(type_, attended.out.data(), static_cast<std::int64_t>(widened.size()), widened.data());
    return widened;
  }

 private:
  template <class T>
  static std::int64_t bytes_of(const std::vector<T>& values) {
    return static_cast<std::int64_t>(values.size() * sizeof(T));
  }

  schedule::DType type_;
  plan::Operation operation_;
  DeviceBytes qkv_, out_, logsumexp_;
  std::vector<engine::OperandView> operands_;
  Attended result_;
};

// ||a - b|| / ||b||; NaN where a number is.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0.0;
  double norm = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    difference += d * d;
    norm += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return std::sqrt(difference / norm);
}

}  // namespace

bool may_use_hopper_attention(int device) {
  const cudaDeviceProp properties = properties_of(device);
  return has_hopper_code(compiled_targets(), properties.major, properties.minor);
}

std::string why_not_hopper_attention(schedule::DType type, std::int64_t head_size) {
  // Both round weights and output to 16 bits, in another order: each is within 3e-3 (bf16) and 4e-4 (fp16) of fp64.
  const double most = type == schedule::DType::kBf16 ? 8e-3 : 1e-3;
  constexpr double kMostOfLogsumexp = 1e-5;
  AttentionRuns runs(type, head_size);
  const Attended expected = runs.run(flash_attention_forward);
  const auto on_hopper = [](const DeviceCall& call) { hopper_attention_forward(call); };
  const Attended actual = runs.run(on_hopper);
  const double error = distance(runs.numbers(actual), runs.numbers(expected));
  if (!(error <= most)) return fmt::format("its output differs by {:.2g} of its size", error);
  const double of_logsumexp = distance(actual.logsumexp, expected.logsumexp);
  if (!(of_logsumexp <= kMostOfLogsumexp)) {
    return fmt::format("its log-sum-exp differs by {:.2g} of its size", of_logsumexp);
  }
  if (!(runs.run(on_hopper) == actual)) return "two runs of it give different bits";
  return "";
}

}  // namespace krigtune::cuda
