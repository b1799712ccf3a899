#include "krigtune/plan/memory.h"

#include <fmt/format.h>

#include <cassert>

#include "krigtune/plan/op_traits.h"
#include "memory/lifetimes.h"

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

PlaceReport explain(const StepPlan& plan, const Lifetimes& lives, Place place, std::int64_t arena_bytes) {
  const LivePeak peak = live_peak(plan, lives, place);
  PlaceReport report;
  report.peak_bytes = arena_bytes;
  report.lower_bound_bytes = peak.bytes;
  report.fragmentation_bytes = arena_bytes - peak.bytes;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    if (peak.is_live[b]) report.term_bytes[static_cast<std::size_t>(plan.buffers[b].term)] += plan.buffers[b].bytes();
  }
  if (peak.at >= 0) report.peak_at = place_text(plan.operations[static_cast<std::size_t>(peak.at)], plan.micro_steps);
  return report;
}

}  // namespace

MemoryReport explain(const StepPlan& plan) {
  const Lifetimes lives = lifetimes(plan);
  MemoryReport report;
  static_cast<PlaceReport&>(report) = explain(plan, lives, Place::kDevice, plan.arena_bytes);
  report.host = explain(plan, lives, Place::kHost, plan.host_arena_bytes);
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
    if (is_collective(operation.kind) && operation.operands.front().range.elems == 1) continue;
    const bool reduces_all = operation.kind == OpKind::kAllReduce || operation.kind == OpKind::kAllReduceMax;
    if (reduces_all) sent.all_reduce += operation.wire_bytes;
    if (operation.kind == OpKind::kReduceScatter) sent.reduce_scatter += operation.wire_bytes;
    if (operation.kind == OpKind::kAllGather) sent.all_gather += operation.wire_bytes;
  }
  return sent;
}

}  // namespace krigtune
