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

// `Observer` hears of every event; the times between them are told as they pass.
template <class Observer>
class Clock {
 public:
  Clock(std::span<const TimedOperation> operations, double overlap_slowdown, Observer& observer)
      : operations_(operations), kernel_rate_(1.0 / overlap_slowdown), observer_(observer) {
    issued_s_.resize(operations.size());
    next_.resize(operations.size());
    std::array<OpId, kStreams> last{-1, -1, -1, -1, -1};
    double issued_s = 0.0;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      issued_s_[i] = issued_s;
      issued_s += operations[i].issue_s + operations[i].issue_rest_s;
      const auto stream = static_cast<std::size_t>(operations[i].stream);
      next_[i] = kNone;
      const auto id = static_cast<OpId>(i);
      (last[stream] < 0 ? streams_[stream].head : next_[static_cast<std::size_t>(last[stream])]) = id;
      last[stream] = id;
    }
  }

  void run() {
    for (;;) {
      start_what_can();
      const double next_s = next_event_s();
      if (next_s == kNever) return;
      advance_to(next_s);
    }
  }

 private:
  static constexpr OpId kNone = -1;
  // kOnTheWay: a collective that waits for the network; kDone: not all its kernels could have been issued.
  enum class State : std::uint8_t { kQueued, kOnTheWay, kRunning, kDone };
  struct StreamState {
    OpId head = kNone;
    State state = State::kQueued;
    double since_s = 0.0;  // on the way
    double left_s = 0.0;   // of the head, at rate 1
    double finish_s = kNever;
  };

  const TimedOperation& operation(const StreamState& stream) const {
    return operations_[static_cast<std::size_t>(stream.head)];
  }
  double issue_begins_s(const StreamState& stream) const { return issued_s_[static_cast<std::size_t>(stream.head)]; }

  bool waits_are_done(const TimedOperation& operation) const {
    for (std::size_t s = 0; s < kStreams; ++s) {
      if (operation.behind[s] > done_[s]) return false;
    }
    return true;
  }

  void start_what_can() {
    for (StreamState& stream : streams_) {
      if (stream.head == kNone || stream.state != State::kQueued) continue;
      const TimedOperation& head = operation(stream);
      if (issue_begins_s(stream) + head.issue_s > now_s_ || !waits_are_done(head)) continue;
      stream.left_s = head.seconds;
      observer_.started(stream.head, now_s_);
      if (head.collective) {
        stream.state = State::kOnTheWay;
        stream.since_s = now_s_;
      } else {
        stream.state = State::kRunning;
        observer_.ready(stream.head, now_s_);
      }
    }
    if (on_network_ == nullptr) send_first();
  }

  void send_first() {
    for (StreamState& stream : streams_) {
      if (stream.state != State::kOnTheWay) continue;
      if (on_network_ == nullptr ||
          std::pair(stream.since_s, stream.head) < std::pair(on_network_->since_s, on_network_->head)) {
        on_network_ = &stream;
      }
    }
    if (on_network_ == nullptr) return;
    on_network_->state = State::kRunning;
    observer_.ready(on_network_->head, now_s_);
  }

  bool runs_kernel() const {
    const StreamState& compute = streams_[static_cast<std::size_t>(Stream::kCompute)];
    return compute.state == State::kRunning && !operation(compute).collective;
  }
  double rate_of(const StreamState& stream) const {
    return &stream == streams_.data() && on_network_ != nullptr && on_network_ != &stream ? kernel_rate_ : 1.0;
  }

  double next_event_s() {
    double next_s = kNever;
    for (StreamState& stream : streams_) {
      if (stream.head == kNone) continue;
      if (stream.state == State::kRunning) {
        stream.finish_s = now_s_ + stream.left_s / rate_of(stream);
        next_s = std::min(next_s, stream.finish_s);
      } else if (stream.state == State::kDone) {
        next_s = std::min(next_s, stream.finish_s);
      } else if (stream.state == State::kQueued) {
        const double issued_s = issue_begins_s(stream) + operation(stream).issue_s;
        if (issued_s > now_s_) next_s = std::min(next_s, issued_s);
      }
    }
    return next_s;
  }

  void advance_to(double next_s) {
    const double passed_s = next_s - now_s_;
    const bool others = streams_[static_cast<std::size_t>(Stream::kCopy)].state == State::kRunning ||
                        streams_[static_cast<std::size_t>(Stream::kHost)].state == State::kRunning ||
                        runs_no_collective(Stream::kReduce) || runs_no_collective(Stream::kGather);
    observer_.passed(passed_s, runs_kernel(), on_network_ != nullptr, others);
    std::array<StreamState*, kStreams> finished{};
    std::size_t count = 0;
    for (StreamState& stream : streams_) {
      if (stream.state != State::kRunning && stream.state != State::kDone) continue;
      if (stream.finish_s <= next_s) {
        finished[count++] = &stream;
      } else if (stream.state == State::kRunning) {
        stream.left_s -= passed_s * rate_of(stream);
      }
    }
    now_s_ = next_s;
    while (count > 0) finish(*finished[--count]);
  }

  bool runs_no_collective(Stream of) const {
    const StreamState& stream = streams_[static_cast<std::size_t>(of)];
    return stream.state == State::kRunning && !operation(stream).collective;
  }

  void finish(StreamState& stream) {
    if (on_network_ == &stream) on_network_ = nullptr;
    const double least_s = issue_begins_s(stream) + operation(stream).least_s;
    if (stream.state == State::kRunning && least_s > now_s_) {
      stream.state = State::kDone;
      stream.finish_s = least_s;
      return;
    }
    observer_.ended(stream.head, now_s_);
    ++done_[static_cast<std::size_t>(&stream - streams_.data())];
    stream.state = State::kQueued;
    stream.head = next_[static_cast<std::size_t>(stream.head)];
    if (stream.head != kNone) observer_.queued(stream.head, now_s_);
  }

  std::span<const TimedOperation> operations_;
  double kernel_rate_;
  Observer& observer_;
  std::vector<double> issued_s_;  // when issuing of each begins
  std::vector<OpId> next_;        // of the same stream
  std::array<StreamState, kStreams> streams_;
  std::array<std::int32_t, kStreams> done_{};
  StreamState* on_network_ = nullptr;
  double now_s_ = 0.0;
};

class Times {
 public:
  explicit Times(std::size_t operations) : times_(operations) {}
  void queued(OpId id, double now_s) { times_[static_cast<std::size_t>(id)].queued_s = now_s; }
  void started(OpId id, double now_s) { times_[static_cast<std::size_t>(id)].start_s = now_s; }
  void ready(OpId id, double now_s) { times_[static_cast<std::size_t>(id)].ready_s = now_s; }
  void ended(OpId id, double now_s) { times_[static_cast<std::size_t>(id)].end_s = now_s; }
  void passed(double /*seconds*/, bool /*kernel*/, bool /*network*/, bool /*others*/) {}
  std::vector<OperationTime> take() { return std::move(times_); }

 private:
  std::vector<OperationTime> times_;
};

class Totals {
 public:
  explicit Totals(std::span<const OpId> marks) : marks_(marks) { reached_.reserve(marks.size() + 1); }
  void queued(OpId /*id*/, double /*now_s*/) {}
  void started(OpId /*id*/, double /*now_s*/) {}
  void ready(OpId /*id*/, double /*now_s*/) {}
  void ended(OpId id, double now_s) {
    now_.span_s = now_s;
    if (reached_.size() < marks_.size() && marks_[reached_.size()] == id) reached_.push_back(now_);
  }
  void passed(double seconds, bool kernel, bool network, bool others) {
    (kernel ? now_.kernels_s : network ? now_.exposed_comm_s : others ? now_.exposed_copies_s : now_.idle_s) += seconds;
  }
  std::vector<ClockTotals> take() {
    reached_.push_back(now_);
    return std::move(reached_);
  }

 private:
  std::span<const OpId> marks_;
  ClockTotals now_;
  std::vector<ClockTotals> reached_;
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
  Times times(operations.size());
  Clock(operations, overlap_slowdown, times).run();
  return times.take();
}

std::vector<ClockTotals> run_clock_totals(std::span<const TimedOperation> operations, double overlap_slowdown,
                                          std::span<const OpId> marks) {
  Totals totals(marks);
  Clock(operations, overlap_slowdown, totals).run();
  return totals.take();
}

PredictedStep predict_step(const StepPlan& plan, const Machine& machine) {
  std::vector<TimedOperation> timed;
  timed.reserve(plan.operations.size());
  std::vector<std::int32_t> positions;  // in its stream, from 1
  std::array<std::int32_t, kStreams> count{};
  for (const Operation& operation : plan.operations) {
    TimedOperation& next = timed.emplace_back();
    next.stream = operation.stream;
    next.collective = is_collective(operation.kind);
    next.seconds = operation_time_s(machine, plan, operation);
    next.issue_s = operation.stream == Stream::kHost ? 0.0 : machine.issue_s;
    for (const OpId wait : operation.waits) {
      const auto at = static_cast<std::size_t>(wait);
      std::int32_t& behind = next.behind[static_cast<std::size_t>(plan.operations[at].stream)];
      behind = std::max(behind, positions[at]);
    }
    positions.push_back(++count[static_cast<std::size_t>(operation.stream)]);
  }
  PredictedStep step;
  step.times = run_clock(timed, machine.overlap_slowdown);
  step.breakdown = break_down(plan, step.times);
  step.step_time_s = step.breakdown.span_s + machine.step_overhead_s;
  step.memory = memory_over_time(plan, step.times);
  return step;
}

}  // namespace krigtune
