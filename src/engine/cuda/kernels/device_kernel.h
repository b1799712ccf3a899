#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "engine/host/kernels/kernel.h"
#include "plan/op_traits.h"

struct CUstream_st;

namespace krigtune::cuda {

/// A CUDA stream, spelled so that files which see no CUDA header may pass it on.
using Queue = CUstream_st*;

/// What a library may compute along with a product, from its sums in fp32.
enum class Epilogue : std::uint8_t {
  kNone,          ///< only the bias, if there is one
  kGelu,          ///< aux = A B + bias, D = gelu(aux), by the formula of activations.cu
  kGeluGradient,  ///< D = A B gelu'(aux); sums, if there are any: of D's columns
  kRowSums,       ///< sums: of the rows of A
};

/// D = A B, or D += A B: all row-major, one of the operands possibly read transposed; then D += bias in every row.
struct Product {
  engine::OperandView a;     ///< rows x depth, or depth x rows if transposed
  engine::OperandView b;     ///< depth x cols, or cols x depth if transposed
  engine::OperandView d;     ///< rows x cols; its access says whether the product is added
  engine::OperandView bias;  ///< cols; null: none
  std::int64_t rows = 0, cols = 0, depth = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  Epilogue epilogue = Epilogue::kNone;
  engine::OperandView aux{};   ///< as d, of its type
  engine::OperandView sums{};  ///< of d's type, overwritten; null: none
};

/// Something put on a stream.
using Work = std::function<void(Queue)>;

/// Multiplies matrices on the device, with sums in fp32.
class Gemm {
 public:
  virtual ~Gemm() = default;
  /// Chooses how. Called before the first step for every product that will be multiplied; may overwrite D.
  virtual void prepare(const Product& product) = 0;
  /// Whether a product with an epilogue, and `besides`, take less time than `apart`, which computes the same without
  /// the epilogue: tried on the operands as in `prepare`, once for each kind of product and remembered as its algorithm
  /// is. False if the library has no such epilogue. Then, and without having been asked, it cannot be multiplied.
  virtual bool prefers(const Product& product, const Work& apart, const Work& besides) = 0;
  /// What `prefers` has answered before; false if it was never asked.
  virtual bool is_preferred(const Product& product) const = 0;
  virtual void multiply(const Product& product, Queue queue) = 0;
};

/// One operation bound to one device's memory, with the stream that it goes to. Operands in the order of OpTraits.
struct DeviceCall {
  const plan::Operation& operation;
  std::span<const engine::OperandView> operands;
  const engine::StepContext& context;
  /// On the device: optimizer steps begun before this one, in place of the context's.
  const std::int64_t* step = nullptr;
  float* scratch = nullptr;  ///< scratch_floats of the operation, 16-byte aligned, the stream's own
  Queue queue = nullptr;
  Gemm* gemm = nullptr;
  bool hopper_attention = false;  ///< flash attention by its kernels for Hopper

  const plan::Shape& shape() const { return operation.shape; }
  bool has(std::size_t i) const { return i < operands.size(); }
  bool adds(std::size_t i) const { return operands[i].adds(); }
  template <class T>
  T* data(std::size_t i) const {
    return static_cast<T*>(operands[i].data);
  }
};

/// The product that an operation is, where is_matrix_product says that it is one.
Product product_of(const DeviceCall& call);
/// The product of a weight's gradient, with the bias gradient summed along with it: into the operand, or into the
/// call's scratch memory where the operand is added to. Nothing if there is none to be summed.
std::optional<Product> with_bias_gradient(const DeviceCall& call);
/// Prepares it, and chooses whether its bias gradient, if it has one, is summed along with it. Before the first step.
void prepare_product(const DeviceCall& call);

/// Fills device memory with random-looking numbers of a size near 1, whatever their type; the same ones every time.
void fill_numbers(void* data, std::int64_t bytes, Queue queue);

/// step <- step + 1, both on the device.
void count_step(std::int64_t* step, Queue queue);

/// Starts the operation on its stream and returns.
using DeviceKernel = void (*)(const DeviceCall&);

/// Null for a collective. Throws std::logic_error for a kind that has no kernel.
DeviceKernel device_kernel_for(schedule::OpKind kind);

/// Floats of scratch memory that the operation's kernels need; they mean nothing from call to call.
std::int64_t scratch_floats(const plan::Operation& operation);
/// Enough for every operation of the plan that goes to this stream.
std::int64_t scratch_bytes(const plan::StepPlan& plan, schedule::Stream stream);

/// Whether two operands have a byte in common.
inline bool overlap(const engine::OperandView& a, const engine::OperandView& b) {
  const auto begin = [](const engine::OperandView& view) { return reinterpret_cast<std::uintptr_t>(view.data); };
  const auto end = [&](const engine::OperandView& view) {
    return begin(view) + static_cast<std::uintptr_t>(view.elems * schedule::size_bytes(view.type));
  };
  return begin(a) < end(b) && begin(b) < end(a);
}

/// Two operations of a stream as one kernel.
using PairKernel = void (*)(const DeviceCall& first, const DeviceCall& second);

/// For an operation and the next one of its stream, which waits for nobody else; null: they are executed one by one.
/// Before the first step: a product, which is prepared, and its activation are tried on the operands.
PairKernel pair_kernel_for(const DeviceCall& first, const DeviceCall& second);

/// An addition and the normalisation of its sum.
void add_norm_forward(const DeviceCall& add, const DeviceCall& norm);
bool add_norm_fits(const DeviceCall& add, const DeviceCall& norm);

/// A product and the GELU of its result, or its gradient, if an epilogue is faster; null: it is not.
PairKernel product_pair_for(const DeviceCall& first, const DeviceCall& second);

/// The gradients of a GELU's input, in two operations, and then of the weight before it: whether the first two are to
/// be one product that sums the bias gradient as well. `weight` is then executed without_bias. Tried as a pair is.
bool sums_bias_along(const DeviceCall& first, const DeviceCall& second, const DeviceCall& weight);
void multiply_and_sum_bias(const DeviceCall& first, const DeviceCall& second, const DeviceCall& weight);
DeviceCall without_bias(const DeviceCall& weight);
/// The bias gradient of `weight`, which is added to, += the product's sums.
void add_sums(const DeviceCall& weight, const Product& product);

/// An optimizer's update and the copy of updated parameters, in the same order, to another type.
void update_and_copy(const DeviceCall& update, const DeviceCall& copy);
bool update_copy_fits(const DeviceCall& update, const DeviceCall& copy);

}  // namespace krigtune::cuda
