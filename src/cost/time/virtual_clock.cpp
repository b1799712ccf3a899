// A discrete-event execution of one rank's streams. Between two events every running operation progresses at a constant
// rate: computing operations at their share of the cores (a GPU's streams share none), and kernels of the compute
// stream more slowly while a collective moves data. The collectives of a lane share one link, which serves them one
// after the other in the order of their arrival; krigtune-bench's emulated link is one lane for all groups. The links
// of a real machine are one lane for the data group and one for the tensor group: within a node both use the same
// wires, across nodes they have their own.
#include "cost/time/virtual_clock.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "cost/time/clock_core.h"
#include "plan/op_traits.h"

namespace krigtune::cost {
namespace {

class Times {
 public:
  explicit Times(std::size_t operations) : times_(operations) {}
  void queued(plan::OpId id, double now_s) { times_[static_cast<std::size_t>(id)].queued_s = now_s; }
  void started(plan::OpId id, double now_s) { times_[static_cast<std::size_t>(id)].start_s = now_s; }
  void ready(plan::OpId id, double now_s) { times_[static_cast<std::size_t>(id)].ready_s = now_s; }
  void ended(plan::OpId id, double now_s) { times_[static_cast<std::size_t>(id)].end_s = now_s; }
  void passed(double /*seconds*/, bool /*kernel*/, bool /*network*/, bool /*others*/) {}
  std::vector<plan::OperationTime> take() { return std::move(times_); }

 private:
  std::vector<plan::OperationTime> times_;
};

class Totals {
 public:
  explicit Totals(std::span<const plan::OpId> marks) : marks_(marks) { reached_.reserve(marks.size() + 1); }
  void queued(plan::OpId /*id*/, double /*now_s*/) {}
  void started(plan::OpId /*id*/, double /*now_s*/) {}
  void ready(plan::OpId /*id*/, double /*now_s*/) {}
  void ended(plan::OpId id, double now_s) {
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
  std::span<const plan::OpId> marks_;
  ClockTotals now_;
  std::vector<ClockTotals> reached_;
};

}  // namespace

std::vector<plan::OperationTime> run_clock(std::span<const TimedOperation> operations, const ClockRules& rules) {
  Times times(operations.size());
  ClockCore(operations, rules, times).run();
  return times.take();
}

std::vector<ClockTotals> run_clock_totals(std::span<const TimedOperation> operations, const ClockRules& rules,
                                          std::span<const plan::OpId> marks) {
  Totals totals(marks);
  ClockCore(operations, rules, totals).run();
  return totals.take();
}

namespace {

constexpr double kNoTime = std::numeric_limits<double>::infinity();

struct Use {
  double from_s = kNoTime;
  double to_s = 0.0;
};

// Returns when each buffer is in use: from its first to its last access.
std::vector<Use> uses_of(const plan::StepPlan& plan, const std::vector<plan::OperationTime>& times) {
  std::vector<Use> uses(plan.buffers.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    for (const plan::Operand& operand : plan.operations[i].operands) {
      Use& use = uses[static_cast<std::size_t>(operand.range.buffer)];
      use.from_s = std::min(use.from_s, times[i].start_s);
      use.to_s = std::max(use.to_s, times[i].end_s);
    }
  }
  return uses;
}

struct Change {
  double at_s;
  std::size_t place;
  std::int64_t bytes;
};

std::vector<plan::MemoryPoint> summed(const plan::MemoryPoint& start, const std::vector<Change>& changes) {
  std::vector<plan::MemoryPoint> points = {start};
  for (const Change& change : changes) {
    plan::MemoryPoint next = points.back();
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

std::vector<plan::MemoryPoint> memory_over_time(const plan::StepPlan& plan,
                                                const std::vector<plan::OperationTime>& times) {
  const std::vector<Use> uses = uses_of(plan, times);
  plan::MemoryPoint start;
  std::vector<Change> changes;
  for (std::size_t b = 0; b < uses.size(); ++b) {
    const plan::Buffer& buffer = plan.buffers[b];
    const auto place = static_cast<std::size_t>(buffer.place);
    if (buffer.persistent) {
      start.bytes[place] += buffer.bytes();
    } else if (uses[b].from_s < kNoTime) {
      changes.push_back({uses[b].from_s, place, buffer.bytes()});
      changes.push_back({uses[b].to_s, place, -buffer.bytes()});
    }
  }
  // Operations that end at a moment end before those that begin then.
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return std::pair(a.at_s, a.bytes) < std::pair(b.at_s, b.bytes); });
  return summed(start, changes);
}

}  // namespace

ClockRules clock_rules(const Machine& machine, const plan::GroupSpan& data, const plan::GroupSpan& tensor) {
  ClockRules rules;
  rules.overlap_slowdown = machine.overlap_slowdown;
  rules.lanes_share = (data.nodes == 1) == (tensor.nodes == 1);
  rules.cores = machine.cores;
  rules.sleeping_links = machine.sleeping_network;
  rules.wake_s = machine.wake_s;
  return rules;
}

std::uint8_t lane_of(const Machine& machine, schedule::Group group) {
  return group == schedule::Group::kTensor && !machine.one_link ? 1 : 0;
}

PredictedStep predict_step(const plan::StepPlan& plan, const Machine& machine) {
  const plan::GroupSpan data = plan::group_span(plan, schedule::Group::kData, 0, machine.ranks_per_node);
  const plan::GroupSpan tensor = plan::group_span(plan, schedule::Group::kTensor, 0, machine.ranks_per_node);
  std::vector<TimedOperation> timed;
  timed.reserve(plan.operations.size());
  std::vector<std::int32_t> positions;  // in its stream, from 1
  std::array<std::int32_t, schedule::kStreamCount> count{};
  for (const plan::Operation& operation : plan.operations) {
    TimedOperation& next = timed.emplace_back();
    next.stream = operation.stream;
    next.collective = plan::is_collective(operation.kind);
    if (next.collective) {
      next.lane = lane_of(machine, operation.group);
      next.seconds = link_time_s(machine, operation.kind, operation.group == schedule::Group::kData ? data : tensor,
                                 operation.wire_bytes);
      next.core_s = exchange_time_s(machine, operation.kind, operation.wire_bytes);
    } else {
      next.seconds = operation_time_s(machine, plan, operation);
    }
    next.issue_s = issue_time_s(machine, operation, plan.tensor_ranks, 1);
    for (const plan::OpId wait : operation.waits) {
      const auto at = static_cast<std::size_t>(wait);
      std::int32_t& behind = next.behind[static_cast<std::size_t>(plan.operations[at].stream)];
      behind = std::max(behind, positions[at]);
    }
    positions.push_back(++count[static_cast<std::size_t>(operation.stream)]);
  }
  PredictedStep step;
  step.times = run_clock(timed, clock_rules(machine, data, tensor));
  step.breakdown = plan::break_down(plan, step.times);
  step.step_time_s = step.breakdown.span_s + machine.step_overhead_s;
  step.memory = memory_over_time(plan, step.times);
  return step;
}

plan::TracedStep traced(const PredictedStep& step) { return {0, {step.times}, "krigtune plan", step.memory}; }

}  // namespace krigtune::cost
