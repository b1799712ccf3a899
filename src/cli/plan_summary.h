#pragma once
#include <functional>
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
  std::optional<std::int64_t> configurations;  ///< empty: a space with continuous parameters cannot be counted
  std::int64_t looked_at = 0;  ///< so many were looked at: all, or a random sample of a space too large to list
  std::int64_t too_large = 0;  ///< of those
  std::map<std::int64_t, StageMemory> stages;  ///< empty where memory is not known
  std::int64_t trials = 0;                     ///< at most so many will be run
  double trials_s = 0.0;                       ///< of them all; 0: not known (only the runner bench says)

  bool is_sample() const { return configurations != looked_at; }
};

using ConfigurationVisit = std::function<void(const Configuration&, const std::optional<MemoryVerdict>&)>;

/// Calls `visit` for each configuration that it looks at, with its verdict, on the way. Who visits wants a larger list,
/// and waits for it.
PlanSummary summarise_plan(const Session& session, const MemoryFilter& filter, const ConfigurationVisit& visit = {});

Table stage_table(const PlanSummary& plan);
/// Where the peak of each stage's `small` configuration comes from.
Table term_table(const PlanSummary& plan, Bytes usable);
Json to_json(const PlanSummary& plan, const Session& session);

}  // namespace krigtune
