#pragma once
#include <exception>
#include <memory>
#include <vector>

#include "cuda/device_memory.h"
#include "cuda/handles.h"
#include "cuda/kernels/device_kernel.h"
#include "host/bound_plan.h"

namespace krigtune::cuda {

/// What the driver's thread computes between two operations of the host's stream, once a step. It may call nothing of
/// CUDA, and nothing may leave it.
struct HostWork {
  BoundOperation bound;
  StepContext context;  ///< with the number of the step that comes next
  std::vector<float> scratch;
  std::exception_ptr failure;

  static void run(void* self);
};

/// An operation of a plan with pointers into one device's memory, and the events that order it.
struct DeviceOperation {
  const Operation* operation = nullptr;
  DeviceKernel kernel = nullptr;  ///< null: a collective, or the host's
  std::vector<OperandView> operands;
  std::unique_ptr<HostWork> host;  ///< of the host's stream
  std::vector<cudaEvent_t> waits;  ///< ends of operations of other streams
  Event end;                       ///< null: nobody waits for it
  Event queued;                    ///< when its stream came to it; null: it waits for nobody
  Span span;
  const DeviceOperation* norm = nullptr;  ///< the next one of its stream, which is done with it: add_norm_forward
  bool is_done_before = false;            ///< that one

  /// Seconds after `begin`. All events must have passed.
  OperationTime time_after(const Event& begin) const;
};

/// By OpId. `context`: of the first step. Throws std::logic_error where the host is to compute with device memory.
std::vector<DeviceOperation> bind_operations(const StepPlan& plan, const DeviceMemory& memory, const GroupRanks& ranks,
                                             const StepContext& context);

}  // namespace krigtune::cuda
