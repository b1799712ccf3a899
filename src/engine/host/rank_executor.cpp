// Completion is one counter per stream that only grows within a step: operation i of a stream is done once the counter
// has reached i + 1. Waiting threads sleep on the counter (futex), and nothing is allocated while a step runs.
#include "engine/host/rank_executor.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "engine/host/bound_plan.h"
#include "engine/host/communicator.h"
#include "plan/op_traits.h"

namespace krigtune::engine {

Workers::Workers(std::vector<std::function<void()>> jobs, std::function<void()> on_failure)
    : on_failure_(std::move(on_failure)), jobs_(std::move(jobs)) {
  for (const auto& job : jobs_) threads_.emplace_back([this, &job] { work(job); });
}

Workers::~Workers() {
  stopping_.store(true, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::run_round() {
  busy_.store(static_cast<std::int32_t>(threads_.size()), std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::int32_t busy = busy_.load(std::memory_order_acquire); busy > 0;
       busy = busy_.load(std::memory_order_acquire)) {
    busy_.wait(busy, std::memory_order_acquire);
  }
  if (failure_) std::rethrow_exception(failure_);
}

void Workers::work(const std::function<void()>& job) {
  std::int32_t seen = 0;
  while (true) {
    round_.wait(seen, std::memory_order_acquire);
    seen = round_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    try {
      job();
    } catch (...) {
      record_failure();
    }
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_all();
  }
}

// Later failures are consequences of the first one.
void Workers::record_failure() {
  {
    const std::lock_guard lock(failure_mutex_);
    if (failure_) return;
    failure_ = std::current_exception();
  }
  on_failure_();
}

namespace {

constexpr std::int32_t kAborted = std::numeric_limits<std::int32_t>::max();

}  // namespace

RankExecutor::RankExecutor(const plan::StepPlan& plan, const RankMemory& memory, const GroupRanks& ranks,
                           const StreamCommunicators& communicators, const Clock& clock)
    : plan_(plan),
      bound_(bind_plan(plan, memory, ranks)),
      lifetimes_(plan, memory),
      communicators_(communicators),
      clock_(clock),
      times_(plan.operations.size()),
      null_communicator_(clock) {
  for (std::size_t stream = 0; stream < bound_.size(); ++stream) {
    for (const BoundOperation& bound : bound_[stream]) make_ready_for(bound, scratch_[stream]);
  }
}

void RankExecutor::make_ready_for(const BoundOperation& bound, std::vector<float>& scratch) const {
  if (plan::is_collective(bound.operation->kind)) {
    if (communicator_of(*bound.operation) == nullptr) {
      throw std::logic_error("a stream with collectives needs a communicator");
    }
    return;
  }
  const auto needed = static_cast<std::size_t>(call_scratch_elems(bound));
  if (scratch.size() < needed) scratch.resize(needed);
}

std::vector<schedule::Stream> RankExecutor::streams() const {
  std::vector<schedule::Stream> used;
  for (std::size_t s = 0; s < bound_.size(); ++s) {
    if (!bound_[s].empty()) used.push_back(static_cast<schedule::Stream>(s));
  }
  return used;
}

void RankExecutor::begin_step(const StepContext& context) {
  context_ = context;
  context_.gradient_clipping = plan_.gradient_clipping;
  context_.first_loss_scale = plan_.first_loss_scale;
  lifetimes_.begin_step();
  for (auto& counter : done_) counter.store(0, std::memory_order_relaxed);
}

void RankExecutor::run(schedule::Stream stream) {
  auto& done = done_[schedule::index_of(stream)];
  std::int32_t expected = 0;
  double now_s = clock_.now_s();
  for (const BoundOperation& bound : bound_[schedule::index_of(stream)]) {
    plan::OperationTime& time = times_[static_cast<std::size_t>(bound.operation - plan_.operations.data())];
    time.queued_s = now_s;
    const bool waits = !ready(bound);
    for (const Dependency& dependency : bound.dependencies) wait_for(dependency);
    time.start_s = waits ? clock_.now_s() : now_s;
    time.ready_s = execute(bound, time.start_s);
    time.end_s = now_s = clock_.now_s();
    // If the step was aborted meanwhile, the counter must keep its mark.
    if (!done.compare_exchange_strong(expected, expected + 1, std::memory_order_release)) throw Aborted();
    ++expected;
    done.notify_all();
  }
}

void RankExecutor::abort() {
  for (auto& counter : done_) {
    counter.store(kAborted, std::memory_order_release);
    counter.notify_all();
  }
}

bool RankExecutor::ready(const BoundOperation& bound) const {
  for (const Dependency& dependency : bound.dependencies) {
    if (done_[schedule::index_of(dependency.stream)].load(std::memory_order_acquire) < dependency.done) return false;
  }
  return true;
}

void RankExecutor::wait_for(const Dependency& dependency) const {
  const auto& counter = done_[schedule::index_of(dependency.stream)];
  std::int32_t now = counter.load(std::memory_order_acquire);
  while (now < dependency.done) {
    counter.wait(now, std::memory_order_acquire);
    now = counter.load(std::memory_order_acquire);
  }
  if (now == kAborted) throw Aborted();
}

// Returns the time at which the operation's data were ready.
double RankExecutor::execute(const BoundOperation& bound, double start_s) {
  lifetimes_.begin_use(bound.buffers);
  double ready_s = start_s;
  if (bound.kernel != nullptr) {
    call_kernel(bound, context_, scratch_[schedule::index_of(bound.operation->stream)].data());
  } else {
    ready_s = std::max(ready_s, communicate(bound));
  }
  lifetimes_.end_use(bound.buffers);
  return ready_s;
}

Communicator* RankExecutor::communicator_of(const plan::Operation& operation) const {
  return communicators_[schedule::index_of(operation.stream)][static_cast<std::size_t>(operation.group)];
}

double RankExecutor::communicate(const BoundOperation& bound) {
  Communicator& connected = *communicator_of(*bound.operation);
  Communicator& communicator = silent_ ? null_communicator_ : connected;
  const Collective collective{bound.segments, bound.operation->wire_bytes};
  switch (bound.operation->kind) {
    case schedule::OpKind::kAllReduce:
      return communicator.all_reduce(collective);
    case schedule::OpKind::kAllReduceMax:
      return communicator.all_reduce_max(collective);
    case schedule::OpKind::kReduceScatter:
      return communicator.reduce_scatter(collective);
    default:
      return communicator.all_gather(collective);
  }
}

}  // namespace krigtune::engine
