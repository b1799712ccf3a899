#pragma once
#include <cstdint>
#include <span>

#include "engine/trainer.h"
#include "plan/step_plan.h"

namespace krigtune::engine {

/// The facts that a kernel needs besides its operands.
struct StepContext {
  TrainingOptions options{};
  std::int64_t step = 0;  ///< number of optimizer steps before this one
  std::int64_t rank = 0;
  std::int64_t ranks = 1;  ///< size of the data-parallel group, in which `rank` counts
  std::int64_t tensor_rank = 0;
  std::int64_t tensor_ranks = 1;
  std::int64_t micro_steps = 1;
  double gradient_clipping = 0.0;  ///< these two are as in StepPlan
  double first_loss_scale = 1.0;
};

/// The place of one operand in this rank's arena.
struct OperandView {
  void* data = nullptr;
  std::int64_t elems = 0;
  plan::Access access = plan::Access::kRead;
  schedule::DType type = schedule::DType::kFp32;

  bool adds() const { return access == plan::Access::kReadWrite; }
};

/// One operation bound to one rank's memory, with operands in the order of OpTraits. Kernels do not allocate.
struct KernelCall {
  const plan::Operation& operation;
  std::span<const OperandView> operands;
  const StepContext& context;
  void* scratch = nullptr;  ///< scratch_elems elements

  const plan::Shape& shape() const { return operation.shape; }
  bool has(std::size_t i) const { return i < operands.size(); }
  bool adds(std::size_t i) const { return operands[i].adds(); }
  template <class T>
  T* data(std::size_t i) const {
    return static_cast<T*>(operands[i].data);
  }
  std::int32_t* integers(std::size_t i) const { return data<std::int32_t>(i); }
};

/// Kernels are instantiated for float, which is used for training, and for double, in which their gradients are
/// checked.
template <class T>
using Kernel = void (*)(const KernelCall&);

struct KernelUnit;

/// Returns the kernel of an operation that is not a collective, for this machine's best vector unit or for a given one.
/// Throws std::logic_error for a collective.
template <class T>
Kernel<T> kernel_for(schedule::OpKind kind);
template <class T>
Kernel<T> kernel_for(schedule::OpKind kind, const KernelUnit& unit);

/// Returns how many elements of scratch memory the kernel needs. Their values are not kept between calls.
std::int64_t scratch_elems(schedule::OpKind kind, const plan::Shape& shape);

/// Throws std::runtime_error: "what number is not in where".
[[noreturn]] void throw_not_in(const char* what, std::int32_t number, const char* where);

}  // namespace krigtune::engine
