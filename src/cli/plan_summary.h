#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "krigtune/core/json.h"
#include "krigtune/report/table.h"
#include "krigtune/tuner/memory_filter.h"

namespace krigtune {

/// The memory of the configurations of one ZeRO stage.
struct StageMemory {
  std::int64_t configurations = 0;
  std::int64_t fit = 0;
  std::int64_t smallest_peak_bytes = 0;
  std::int64_t largest_peak_bytes = 0;
  Configuration small;  ///< of the smallest micro-batch the one with the smallest peak
  MemoryReport small_report;
};

/// What is known of a session before anything runs.
struct PlanSummary {
  std::int64_t lattice = 0;
  std::vector<std::pair<std::string, std::int64_t>> excluded;  ///< points of the lattice by reason
  std::int64_t same_meaning = 0;  ///< points that differ from another configuration only in knobs without effect
  std::int64_t configurations = 0;
  std::int64_t too_large = 0;
  std::map<std::int64_t, StageMemory> stages;  ///< empty where memory is not known
  double trials_s = 0.0;                       ///< of the whole budget; 0: nothing runs (replay)
};

/// Calls `visit` for each configuration with its verdict on the way.
PlanSummary summarise_plan(
    const Session& session, const MemoryFilter& filter,
    const std::function<void(const Configuration&, const std::optional<MemoryVerdict>&)>& visit = {});

Table stage_table(const PlanSummary& plan);
/// Where the peak of each stage's `small` configuration comes from.
Table term_table(const PlanSummary& plan, Bytes usable);
Json to_json(const PlanSummary& plan, const Session& session);

}  // namespace krigtune
