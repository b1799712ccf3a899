#include "cuda/device_operation.h"

#include <stdexcept>

#include "host/call_kernel.h"
#include "krigtune/plan/op_traits.h"
#include "krigtune/plan/step_breakdown.h"

namespace krigtune::cuda {
namespace {

std::vector<OperandView> operands_of(const StepPlan& plan, const DeviceMemory& memory, const Operation& operation,
                                     std::int64_t rank) {
  std::vector<OperandView> operands;
  for (const Operand& operand : operation.operands) {
    const Buffer& buffer = plan.buffers[static_cast<std::size_t>(operand.range.buffer)];
    if (operation.stream == Stream::kHost && buffer.place != Place::kHost) {
      throw std::logic_error("the host computes with buffer '" + buffer.name + "' on the device");
    }
    operands.push_back({memory.at(plan, operand.range, rank), operand.range.elems, operand.access, buffer.type});
  }
  return operands;
}

std::unique_ptr<HostWork> work_on_host(const DeviceOperation& bound, const StepContext& context) {
  BoundOperation on_host;
  on_host.operation = bound.operation;
  on_host.kernel = kernel_for<float>(bound.operation->kind);
  on_host.operands = bound.operands;
  const auto scratch = static_cast<std::size_t>(call_scratch_elems(on_host));
  return std::make_unique<HostWork>(HostWork{std::move(on_host), context, std::vector<float>(scratch), {}});
}

void bind_order(const StepPlan& plan, std::vector<DeviceOperation>& operations) {
  for (std::size_t id = 0; id < operations.size(); ++id) {
    DeviceOperation& bound = operations[id];
    for (const OpId other : plan.operations[id].waits) {
      DeviceOperation& awaited = operations[static_cast<std::size_t>(other)];
      if (awaited.operation->stream == bound.operation->stream) continue;
      if (!awaited.end) awaited.end = make_order_event();
      bound.waits.push_back(awaited.end.get());
    }
    if (!bound.waits.empty()) bound.queued = make_timed_event();
  }
}

}  // namespace

void HostWork::run(void* self) {
  auto& work = *static_cast<HostWork*>(self);
  try {
    call_kernel(work.bound, work.context, work.scratch.data());
  } catch (...) {
    work.failure = std::current_exception();
  }
  ++work.context.step;
}

OperationTime DeviceOperation::time_after(const Event& begin) const {
  const double start_s = elapsed_s(begin, span.begin);
  const double queued_s = queued ? elapsed_s(begin, queued) : start_s;
  return {queued_s, start_s, start_s, elapsed_s(begin, span.end)};
}

std::vector<DeviceOperation> bind_operations(const StepPlan& plan, const DeviceMemory& memory, const GroupRanks& ranks,
                                             const StepContext& context) {
  std::vector<DeviceOperation> operations;
  for (const Operation& operation : plan.operations) {
    DeviceOperation bound;
    bound.operation = &operation;
    bound.operands = operands_of(plan, memory, operation, ranks[static_cast<std::size_t>(operation.group)]);
    if (operation.stream == Stream::kHost && !is_collective(operation.kind)) {
      bound.host = work_on_host(bound, context);
    } else {
      bound.kernel = device_kernel_for(operation.kind);
    }
    operations.push_back(std::move(bound));
  }
  bind_order(plan, operations);
  return operations;
}

}  // namespace krigtune::cuda
