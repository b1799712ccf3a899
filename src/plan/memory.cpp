#include "krigtune/plan/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>

#include "lifetimes.h"

namespace krigtune {
namespace {

std::string place_text(const Operation& operation, std::int64_t micro_steps) {
  std::string text = to_string(operation.phase);
  if (operation.phase == Phase::kOptimizer) return text;
  text += operation.layer >= 0 ? fmt::format(" of block {}", operation.layer)
                               : fmt::format(" ({})", to_string(operation.kind));
  if (micro_steps > 1) text += fmt::format(", micro-step {}", operation.micro_step);
  return text;
}

}  // namespace

MemoryReport explain(const StepPlan& plan) {
  const Lifetimes lives = lifetimes(plan);
  const std::vector<std::int64_t> live = live_bytes(plan, lives);
  const auto peak = static_cast<std::size_t>(std::max_element(live.begin(), live.end()) - live.begin());
  MemoryReport report;
  report.peak_bytes = plan.arena_bytes;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    if (plan.buffers[b].place != Place::kDevice || !is_live(lives, b, peak)) continue;
    report.term_bytes[static_cast<std::size_t>(plan.buffers[b].term)] += plan.buffers[b].bytes();
  }
  report.fragmentation_bytes =
      plan.arena_bytes - std::accumulate(report.term_bytes.begin(), report.term_bytes.end(), std::int64_t{0});
  report.peak_at = place_text(plan.operations[static_cast<std::size_t>(lives.compute[peak])], plan.micro_steps);
  return report;
}

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFits:
      return "fits";
    case Verdict::kUncertain:
      return "uncertain";
    case Verdict::kTooLarge:
      return "too_large";
  }
  assert(false);
  return "";
}

MemoryVerdict exact_verdict(Bytes predicted, Bytes usable) {
  const bool fits = predicted <= usable;
  return {fits ? Verdict::kFits : Verdict::kTooLarge, fits ? 1.0 : 0.0, predicted};
}

WireBytes wire_bytes(const StepPlan& plan) {
  WireBytes sent;
  for (const Operation& operation : plan.operations) {
    if (operation.kind == OpKind::kAllReduce) sent.all_reduce += operation.wire_bytes;
    if (operation.kind == OpKind::kReduceScatter) sent.reduce_scatter += operation.wire_bytes;
    if (operation.kind == OpKind::kAllGather) sent.all_gather += operation.wire_bytes;
  }
  return sent;
}

}  // namespace krigtune
