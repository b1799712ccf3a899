// The time of a step is cut whenever something begins or ends. A piece in which a kernel of the compute stream runs
// belongs to that kernel's phase. Any other piece is a gap and belongs to the activity that delayed the kernels. The
// order of precedence is: collectives that move data (in equal parts if there are several), copies and host work (also
// in equal parts), collectives that wait for other ranks, nothing. Gaps after the last kernel count too, because the
// end of the step waits for an all-gather at its end.
#include "plan/step_breakdown.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "plan/op_traits.h"

namespace krigtune::plan {
namespace {

constexpr std::size_t kWaiting = kActivityCount;  // collectives that wait for other ranks
constexpr std::size_t kKernels = kWaiting + 1;
constexpr std::size_t kSlots = kKernels + 1;

struct Edge {
  double at_s;
  std::size_t slot;
  int change;  // change of the number of running operations
};
using Running = std::array<int, kSlots>;

bool is_kernel(const Operation& operation) {
  return operation.stream == schedule::Stream::kCompute && !is_collective(operation.kind);
}

std::vector<Edge> edges_of(const StepPlan& plan, std::span<const OperationTime> times) {
  std::vector<Edge> edges;
  edges.reserve(4 * times.size());
  const auto add = [&](double from_s, double to_s, std::size_t slot) {
    edges.push_back({from_s, slot, 1});
    edges.push_back({to_s, slot, -1});
  };
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Operation& operation = plan.operations[i];
    const OperationTime& time = times[i];
    if (is_kernel(operation)) {
      add(time.start_s, time.end_s, kKernels);
      continue;
    }
    add(time.ready_s, time.end_s, static_cast<std::size_t>(activity_of(operation)));
    if (time.ready_s > time.start_s) add(time.start_s, time.ready_s, kWaiting);
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at_s < b.at_s; });
  return edges;
}

void add_gap(double length_s, const Running& running, StepBreakdown& sum) {
  for (const auto& [first, last] : {std::pair{0, kCollectiveKinds}, std::pair{kCollectiveKinds, kActivityCount}}) {
    int at_work = 0;
    for (int a = first; a < last; ++a) at_work += running[static_cast<std::size_t>(a)];
    if (at_work == 0) continue;
    for (int a = first; a < last; ++a) {
      const double part = static_cast<double>(running[static_cast<std::size_t>(a)]) / static_cast<double>(at_work);
      sum.activities[static_cast<std::size_t>(a)].exposed_s += part * length_s;
    }
    return;
  }
  (running[kWaiting] > 0 ? sum.waiting_s : sum.idle_s) += length_s;
}

}  // namespace

const char* to_string(Activity activity) {
  switch (activity) {
    case Activity::kAllReduce:
      return "all_reduce";
    case Activity::kReduceScatter:
      return "reduce_scatter";
    case Activity::kAllGather:
      return "all_gather";
    case Activity::kCopies:
      return "copies";
    case Activity::kHost:
      return "host_work";
  }
  assert(false);
  return "";
}

Activity activity_of(const Operation& operation) {
  if (operation.kind == schedule::OpKind::kReduceScatter) return Activity::kReduceScatter;
  if (operation.kind == schedule::OpKind::kAllGather) return Activity::kAllGather;
  if (is_collective(operation.kind)) return Activity::kAllReduce;
  return operation.stream == schedule::Stream::kHost ? Activity::kHost : Activity::kCopies;
}

double StepBreakdown::exposed_comm_s() const {
  double sum = waiting_s;
  for (std::size_t a = 0; a < kCollectiveKinds; ++a) sum += activities[a].exposed_s;
  return sum;
}

double StepBreakdown::communication_s() const {
  double sum = 0.0;
  for (std::size_t a = 0; a < kCollectiveKinds; ++a) sum += activities[a].time_s;
  return sum;
}

double StepBreakdown::overlap_fraction() const {
  const double total = communication_s();
  return total > 0.0 ? std::max(0.0, 1.0 - (exposed_comm_s() - waiting_s) / total) : 0.0;
}

StepBreakdown break_down(const StepPlan& plan, std::span<const OperationTime> times) {
  StepBreakdown sum;
  if (times.empty()) return sum;
  double begin_s = times.front().queued_s;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Operation& operation = plan.operations[i];
    begin_s = std::min(begin_s, times[i].queued_s);
    if (is_kernel(operation)) {
      sum.compute_s[static_cast<std::size_t>(operation.phase)] += times[i].end_s - times[i].start_s;
    } else {
      sum.activities[static_cast<std::size_t>(activity_of(operation))].time_s += times[i].end_s - times[i].ready_s;
    }
  }
  const std::vector<Edge> edges = edges_of(plan, times);
  Running running{};
  double now_s = begin_s;
  for (const Edge& edge : edges) {
    if (running[kKernels] == 0) add_gap(edge.at_s - now_s, running, sum);
    now_s = edge.at_s;
    running[edge.slot] += edge.change;
  }
  sum.span_s = now_s - begin_s;
  return sum;
}

}  // namespace krigtune::plan
