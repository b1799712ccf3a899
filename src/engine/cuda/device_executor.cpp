// One thread queues all streams in the order of the plan. An event is recorded behind every operation that another
// stream waits for; recording it anew in each step is safe because the waits for it were queued before. A step begins
// on all streams after the compute stream's begin, and ends when the compute stream has waited for all others.
#include "cuda/device_executor.h"

#include <cmath>
#include <stdexcept>

#include "cuda/blas_gemm.h"
#include "cuda/check.h"
#include "host/call_kernel.h"

namespace krigtune::cuda {
namespace {

bool is_communication(Stream stream) { return stream == Stream::kGather || stream == Stream::kReduce; }

}  // namespace

/// What the driver's thread computes between two operations of the host's stream. It may call nothing of CUDA, and
/// nothing may leave it.
struct DeviceExecutor::HostWork {
  BoundOperation bound;
  const StepContext& context;
  std::vector<float> scratch;
  std::exception_ptr failure;

  static void run(void* self) {
    auto& work = *static_cast<HostWork*>(self);
    try {
      call_kernel(work.bound, work.context, work.scratch.data());
    } catch (...) {
      work.failure = std::current_exception();
    }
  }
};

struct DeviceExecutor::Bound {
  const Operation* operation = nullptr;
  DeviceKernel kernel = nullptr;  ///< null: a collective
  std::vector<OperandView> operands;
  std::unique_ptr<HostWork> host;  ///< of the host's stream
  std::vector<cudaEvent_t> waits;  ///< ends of operations of other streams
  Event end;                       ///< null: nobody waits for it
  Event queued;                    ///< null: it waits for nobody
  Span span;
};

DeviceExecutor::DeviceExecutor(const StepPlan& plan, const DeviceMemory& memory, const GroupRanks& ranks,
                               const DeviceCommunicators& communicators)
    : plan_(plan),
      communicators_(communicators),
      gemm_(make_blas_gemm()),
      steps_done_(allocate_device(sizeof(std::int64_t))),
      losses_on_device_(memory.at(plan.buffers[static_cast<std::size_t>(plan.loss)])),
      losses_(allocate_pinned(plan.micro_steps * size_bytes(DType::kFp32))) {
  KRIGTUNE_CHECK_CUDA(cudaMemset(steps_done_.get(), 0, sizeof(std::int64_t)));
  bind(plan, memory, ranks);
  bind_order(plan);
  prepare_products();
}

DeviceExecutor::~DeviceExecutor() = default;

void DeviceExecutor::bind(const StepPlan& plan, const DeviceMemory& memory, const GroupRanks& ranks) {
  const auto make = [&](Stream stream) {
    if (streams_[index_of(stream)]) return;
    streams_[index_of(stream)] = make_stream(is_communication(stream));
    scratch_[index_of(stream)] = allocate_device(scratch_bytes(plan, stream));
    joins_[index_of(stream)] = make_order_event();
  };
  make(Stream::kCompute);
  for (const Operation& operation : plan.operations) {
    make(operation.stream);
    Bound bound;
    bound.operation = &operation;
    const std::int64_t rank = ranks[static_cast<std::size_t>(operation.group)];
    for (const Operand& operand : operation.operands) {
      const Buffer& buffer = plan.buffers[static_cast<std::size_t>(operand.range.buffer)];
      if (operation.stream == Stream::kHost && buffer.place != Place::kHost) {
        throw std::logic_error("the host computes with buffer '" + buffer.name + "' on the device");
      }
      bound.operands.push_back(
          {memory.at(plan, operand.range, rank), operand.range.elems, operand.access, buffer.type});
    }
    bound.kernel = device_kernel_for(operation.kind);
    if (operation.stream == Stream::kHost && !is_collective(operation.kind)) {
      BoundOperation on_host;
      on_host.operation = &operation;
      on_host.kernel = kernel_for<float>(operation.kind);
      on_host.operands = bound.operands;
      const auto scratch = static_cast<std::size_t>(call_scratch_elems(on_host));
      bound.host = std::make_unique<HostWork>(HostWork{std::move(on_host), context_, std::vector<float>(scratch), {}});
    }
    operations_.push_back(std::move(bound));
  }
}

void DeviceExecutor::bind_order(const StepPlan& plan) {
  for (std::size_t id = 0; id < operations_.size(); ++id) {
    Bound& bound = operations_[id];
    for (const OpId other : plan.operations[id].waits) {
      Bound& awaited = operations_[static_cast<std::size_t>(other)];
      if (awaited.operation->stream == bound.operation->stream) continue;
      if (!awaited.end) awaited.end = make_order_event();
      bound.waits.push_back(awaited.end.get());
    }
    if (!bound.waits.empty()) bound.queued = make_timed_event();
  }
}

void DeviceExecutor::prepare_products() {
  for (const Bound& bound : operations_) {
    if (is_matrix_product(bound.operation->kind) && !bound.host) gemm_->prepare(product_of(call_of(bound)));
  }
}

DeviceCall DeviceExecutor::call_of(const Bound& bound) const {
  const Stream stream = bound.operation->stream;
  auto* scratch = reinterpret_cast<float*>(scratch_[index_of(stream)].get());
  return {.operation = *bound.operation,
          .operands = bound.operands,
          .context = context_,
          .step = step_number(),
          .scratch = scratch,
          .queue = queue_of(stream),
          .gemm = gemm_.get()};
}

void DeviceExecutor::start(const StepContext& context) {
  context_ = context;
  context_.gradient_clipping = plan_.gradient_clipping;
  context_.first_loss_scale = plan_.first_loss_scale;
  begin_step();
  for (Bound& bound : operations_) enqueue(bound);
  end_step();
}

void DeviceExecutor::begin_step() {
  KRIGTUNE_CHECK_CUDA(cudaEventRecord(step_.begin.get(), queue_of(Stream::kCompute)));
  for (const StreamHandle& stream : streams_) {
    if (stream && stream.get() != queue_of(Stream::kCompute)) {
      KRIGTUNE_CHECK_CUDA(cudaStreamWaitEvent(stream.get(), step_.begin.get(), 0));
    }
  }
}

void DeviceExecutor::end_step() {
  Queue compute = queue_of(Stream::kCompute);
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    if (!streams_[s] || streams_[s].get() == compute) continue;
    KRIGTUNE_CHECK_CUDA(cudaEventRecord(joins_[s].get(), streams_[s].get()));
    KRIGTUNE_CHECK_CUDA(cudaStreamWaitEvent(compute, joins_[s].get(), 0));
  }
  count_step(step_number(), compute);
  KRIGTUNE_CHECK_CUDA(cudaEventRecord(step_.end.get(), compute));
  const auto bytes = static_cast<std::size_t>(plan_.micro_steps * size_bytes(DType::kFp32));
  KRIGTUNE_CHECK_CUDA(cudaMemcpyAsync(losses_.get(), losses_on_device_, bytes, cudaMemcpyDefault, compute));
  KRIGTUNE_CHECK_CUDA(cudaEventRecord(finished_.get(), compute));
}

void DeviceExecutor::enqueue(Bound& bound) {
  Queue queue = queue_of(bound.operation->stream);
  if (bound.queued) KRIGTUNE_CHECK_CUDA(cudaEventRecord(bound.queued.get(), queue));
  for (cudaEvent_t event : bound.waits) KRIGTUNE_CHECK_CUDA(cudaStreamWaitEvent(queue, event, 0));
  KRIGTUNE_CHECK_CUDA(cudaEventRecord(bound.span.begin.get(), queue));
  execute(bound);
  KRIGTUNE_CHECK_CUDA(cudaEventRecord(bound.span.end.get(), queue));
  if (bound.end) KRIGTUNE_CHECK_CUDA(cudaEventRecord(bound.end.get(), queue));
}

void DeviceExecutor::execute(Bound& bound) {
  const Operation& operation = *bound.operation;
  Queue queue = queue_of(operation.stream);
  if (bound.host) {
    KRIGTUNE_CHECK_CUDA(cudaLaunchHostFunc(queue, &HostWork::run, bound.host.get()));
  } else if (bound.kernel != nullptr) {
    bound.kernel(call_of(bound));
  } else if (!silent_) {
    DeviceCommunicator* communicator =
        communicators_[index_of(operation.stream)][static_cast<std::size_t>(operation.group)];
    if (communicator == nullptr) throw std::logic_error("a stream with collectives needs a communicator");
    communicator->start(operation.kind, bound.operands, queue);
  }
}

bool DeviceExecutor::done() {
  const cudaError_t state = cudaEventQuery(finished_.get());
  if (state == cudaErrorNotReady) {
    for (const auto& of_stream : communicators_) {
      for (DeviceCommunicator* communicator : of_stream) {
        if (communicator != nullptr) communicator->check();
      }
    }
    return false;
  }
  check_cuda(state, "a step", __FILE__, __LINE__);
  for (const Bound& bound : operations_) {
    if (bound.host && bound.host->failure) std::rethrow_exception(bound.host->failure);
  }
  return true;
}

double DeviceExecutor::mean_loss() const {
  const auto* losses = reinterpret_cast<const float*>(losses_.get());
  double sum = 0.0;
  for (std::int64_t m = 0; m < plan_.micro_steps; ++m) sum += static_cast<double>(losses[m]);
  return sum / static_cast<double>(plan_.micro_steps);
}

std::vector<OperationTime> DeviceExecutor::operation_times() const {
  std::vector<OperationTime> times;
  for (const Bound& bound : operations_) {
    const double start_s = elapsed_s(step_.begin, bound.span.begin);
    const double queued_s = bound.queued ? elapsed_s(step_.begin, bound.queued) : start_s;
    times.push_back({queued_s, start_s, start_s, elapsed_s(step_.begin, bound.span.end)});
  }
  return times;
}

}  // namespace krigtune::cuda
