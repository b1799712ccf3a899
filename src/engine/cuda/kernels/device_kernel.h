#pragma once
#include <cstdint>
#include <span>

#include "cuda/kernels/queue.h"
#include "host/kernels/kernel.h"

namespace krigtune::cuda {

/// D = A B, or D += A B: all row-major, one of the operands possibly read transposed.
struct Product {
  OperandView a;  ///< rows x depth, or depth x rows if transposed
  OperandView b;  ///< depth x cols, or cols x depth if transposed
  OperandView d;  ///< rows x cols; its access says whether the product is added
  std::int64_t rows = 0, cols = 0, depth = 0;
  bool transpose_a = false;
  bool transpose_b = false;
};

/// Multiplies matrices on the device, with sums in fp32.
class Gemm {
 public:
  virtual ~Gemm() = default;
  /// Chooses how. Called before the first step for every product that will be multiplied.
  virtual void prepare(const Product& product) = 0;
  virtual void multiply(const Product& product, Queue queue) = 0;
};

/// One operation bound to one device's memory, with the stream that it goes to. Operands as documented at OpKind.
struct DeviceCall {
  const Operation& operation;
  std::span<const OperandView> operands;
  const StepContext& context;
  float* scratch = nullptr;  ///< scratch_bytes(operation) of the stream's own
  Queue queue = nullptr;
  Gemm* gemm = nullptr;

  const Shape& shape() const { return operation.shape; }
  bool has(std::size_t i) const { return i < operands.size(); }
  bool adds(std::size_t i) const { return operands[i].adds(); }
  template <class T>
  T* data(std::size_t i) const {
    return static_cast<T*>(operands[i].data);
  }
};
inline constexpr std::int64_t kScratchFloats = 1024;

/// What the operation needs of its stream's scratch: at least kScratchFloats floats.
std::int64_t scratch_bytes(const Operation& operation);

/// Whether the operation is a matrix product, and which.
bool is_matrix_product(OpKind kind);
Product product_of(const DeviceCall& call);

/// Starts the operation on its stream and returns.
using DeviceKernel = void (*)(const DeviceCall&);

/// Null for a collective. Throws std::logic_error for a kind that has no kernel.
DeviceKernel device_kernel_for(OpKind kind);

// One file a family.
void load_batch(const DeviceCall& call);
void zero(const DeviceCall& call);
void copy(const DeviceCall& call);
void accumulate(const DeviceCall& call);
void add(const DeviceCall& call);
void embedding_forward(const DeviceCall& call);
void embedding_backward(const DeviceCall& call);
void positions_forward(const DeviceCall& call);
void positions_backward(const DeviceCall& call);
void layer_norm_forward(const DeviceCall& call);
void layer_norm_backward(const DeviceCall& call);
void rms_norm_forward(const DeviceCall& call);
void rms_norm_backward(const DeviceCall& call);
void linear_forward(const DeviceCall& call);
void linear_backward_input(const DeviceCall& call);
void linear_backward_weight(const DeviceCall& call);
void add_bias(const DeviceCall& call);
void bias_backward(const DeviceCall& call);
void rotary_forward(const DeviceCall& call);
void rotary_backward(const DeviceCall& call);
void attention_forward(const DeviceCall& call);
void attention_backward(const DeviceCall& call);
void gelu_forward(const DeviceCall& call);
void gelu_backward(const DeviceCall& call);
void swiglu_forward(const DeviceCall& call);
void swiglu_backward(const DeviceCall& call);
void dropout_forward(const DeviceCall& call);
void dropout_backward(const DeviceCall& call);
void cross_entropy(const DeviceCall& call);
void vocab_max(const DeviceCall& call);
void vocab_sum_exp(const DeviceCall& call);
void vocab_cross_entropy(const DeviceCall& call);
void gradient_norm(const DeviceCall& call);
void loss_scale(const DeviceCall& call);
void adamw(const DeviceCall& call);
void sgd(const DeviceCall& call);

}  // namespace krigtune::cuda
