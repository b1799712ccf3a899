// A discrete-event execution of one rank's streams. Between two events every running operation progresses at a constant
// rate: kernels at 1 / slowdown while a collective moves data, all else at 1. Collectives share one network, which
// carries them one after the other in the order in which they came to it, as krigtune-bench's emulated link does.
#include "krigtune/cost/virtual_clock.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace krigtune {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::size_t kStreams = kStreamCount;

class Clock {
 public:
  Clock(std::span<const TimedOperation> operations, double overlap_slowdown)
      : operations_(operations), kernel_rate_(1.0 / overlap_slowdown), times_(operations.size()) {
    issued_s_.reserve(operations.size());
    done_.resize(operations.size(), false);
    double issued_s = 0.0;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      issued_s += operations[i].issue_s;
      issued_s_.push_back(issued_s);
      streams_[static_cast<std::size_t>(operations[i].stream)].queue.push_back(i);
    }
  }

  std::vector<OperationTime> run() {
    for (;;) {
      start_what_can();
      const double next_s = next_event_s();
      if (next_s == kNever) return std::move(times_);
      advance_to(next_s);
    }
  }

 private:
  enum class State { kQueued, kOnTheWay, kRunning };  // kOnTheWay: a collective that waits for the network
  struct StreamState {
    std::vector<std::size_t> queue;
    std::size_t head = 0;
    State state = State::kQueued;
    double left_s = 0.0;  // of the head, at rate 1
    double finish_s = kNever;
    bool empty() const { return head == queue.size(); }
    std::size_t operation() const { return queue[head]; }
  };

  bool waits_are_done(std::size_t operation) const {
    const auto& waits = operations_[operation].waits;
    return std::all_of(waits.begin(), waits.end(), [&](OpId id) { return done_[static_cast<std::size_t>(id)]; });
  }

  void start_what_can() {
    for (StreamState& stream : streams_) {
      if (stream.empty() || stream.state != State::kQueued) continue;
      const std::size_t id = stream.operation();
      if (issued_s_[id] > now_s_ || !waits_are_done(id)) continue;
      stream.left_s = operations_[id].seconds;
      times_[id].start_s = now_s_;
      if (operations_[id].collective) {
        stream.state = State::kOnTheWay;
        network_queue_.push_back(&stream);
      } else {
        times_[id].ready_s = now_s_;
        stream.state = State::kRunning;
      }
    }
    if (on_network_ == nullptr && !network_queue_.empty()) {
      const auto first = std::min_element(network_queue_.begin(), network_queue_.end(), [&](auto* a, auto* b) {
        return std::pair(times_[a->operation()].start_s, a->operation()) <
               std::pair(times_[b->operation()].start_s, b->operation());
      });
      on_network_ = *first;
      network_queue_.erase(first);
      on_network_->state = State::kRunning;
      times_[on_network_->operation()].ready_s = now_s_;
    }
  }

  double rate_of(const StreamState& stream) const {
    const TimedOperation& operation = operations_[stream.operation()];
    const bool kernel = operation.stream == Stream::kCompute && !operation.collective;
    return kernel && on_network_ != nullptr ? kernel_rate_ : 1.0;
  }

  double next_event_s() {
    double next_s = kNever;
    for (StreamState& stream : streams_) {
      if (stream.empty()) continue;
      const std::size_t id = stream.operation();
      if (stream.state == State::kRunning) {
        stream.finish_s = now_s_ + stream.left_s / rate_of(stream);
        next_s = std::min(next_s, stream.finish_s);
      } else if (stream.state == State::kQueued && issued_s_[id] > now_s_) {
        next_s = std::min(next_s, issued_s_[id]);
      }
    }
    return next_s;
  }

  void advance_to(double next_s) {
    for (StreamState& stream : streams_) {
      if (stream.empty() || stream.state != State::kRunning) continue;
      if (stream.finish_s > next_s) {
        stream.left_s -= (next_s - now_s_) * rate_of(stream);
      } else {
        finished_[finished_count_++] = &stream;
      }
    }
    now_s_ = next_s;
    while (finished_count_ > 0) finish(*finished_[--finished_count_]);
  }

  void finish(StreamState& stream) {
    const std::size_t id = stream.operation();
    times_[id].end_s = now_s_;
    done_[id] = true;
    if (on_network_ == &stream) on_network_ = nullptr;
    stream.state = State::kQueued;
    if (++stream.head < stream.queue.size()) times_[stream.operation()].queued_s = now_s_;
  }

  std::span<const TimedOperation> operations_;
  double kernel_rate_;
  std::vector<OperationTime> times_;
  std::vector<double> issued_s_;
  std::vector<bool> done_;
  std::array<StreamState, kStreams> streams_;
  std::array<StreamState*, kStreams> finished_{};
  std::size_t finished_count_ = 0;
  std::vector<StreamState*> network_queue_;
  StreamState* on_network_ = nullptr;
  double now_s_ = 0.0;
};

struct Use {
  double from_s = kNever;
  double to_s = 0.0;
};

std::vector<MemoryPoint> memory_over_time(const StepPlan& plan, const std::vector<OperationTime>& times) {
  std::vector<Use> uses(plan.buffers.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    for (const Operand& operand : plan.operations[i].operands) {
      Use& use = uses[static_cast<std::size_t>(operand.range.buffer)];
      use.from_s = std::min(use.from_s, times[i].start_s);
      use.to_s = std::max(use.to_s, times[i].end_s);
    }
  }
  MemoryPoint start;
  struct Change {
    double at_s;
    std::size_t place;
    std::int64_t bytes;
  };
  std::vector<Change> changes;
  for (std::size_t b = 0; b < uses.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    const auto place = static_cast<std::size_t>(buffer.place);
    if (buffer.persistent) {
      start.bytes[place] += buffer.bytes();
    } else if (uses[b].from_s < kNever) {
      changes.push_back({uses[b].from_s, place, buffer.bytes()});
      changes.push_back({uses[b].to_s, place, -buffer.bytes()});
    }
  }
  // What ends at a moment ends before what begins then.
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return std::pair(a.at_s, a.bytes) < std::pair(b.at_s, b.bytes); });
  std::vector<MemoryPoint> points = {start};
  for (const Change& change : changes) {
    MemoryPoint next = points.back();
    next.at_s = change.at_s;
    next.bytes[change.place] += change.bytes;
    if (change.at_s == points.back().at_s && points.size() > 1) {
      points.back() = next;
    } else {
      points.push_back(next);
    }
  }
  return points;
}

}  // namespace

std::vector<OperationTime> run_clock(std::span<const TimedOperation> operations, double overlap_slowdown) {
  return Clock(operations, overlap_slowdown).run();
}

PredictedStep predict_step(const StepPlan& plan, const Machine& machine) {
  std::vector<TimedOperation> timed;
  timed.reserve(plan.operations.size());
  for (const Operation& operation : plan.operations) {
    timed.push_back({operation.stream, is_collective(operation.kind), operation_time_s(machine, plan, operation),
                     issue_time_s(machine, operation, plan.tensor_ranks, 1), operation.waits});
  }
  PredictedStep step;
  step.times = run_clock(timed, machine.overlap_slowdown);
  step.breakdown = break_down(plan, step.times);
  step.step_time_s = step.breakdown.span_s + machine.step_overhead_s;
  step.memory = memory_over_time(plan, step.times);
  return step;
}

}  // namespace krigtune
