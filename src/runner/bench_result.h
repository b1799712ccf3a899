#pragma once
#include <optional>
#include <string>

#include "krigtune/core/json.h"
#include "krigtune/runner/outcome.h"
#include "process.h"
#include "race.h"

namespace krigtune {

/// What krigtune-bench left behind.
struct BenchEnd {
  ProcessResult process;
  std::optional<Json> document;        ///< empty: its stdout was no JSON object
  std::string last_lines;              ///< of its stderr
  std::string last_heartbeat;          ///< as krigtune-bench wrote it; empty: none
  std::optional<double> bound;         ///< ended early: the objective can be no better
  bool limit_is_the_sessions = false;  ///< krigtune-bench was given no memory limit but the session's
};

/// The document that stands alone on stdout, or nothing.
std::optional<Json> bench_document(const std::string& text);

/// Every number of the document by its name; those of nested objects as outer_inner. What it
/// merely repeats (the configuration, the seed, schema_version) is none.
std::map<std::string, double> bench_metrics(const Json& document);

/// The objective so far, from the numbers of a line of signs of life, which have the names of the result's. Empty where
/// it does not follow from them.
std::optional<Provisional> provisional_objective(const std::map<std::string, double>& metrics,
                                                 const std::string& metric_field);

/// `metric_field`: the result's field that is the objective.
Outcome bench_outcome(const BenchEnd& end, const std::string& metric_field);

}  // namespace krigtune
