// One thread queues the operations of all streams in the order of the plan. An event is recorded after every operation
// for which another stream waits; it can be recorded again in each step, because the waits for its last record were
// queued before. A step begins on all streams after the compute stream's begin event, and ends when the compute stream
// has waited for all others, so that steps never overlap. Timing an operation needs two events on its stream, so only
// some steps are timed.
#include "engine/cuda/device_executor.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <thread>

#include "engine/cuda/blas_gemm.h"
#include "engine/cuda/runtime/check.h"
#include "engine/host/bound_plan.h"
#include "engine/host/update_slices.h"
#include "plan/op_traits.h"
#include "plan/step_breakdown.h"

namespace krigtune::cuda {

std::vector<engine::OperandView> operands_of(const plan::StepPlan& plan, const DeviceMemory& memory,
                                             const plan::Operation& operation, std::int64_t rank) {
  std::vector<engine::OperandView> operands;
  for (const plan::Operand& operand : operation.operands) {
    const plan::Buffer& buffer = plan.buffers[static_cast<std::size_t>(operand.range.buffer)];
    if (operation.stream == schedule::Stream::kHost && buffer.place != schedule::Place::kHost) {
      throw std::logic_error("the host computes with buffer '" + buffer.name + "' on the device");
    }
    operands.push_back({memory.at(plan, operand.range, rank), operand.range.elems, operand.access, buffer.type});
  }
  return operands;
}

namespace {

std::unique_ptr<HostWork> work_on_host(const DeviceOperation& bound, const engine::StepContext& context,
                                       int host_threads) {
  engine::BoundOperation on_host;
  on_host.operation = bound.operation;
  on_host.kernel = engine::kernel_for<float>(bound.operation->kind);
  on_host.operands = bound.operands;
  auto work = std::make_unique<HostWork>();
  work->context = context;
  for (engine::BoundOperation& part : engine::slices_of(on_host, host_threads)) {
    const auto scratch = static_cast<std::size_t>(engine::call_scratch_elems(part));
    work->parts.push_back({std::move(part), std::vector<float>(scratch), {}});
  }
  return work;
}

void bind_order(const plan::StepPlan& plan, std::vector<DeviceOperation>& operations) {
  for (std::size_t id = 0; id < operations.size(); ++id) {
    DeviceOperation& bound = operations[id];
    for (const plan::OpId other : plan.operations[id].waits) {
      DeviceOperation& awaited = operations[static_cast<std::size_t>(other)];
      if (awaited.operation->stream == bound.operation->stream) continue;
      if (!awaited.end) awaited.end = make_order_event();
      bound.waits.push_back(awaited.end.get());
    }
    if (!bound.waits.empty()) bound.queued = make_timed_event();
  }
}

}  // namespace

// Threads are started again in each step: that takes about 20 us for each, while a part takes about 200 us or more.
void HostWork::run(void* self) {
  auto& work = *static_cast<HostWork*>(self);
  const auto run_part = [&work](Part& part) {
    try {
      engine::call_kernel(part.bound, work.context, part.scratch.data());
    } catch (...) {
      part.failure = std::current_exception();
    }
  };
  try {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < work.parts.size(); ++i) threads.emplace_back(run_part, std::ref(work.parts[i]));
    run_part(work.parts.front());
  } catch (...) {  // a thread could not be started
    work.failure = std::current_exception();
  }
  for (const Part& part : work.parts) {
    if (!work.failure) work.failure = part.failure;
  }
  ++work.context.step;
}

plan::OperationTime DeviceOperation::time_after(const Event& begin) const {
  const double start_s = elapsed_s(begin, span.begin);
  const double queued_s = queued ? elapsed_s(begin, queued) : start_s;
  return {queued_s, start_s, start_s, elapsed_s(begin, span.end)};
}

std::vector<DeviceOperation> bind_operations(const plan::StepPlan& plan, const DeviceMemory& memory,
                                             const engine::GroupRanks& ranks, const engine::StepContext& context,
                                             int host_threads) {
  std::vector<DeviceOperation> operations;
  for (const plan::Operation& operation : plan.operations) {
    DeviceOperation bound;
    bound.operation = &operation;
    bound.operands = operands_of(plan, memory, operation, ranks[static_cast<std::size_t>(operation.group)]);
    if (operation.stream == schedule::Stream::kHost && !plan::is_collective(operation.kind)) {
      bound.host = work_on_host(bound, context, host_threads);
    } else {
      bound.kernel = device_kernel_for(operation.kind);
    }
    operations.push_back(std::move(bound));
  }
  bind_order(plan, operations);
  return operations;
}

namespace {

constexpr std::size_t kTimedEvery = 8;

bool is_communication(schedule::Stream stream) {
  return stream == schedule::Stream::kGather || stream == schedule::Stream::kReduce;
}

}  // namespace

DeviceExecutor::DeviceExecutor(const plan::StepPlan& plan, const DeviceMemory& memory,
                               const engine::StepContext& context, const DeviceCommunicators& communicators,
                               const ExecutionOptions& options)
    : plan_(plan),
      context_(context),
      communicators_(communicators),
      options_(options),
      gemm_(make_blas_gemm()),
      step_number_(allocate_device(sizeof(std::int64_t))),
      operations_(bind_operations(plan, memory, {context.rank, context.tensor_rank}, context, options.host_threads)),
      losses_on_device_(memory.at(plan.buffers[static_cast<std::size_t>(plan.loss)])) {
  KRIGTUNE_CHECK_CUDA(cudaMemset(step_number_.get(), 0, sizeof(std::int64_t)));
  for (Slot& slot : slots_) slot.losses = allocate_pinned(static_cast<std::int64_t>(loss_bytes()));
  make_streams();
  memory.fill_with_numbers();
  KRIGTUNE_CHECK_CUDA(cudaDeviceSynchronize());
  prepare_products();
  join_pairs();
  join_bias_gradients();
  KRIGTUNE_CHECK_CUDA(cudaDeviceSynchronize());
}

DeviceExecutor::~DeviceExecutor() = default;

void DeviceExecutor::make_streams() {
  const auto make = [&](schedule::Stream stream) {
    if (streams_[schedule::index_of(stream)]) return;
    streams_[schedule::index_of(stream)] = make_stream(is_communication(stream));
    scratch_[schedule::index_of(stream)] = allocate_device(scratch_bytes(plan_, stream));
    joins_[schedule::index_of(stream)] = make_order_event();
  };
  make(schedule::Stream::kCompute);
  for (const plan::Operation& operation : plan_.operations) make(operation.stream);
}

// The second operation waits for no other stream, so everything that it needs, except the first one's result, was
// available before the first one.
void DeviceExecutor::join_pairs() {
  std::array<DeviceOperation*, schedule::kStreamCount> before{};
  for (DeviceOperation& bound : operations_) {
    DeviceOperation*& last = before[schedule::index_of(bound.operation->stream)];
    const bool alone = last == nullptr || last->is_done_before || last->host || bound.host || !bound.waits.empty();
    if (const PairKernel pair = alone ? nullptr : pair_kernel_for(call_of(*last), call_of(bound)); pair != nullptr) {
      last->second = &bound;
      last->pair = pair;
      bound.is_done_before = true;
    }
    last = &bound;
  }
}

void DeviceExecutor::join_bias_gradients() {
  std::array<std::array<DeviceOperation*, 2>, schedule::kStreamCount> before{};
  for (DeviceOperation& bound : operations_) {
    auto& [first, second] = before[schedule::index_of(bound.operation->stream)];
    const bool alone = first == nullptr || first->is_done_before || first->host || second->host || bound.host ||
                       !second->waits.empty() || !bound.waits.empty();
    if (!alone && sums_bias_along(call_of(*first), call_of(*second), call_of(bound))) {
      first->second = second;
      first->third = &bound;
      second->is_done_before = true;
      bound.is_bias_done = true;
    }
    first = second;
    second = &bound;
  }
}

void DeviceExecutor::prepare_products() {
  for (const DeviceOperation& bound : operations_) {
    if (plan::is_matrix_product(bound.operation->kind) && !bound.host) prepare_product(call_of(bound));
  }
}

DeviceCall DeviceExecutor::call_of(const DeviceOperation& bound) const {
  const schedule::Stream stream = bound.operation->stream;
  return {.operation = *bound.operation,
          .operands = bound.operands,
          .context = context_,
          .step = step_number(),
          .scratch = reinterpret_cast<float*>(scratch_[schedule::index_of(stream)].get()),
          .queue = queue_of(stream),
          .gemm = gemm_.get(),
          .hopper_attention = options_.hopper_attention};
}

std::size_t DeviceExecutor::loss_bytes() const {
  return static_cast<std::size_t>(plan_.micro_steps * schedule::size_bytes(schedule::DType::kFp32));
}

void DeviceExecutor::start() {
  if (in_flight() == kMostInFlight) throw std::logic_error("too many steps are in flight");
  Queue compute = queue_of(schedule::Stream::kCompute);
  Slot& slot = slot_of(started_);
  slot.timed = is_timed(started_);
  KRIGTUNE_CHECK_CUDA(cudaEventRecord(slot.span.begin.get(), compute));
  if (options_.graph && !slot.timed) {
    if (!graph_) throw std::logic_error("a step that is replayed has to be captured");
    KRIGTUNE_CHECK_CUDA(cudaGraphLaunch(graph_.get(), compute));
  } else {
    queue_operations(slot.timed);
  }
  KRIGTUNE_CHECK_CUDA(cudaEventRecord(slot.span.end.get(), compute));
  KRIGTUNE_CHECK_CUDA(cudaMemcpyAsync(slot.losses.get(), losses_on_device_, loss_bytes(), cudaMemcpyDefault, compute));
  KRIGTUNE_CHECK_CUDA(cudaEventRecord(slot.finished.get(), compute));
  ++started_;
}

void DeviceExecutor::queue_operations(bool timed) {
  Queue compute = queue_of(schedule::Stream::kCompute);
  KRIGTUNE_CHECK_CUDA(cudaEventRecord(begin_.get(), compute));
  for (const StreamHandle& stream : streams_) {
    if (stream && stream.get() != compute) KRIGTUNE_CHECK_CUDA(cudaStreamWaitEvent(stream.get(), begin_.get(), 0));
  }
  for (DeviceOperation& bound : operations_) enqueue(bound, timed);
  for (std::size_t s = 0; s < streams_.size(); ++s) {
    if (!streams_[s] || streams_[s].get() == compute) continue;
    KRIGTUNE_CHECK_CUDA(cudaEventRecord(joins_[s].get(), streams_[s].get()));
    KRIGTUNE_CHECK_CUDA(cudaStreamWaitEvent(compute, joins_[s].get(), 0));
  }
  count_step(step_number(), compute);
}

// The first step is timed and thus never replayed: NCCL allocates memory when it is first used, which a capture
// forbids.
bool DeviceExecutor::is_timed(std::size_t step) const { return options_.time_every_step || step % kTimedEvery == 0; }

// An error during the capture also makes end_capture fail, so the first reason is kept.
std::string DeviceExecutor::capture() {
  Queue compute = queue_of(schedule::Stream::kCompute);
  std::string failure;
  try {
    KRIGTUNE_CHECK_CUDA(cudaStreamBeginCapture(compute, cudaStreamCaptureModeThreadLocal));
    queue_operations(false);
  } catch (const DeviceError& error) {
    failure = error.what();
  }
  try {
    graph_ = end_capture(compute);
  } catch (const DeviceError& error) {
    if (failure.empty()) failure = error.what();
  }
  if (!failure.empty()) do_without_graph();
  return failure;
}

void DeviceExecutor::do_without_graph() {
  options_.graph = false;
  graph_.reset();
  cudaGetLastError();  // the next launch would report the error
}

void DeviceExecutor::enqueue(DeviceOperation& bound, bool timed) {
  Queue queue = queue_of(bound.operation->stream);
  const auto record = [&](const Event& event, bool wanted) {
    if (event && wanted) KRIGTUNE_CHECK_CUDA(cudaEventRecord(event.get(), queue));
  };
  record(bound.queued, timed);
  for (cudaEvent_t event : bound.waits) KRIGTUNE_CHECK_CUDA(cudaStreamWaitEvent(queue, event, 0));
  record(bound.span.begin, timed);
  execute(bound);
  record(bound.span.end, timed);
  record(bound.end, true);
}

void DeviceExecutor::execute(DeviceOperation& bound) {
  Queue queue = queue_of(bound.operation->stream);
  if (bound.is_done_before) return;
  if (bound.third != nullptr) {
    multiply_and_sum_bias(call_of(bound), call_of(*bound.second), call_of(*bound.third));
  } else if (bound.pair != nullptr) {
    bound.pair(call_of(bound), call_of(*bound.second));
  } else if (bound.host) {
    KRIGTUNE_CHECK_CUDA(cudaLaunchHostFunc(queue, &HostWork::run, bound.host.get()));
  } else if (bound.kernel != nullptr) {
    bound.kernel(bound.is_bias_done ? without_bias(call_of(bound)) : call_of(bound));
  } else if (!silent_) {
    DeviceCommunicator* communicator = communicators_[static_cast<std::size_t>(bound.operation->group)];
    if (communicator == nullptr) throw std::logic_error("a group that communicates needs a communicator");
    communicator->start(*bound.operation, bound.operands, queue);
  }
}

bool DeviceExecutor::oldest_is_done() {
  const cudaError_t state = cudaEventQuery(slot_of(finished_).finished.get());
  if (state == cudaErrorNotReady) {
    for (DeviceCommunicator* communicator : communicators_) {
      if (communicator != nullptr) communicator->check();
    }
    return false;
  }
  check_cuda(state, "a step", __FILE__, __LINE__);
  for (const DeviceOperation& bound : operations_) {
    if (bound.host && bound.host->failure) std::rethrow_exception(bound.host->failure);
  }
  return true;
}

FinishedStep DeviceExecutor::finish() {
  const Slot& slot = slot_of(finished_++);
  if (slot.timed) {
    operation_times_.clear();
    for (const DeviceOperation& bound : operations_) operation_times_.push_back(bound.time_after(slot.span.begin));
  }
  const auto* losses = reinterpret_cast<const float*>(slot.losses.get());
  double sum = 0.0;
  for (std::int64_t m = 0; m < plan_.micro_steps; ++m) sum += static_cast<double>(losses[m]);
  return {slot.span.elapsed_s(), sum / static_cast<double>(plan_.micro_steps), slot.timed};
}

void DeviceExecutor::silence(bool silent) {
  if (in_flight() > 0) throw std::logic_error("a step is in flight");
  silent_ = silent;
  graph_.reset();
}

}  // namespace krigtune::cuda
