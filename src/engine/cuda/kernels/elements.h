#pragma once
// Operands as kernels see them: elements of a type that is known only at run time, computed with in fp32. The branch on
// the type is uniform, so it costs little beside the memory access.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>

#include "cuda/kernels/device.h"
#include "cuda/kernels/device_kernel.h"

namespace krigtune::cuda {

__device__ inline float widened(DType type, std::uint16_t bits) {
  return type == DType::kBf16 ? __bfloat162float(__ushort_as_bfloat16(bits)) : __half2float(__ushort_as_half(bits));
}

/// To nearest, ties to even.
__device__ inline std::uint16_t rounded(DType type, float value) {
  return type == DType::kBf16 ? __bfloat16_as_ushort(__float2bfloat16_rn(value))
                              : __half_as_ushort(__float2half_rn(value));
}

/// The first sequence of this rank's micro-batch, counted over all steps, micro-steps and data ranks.
class FirstSequence {
 public:
  explicit FirstSequence(const DeviceCall& call)
      : step_(call.step),
        of_a_step_(call.context.micro_steps * call.context.ranks * call.shape().batch),
        before_((call.operation.micro_step * call.context.ranks + call.context.rank) * call.shape().batch) {}
  __device__ std::int64_t operator()() const { return *step_ * of_a_step_ + before_; }

 private:
  const std::int64_t* step_;
  std::int64_t of_a_step_, before_;
};

/// One operand that holds numbers.
class Elements {
 public:
  Elements(const DeviceCall& call, std::size_t operand)
      : Elements(call.operands[operand].data, call.operands[operand].type, call.adds(operand)) {}
  __host__ __device__ Elements(void* data, DType type, bool adds) : data_(data), type_(type), adds_(adds) {}

  __device__ float operator()(std::int64_t i) const {
    if (type_ == DType::kFp32) return static_cast<const float*>(data_)[i];
    return widened(type_, static_cast<const std::uint16_t*>(data_)[i]);
  }
  __device__ void set(std::int64_t i, float value) const {
    if (type_ == DType::kFp32) {
      static_cast<float*>(data_)[i] = value;
    } else {
      static_cast<std::uint16_t*>(data_)[i] = rounded(type_, value);
    }
  }
  __device__ void add(std::int64_t i, float value) const { set(i, (*this)(i) + value); }
  /// As the operand's access says: adds or overwrites.
  __device__ void put(std::int64_t i, float value) const { set(i, adds_ ? (*this)(i) + value : value); }
  /// From element `begin` on.
  __device__ Elements from(std::int64_t begin) const {
    const std::int64_t size = type_ == DType::kFp32 ? sizeof(float) : sizeof(std::uint16_t);
    return {static_cast<char*>(data_) + begin * size, type_, adds_};
  }
  __device__ bool adds() const { return adds_; }

 private:
  void* data_;
  DType type_;
  bool adds_;
};

}  // namespace krigtune::cuda
