// A discrete-event execution of one rank's streams. Between two events every running operation progresses at a constant
// rate: what computes at its share of the cores (a GPU's streams share none), kernels of the compute stream slower
// while a collective moves data. The collectives of a lane have one link, which carries them one after the other in the
// order in which they came to it; krigtune-bench's emulated link is one lane for all groups. The links of a real
// machine are one lane for the data group, one for the tensor group: within a node they share the same wires, across
// nodes they have wires of their own.
#include "krigtune/cost/virtual_clock.h"

#include <utility>

#include "clock/clock_core.h"

namespace krigtune {
namespace {

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

}  // namespace

std::vector<OperationTime> run_clock(std::span<const TimedOperation> operations, const ClockRules& rules) {
  Times times(operations.size());
  ClockCore(operations, rules, times).run();
  return times.take();
}

std::vector<ClockTotals> run_clock_totals(std::span<const TimedOperation> operations, const ClockRules& rules,
                                          std::span<const OpId> marks) {
  Totals totals(marks);
  ClockCore(operations, rules, totals).run();
  return totals.take();
}

}  // namespace krigtune
