#include "cuda_case_runs.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "engine/cuda/blas_gemm.h"
#include "engine/cuda/cuda_trainer.h"
#include "engine/cuda/runtime/check.h"
#include "engine/host/bound_plan.h"

namespace krigtune::cuda {
namespace {

bool has_numbers(schedule::DType type) { return type == schedule::DType::kFp32 || engine::is_16_bit(type); }

std::vector<double> widened(const std::vector<float>& values) { return {values.begin(), values.end()}; }

std::vector<std::byte> bytes_of(std::int64_t number) {
  std::vector<std::byte> bytes(sizeof(number));
  std::memcpy(bytes.data(), &number, sizeof(number));
  return bytes;
}

plan::Operation operation_of(const Case& given) {
  plan::Operation operation;
  operation.kind = given.kind;
  operation.layer = 1;
  operation.micro_step = 1;
  operation.shape = given.shape;
  operation.scale = given.scale;
  operation.operands.resize(given.operands.size());
  return operation;
}

// Clears the dropout mask above the diagonal. No query attends to those keys, so host and device may differ there.
std::vector<std::byte> causal_part(const plan::Shape& s, std::vector<std::byte> mask) {
  const auto seq = static_cast<std::size_t>(s.seq);
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (i % seq > i / seq % seq) mask[i] = std::byte{0};
  }
  return mask;
}

}  // namespace

std::string no_device_reason() {
  try {
    usable_gpus();
    require_code_for(0);
    return "";
  } catch (const DeviceError& error) {
    return error.what();
  }
}

DeviceBuffer::DeviceBuffer(const std::vector<std::byte>& bytes, std::size_t behind_bytes)
    : size_(bytes.size()), behind_bytes_(behind_bytes) {
  KRIGTUNE_CHECK_CUDA(cudaMalloc(&memory_, size_ + behind_bytes_));
  write(bytes);
}

void DeviceBuffer::write(const std::vector<std::byte>& bytes) const {
  KRIGTUNE_CHECK_CUDA(cudaMemcpy(data(), bytes.data(), size_, cudaMemcpyHostToDevice));
}

DeviceBuffer::~DeviceBuffer() { cudaFree(memory_); }

std::vector<std::byte> DeviceBuffer::read() const {
  std::vector<std::byte> bytes(size_);
  KRIGTUNE_CHECK_CUDA(cudaDeviceSynchronize());
  KRIGTUNE_CHECK_CUDA(cudaMemcpy(bytes.data(), data(), size_, cudaMemcpyDeviceToHost));
  return bytes;
}

DeviceCase::DeviceCase(Case given, std::int64_t behind_elems)
    : given_(std::move(given)),
      operation_(operation_of(given_)),
      gemm_(plan::is_matrix_product(operation_.kind) ? make_blas_gemm() : nullptr) {
  for (const Datum& d : given_.operands) {
    const auto behind_bytes = static_cast<std::size_t>(behind_elems * schedule::size_bytes(d.type));
    buffers_.push_back(std::make_unique<DeviceBuffer>(d.bytes, behind_bytes));
    views_.push_back({buffers_.back()->data(), d.elems(), d.access, d.type});
  }
  const auto scratch_bytes = static_cast<std::size_t>(scratch_floats(operation_)) * sizeof(float);
  scratch_ = std::make_unique<DeviceBuffer>(std::vector<std::byte>(scratch_bytes, std::byte{0xFF}));
  step_ = std::make_unique<DeviceBuffer>(bytes_of(given_.context.step));
}

DeviceCall DeviceCase::call() const {
  return {.operation = operation_,
          .operands = views_,
          .context = given_.context,
          .step = static_cast<const std::int64_t*>(step_->data()),
          .scratch = static_cast<float*>(scratch_->data()),
          .gemm = gemm_.get()};
}

void DeviceCase::prepare() const {
  if (!plan::is_matrix_product(operation_.kind)) return;
  prepare_product(call());
  KRIGTUNE_CHECK_CUDA(cudaDeviceSynchronize());
  for (std::size_t i = 0; i < buffers_.size(); ++i) buffers_[i]->write(given_.operands[i].bytes);
}

Case DeviceCase::result() const {
  Case result = given_;
  for (std::size_t i = 0; i < buffers_.size(); ++i) result.operands[i].bytes = buffers_[i]->read();
  return result;
}

Case done_by_host(Case given) {
  const plan::Operation operation = operation_of(given);
  engine::BoundOperation bound;
  bound.operation = &operation;
  bound.kernel = engine::kernel_for<float>(given.kind);
  for (Datum& d : given.operands) bound.operands.push_back({d.bytes.data(), d.elems(), d.access, d.type});
  std::vector<float> scratch(static_cast<std::size_t>(engine::call_scratch_elems(bound)));
  engine::call_kernel(bound, given.context, scratch.data());
  return given;
}

Case done_by_device(Case given, std::int64_t behind_elems) {
  const DeviceCase on_device(std::move(given), behind_elems);
  on_device.prepare();
  const DeviceCall call = on_device.call();
  device_kernel_for(call.operation.kind)(call);
  return on_device.result();
}

std::vector<std::vector<double>> done_in_fp64(const Case& given) {
  const plan::Operation operation = operation_of(given);
  Case work = given;
  std::vector<std::vector<double>> numbers;
  std::vector<engine::OperandView> views;
  for (Datum& d : work.operands) {
    numbers.push_back(has_numbers(d.type) ? widened(d.numbers()) : std::vector<double>{});
    void* data = has_numbers(d.type) ? static_cast<void*>(numbers.back().data()) : d.bytes.data();
    views.push_back({data, d.elems(), d.access, d.type});
  }
  std::vector<double> scratch(static_cast<std::size_t>(engine::scratch_elems(given.kind, given.shape)));
  engine::kernel_for<double>(given.kind)({operation, views, given.context, scratch.data()});
  return numbers;
}

double relative_error(const std::vector<float>& a, const std::vector<double>& b) {
  double difference = 0.0;
  double norm = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto value = static_cast<double>(a[i]);
    if (value == b[i] || (std::isnan(value) && std::isnan(b[i]))) {
      norm += std::isfinite(b[i]) ? b[i] * b[i] : 0.0;
      continue;
    }
    difference += (value - b[i]) * (value - b[i]);
    norm += b[i] * b[i];
  }
  return difference == 0.0 ? 0.0 : std::sqrt(difference / norm);
}

void expect_same(const Case& device, const Case& host, double most) {
  for (std::size_t i = 0; i < host.operands.size(); ++i) {
    const Datum& expected = host.operands[i];
    const Datum& actual = device.operands[i];
    if (host.kind == schedule::OpKind::kAttentionForward && expected.type == schedule::DType::kUint8) {
      EXPECT_EQ(causal_part(host.shape, actual.bytes), causal_part(host.shape, expected.bytes)) << host.name;
    } else if (!has_numbers(expected.type)) {
      EXPECT_EQ(actual.bytes, expected.bytes) << host.name << ", operand " << i;
    } else {
      EXPECT_LE(relative_error(actual.numbers(), widened(expected.numbers())), most) << host.name << ", operand " << i;
    }
  }
}

}  // namespace krigtune::cuda
