#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "engine/host/kernels/kernel.h"
#include "plan/op_traits.h"

struct CUstream_st;

namespace krigtune::cuda {

/// A CUDA stream, declared so that files without a CUDA header can pass it on.
using Queue = CUstream_st*;

/// What the library can compute together with a product, from its sums in fp32.
enum class Epilogue : std::uint8_t {
  kNone,          ///< only the bias, if there is one
  kGelu,          ///< aux = A B + bias, D = gelu(aux), with the formula of activations.cu
  kGeluGradient,  ///< D = A B gelu'(aux); sums (optional): of D's columns
  kRowSums,       ///< sums: of the rows of A
};

/// The product D = A B, or D += A B, followed by D += bias in every row. All matrices are row-major; one of A and B may
/// be read transposed.
struct Product {
  engine::OperandView a;     ///< rows x depth, or depth x rows if transposed
  engine::OperandView b;     ///< depth x cols, or cols x depth if transposed
  engine::OperandView d;     ///< rows x cols; its access says whether the product is added
  engine::OperandView bias;  ///< cols; null: none
  std::int64_t rows = 0, cols = 0, depth = 0;
  /// Elements from row to row of a and d in memory, if their rows are parts of longer ones; 0: they are not.
  std::int64_t a_stride = 0, d_stride = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  Epilogue epilogue = Epilogue::kNone;
  engine::OperandView aux{};   ///< as large as d and of its type
  engine::OperandView sums{};  ///< of d's type, overwritten; null: none
};

/// A function that puts work on a stream.
using Work = std::function<void(Queue)>;

/// Multiplies matrices on the device, with sums in fp32.
class Gemm {
 public:
  virtual ~Gemm() = default;
  /// Chooses the algorithm. Must be called before the first step for every product that will be multiplied. May
  /// overwrite D.
  virtual void prepare(const Product& product) = 0;
  /// Returns whether a product with an epilogue, followed by `besides`, takes less time than `apart`, which computes
  /// the same without the epilogue. This is tried on the operands as in `prepare`, once for each kind of product, and
  /// remembered like its algorithm. False if the library has no such epilogue. A product with an epilogue cannot be
  /// multiplied before this has returned true.
  virtual bool prefers(const Product& product, const Work& apart, const Work& besides) = 0;
  /// Returns the earlier answer of `prefers`; false if it was never called.
  virtual bool is_preferred(const Product& product) const = 0;
  virtual void multiply(const Product& product, Queue queue) = 0;
};

/// One operation bound to one device's memory, with its stream. Operands are in the order of OpTraits.
struct DeviceCall {
  const plan::Operation& operation;
  std::span<const engine::OperandView> operands;
  const engine::StepContext& context;
  /// Points to device memory: the number of optimizer steps before this one. Used instead of the context's.
  const std::int64_t* step = nullptr;
  float* scratch = nullptr;  ///< scratch_floats of the operation, 16-byte aligned; belongs to the stream
  Queue queue = nullptr;
  Gemm* gemm = nullptr;
  bool hopper_attention = false;  ///< use the flash attention kernels for Hopper

  const plan::Shape& shape() const { return operation.shape; }
  bool has(std::size_t i) const { return i < operands.size(); }
  bool adds(std::size_t i) const { return operands[i].adds(); }
  template <class T>
  T* data(std::size_t i) const {
    return static_cast<T*>(operands[i].data);
  }
};

/// Returns the product that an operation computes. Requires is_matrix_product.
Product product_of(const DeviceCall& call);
/// Returns the product of a weight's gradient that also sums the bias gradient: into the operand or, if the operand is
/// added to, into the call's scratch memory. Empty if it cannot sum one.
std::optional<Product> with_bias_gradient(const DeviceCall& call);
/// Prepares the operation's product, and chooses whether it also sums the bias gradient, if there is one. Must be
/// called before the first step.
void prepare_product(const DeviceCall& call);

/// Fills device memory with random-looking numbers of a size near 1, whatever their type. They are the same every time.
void fill_numbers(void* data, std::int64_t bytes, Queue queue);

/// Computes step <- step + 1 on the device.
void count_step(std::int64_t* step, Queue queue);

/// Starts the operation on its stream and returns.
using DeviceKernel = void (*)(const DeviceCall&);

/// Returns null for a collective. Throws std::logic_error for a kind that has no kernel.
DeviceKernel device_kernel_for(schedule::OpKind kind);

/// Returns how many floats of scratch memory the operation's kernels need. Their values are not kept between calls.
std::int64_t scratch_floats(const plan::Operation& operation);
/// Returns how many bytes of scratch memory suffice for every operation of the plan on this stream.
std::int64_t scratch_bytes(const plan::StepPlan& plan, schedule::Stream stream);

/// Returns whether two operands have a byte in common.
inline bool overlap(const engine::OperandView& a, const engine::OperandView& b) {
  const auto begin = [](const engine::OperandView& view) { return reinterpret_cast<std::uintptr_t>(view.data); };
  const auto end = [&](const engine::OperandView& view) {
    return begin(view) + static_cast<std::uintptr_t>(view.elems * schedule::size_bytes(view.type));
  };
  return begin(a) < end(b) && begin(b) < end(a);
}

/// Executes two operations of a stream as one kernel.
using PairKernel = void (*)(const DeviceCall& first, const DeviceCall& second);

/// Returns the kernel for an operation and the next one of its stream, which waits for no other stream; null if they
/// must be executed one by one. Must be called before the first step, because a product, which is prepared, and its
/// activation are tried on the operands.
PairKernel pair_kernel_for(const DeviceCall& first, const DeviceCall& second);

/// Computes an addition and the normalisation of its sum in one kernel. add_norm_fits says whether it can.
void add_norm_forward(const DeviceCall& add, const DeviceCall& norm);
bool add_norm_fits(const DeviceCall& add, const DeviceCall& norm);

/// Returns the kernel for a product and the GELU of its result, or the GELU's gradient, if an epilogue is faster;
/// otherwise null.
PairKernel product_pair_for(const DeviceCall& first, const DeviceCall& second);

/// Returns whether the first two of these operations, which compute the gradient of a GELU's input, should be one
/// product that also sums a bias gradient. It is that of `weight`, the gradient of the weight before the GELU, which is
/// then executed without_bias. This is tried like a pair.
bool sums_bias_along(const DeviceCall& first, const DeviceCall& second, const DeviceCall& weight);
void multiply_and_sum_bias(const DeviceCall& first, const DeviceCall& second, const DeviceCall& weight);
DeviceCall without_bias(const DeviceCall& weight);
/// Adds the product's sums to the bias gradient of `weight`. Requires that this operand is added to.
void add_sums(const DeviceCall& weight, const Product& product);

/// Computes an optimizer's update and the copy of the updated parameters, in the same order, to another type.
/// update_copy_fits says whether it can.
void update_and_copy(const DeviceCall& update, const DeviceCall& copy);
bool update_copy_fits(const DeviceCall& update, const DeviceCall& copy);

}  // namespace krigtune::cuda
