#include "engine/cuda/attention_check.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/cuda/kernels/device_kernel.h"
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

plan::Operation attention_operation(schedule::OpKind kind, std::int64_t head_size) {
  int device = 0;
  KRIGTUNE_CHECK_CUDA(cudaGetDevice(&device));
  plan::Operation operation;
  operation.kind = kind;
  plan::Shape& s = operation.shape;
  s.batch = 1;
  s.seq = 4 * 128 + 37;
  s.kv_heads = std::max(1, properties_of(device).multiProcessorCount / 8);
  s.heads = 2 * s.kv_heads;
  s.inner = s.heads * head_size;
  s.rows = s.batch * s.seq;
  operation.operands.resize(kind == schedule::OpKind::kAttentionForward ? 3 : 5);
  return operation;
}

/// The kernels' results: output, log-sum-exp, and gradients of queries, keys and values.
struct Attended {
  std::vector<std::uint16_t> out;
  std::vector<float> logsumexp;
  std::vector<std::uint16_t> gradients;
};

template <class T>
std::int64_t size_bytes_of(const std::vector<T>& values) {
  return static_cast<std::int64_t>(values.size() * sizeof(T));
}

/// A tensor on the device with its view as an operand.
struct OnDevice {
  DeviceBytes memory;
  engine::OperandView view;

  OnDevice(schedule::DType type, std::int64_t elems, plan::Access access)
      : memory(allocate_device(elems * schedule::size_bytes(type))), view{memory.get(), elems, access, type} {
    constexpr int kNan = 0xFF;
    KRIGTUNE_CHECK_CUDA(cudaMemset(memory.get(), kNan, bytes()));
  }
  std::size_t bytes() const { return static_cast<std::size_t>(view.elems * schedule::size_bytes(view.type)); }
  template <class T>
  std::vector<T> read() const {
    std::vector<T> values(bytes() / sizeof(T));
    KRIGTUNE_CHECK_CUDA(cudaMemcpy(values.data(), memory.get(), bytes(), cudaMemcpyDefault));
    return values;
  }
  engine::OperandView as(plan::Access access) const { return {view.data, view.elems, access, view.type}; }
};

// Returns random numbers of a normal distribution, rounded to `type`.
OnDevice random_tensor(schedule::DType type, std::int64_t elems, std::uint64_t seed) {
  Rng rng(seed, 1);
  std::vector<float> numbers(static_cast<std::size_t>(elems));
  for (float& number : numbers) number = static_cast<float>(rng.normal());
  std::vector<std::uint16_t> rounded(numbers.size());
  engine::round_to(type, numbers.data(), elems, rounded.data());
  OnDevice tensor(type, elems, plan::Access::kRead);
  KRIGTUNE_CHECK_CUDA(cudaMemcpy(tensor.memory.get(), rounded.data(), tensor.bytes(), cudaMemcpyDefault));
  return tensor;
}

/// Runs attention of one sequence, forward and backward.
class AttentionRuns {
 public:
  AttentionRuns(schedule::DType type, std::int64_t head_size)
      : type_(type),
        forward_(attention_operation(schedule::OpKind::kAttentionForward, head_size)),
        backward_(attention_operation(schedule::OpKind::kAttentionBackward, head_size)),
        qkv_(random_tensor(type, forward_.shape.rows * (forward_.shape.inner + 2 * forward_.shape.kv_heads * head_size),
                           2027)),
        dout_(random_tensor(type, forward_.shape.rows * forward_.shape.inner, 2028)),
        scratch_(allocate_device(scratch_floats(backward_) * schedule::size_bytes(schedule::DType::kFp32))) {}

  Attended run(bool on_hopper) const {
    const plan::Shape& s = forward_.shape;
    const OnDevice out(type_, s.rows * s.inner, plan::Access::kWrite);
    const OnDevice logsumexp(schedule::DType::kFp32, s.heads * s.seq, plan::Access::kWrite);
    const OnDevice gradients(type_, qkv_.view.elems, plan::Access::kWrite);
    call(forward_, {qkv_.view, out.view, logsumexp.view}, on_hopper);
    call(backward_,
         {dout_.view, qkv_.view, out.as(plan::Access::kRead), logsumexp.as(plan::Access::kRead), gradients.view},
         on_hopper);
    return {out.read<std::uint16_t>(), logsumexp.read<float>(), gradients.read<std::uint16_t>()};
  }

  std::vector<float> numbers(const std::vector<std::uint16_t>& rounded) const {
    std::vector<float> widened(rounded.size());
    engine::widen(type_, rounded.data(), static_cast<std::int64_t>(widened.size()), widened.data());
    return widened;
  }

 private:
  void call(const plan::Operation& operation, const std::vector<engine::OperandView>& operands, bool on_hopper) const {
    const engine::StepContext context{};
    device_kernel_for(operation.kind)({.operation = operation,
                                       .operands = operands,
                                       .context = context,
                                       .scratch = reinterpret_cast<float*>(scratch_.get()),
                                       .hopper_attention = on_hopper});
    KRIGTUNE_CHECK_CUDA(cudaDeviceSynchronize());
  }

  schedule::DType type_;
  plan::Operation forward_, backward_;
  OnDevice qkv_, dout_;
  DeviceBytes scratch_;
};

// Returns ||a - b|| / ||b||; NaN if a number is NaN.
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
  // Both kinds of kernels round weights and results to 16 bits, but in a different order: each is within 3e-3 (bf16)
  // and 4e-4 (fp16) of fp64.
  const double most = type == schedule::DType::kBf16 ? 8e-3 : 1e-3;
  constexpr double kMostOfLogsumexp = 1e-5;
  const AttentionRuns runs(type, head_size);
  const Attended expected = runs.run(false);
  const Attended actual = runs.run(true);
  const Attended again = runs.run(true);
  const auto differ = [](const char* what, double error) {
    return fmt::format("{} differ by {:.2g} of their size", what, error);
  };
  double error = distance(runs.numbers(actual.out), runs.numbers(expected.out));
  if (!(error <= most)) return differ("outputs", error);
  error = distance(actual.logsumexp, expected.logsumexp);
  if (!(error <= kMostOfLogsumexp)) return differ("log-sum-exps", error);
  error = distance(runs.numbers(actual.gradients), runs.numbers(expected.gradients));
  if (!(error <= most)) return differ("gradients", error);
  if (actual.out != again.out || actual.gradients != again.gradients) return "two runs give different bits";
  return "";
}

}  // namespace krigtune::cuda
