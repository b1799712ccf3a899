#pragma once
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "plan/step_breakdown.h"

namespace krigtune::plan {

/// Bytes in use from a moment on, by Place.
struct MemoryPoint {
  double at_s = 0.0;
  std::array<std::int64_t, schedule::kPlaceCount> bytes{};
};

/// One step that was executed or predicted: the times of its operations on each rank.
struct TracedStep {
  std::int64_t step = 0;
  std::vector<std::vector<OperationTime>> ranks;
  std::string program = "krigtune-bench";  ///< the program that executed it
  std::vector<MemoryPoint> memory{};       ///< of the first rank, in order of time; empty: unknown
};

/// Returns the step in Chrome's trace event format (JSON object form), for chrome://tracing and Perfetto: one process
/// for each rank, one thread for each stream, complete events in microseconds from the first operation on, and counters
/// of memory. Collectives that waited for other ranks, and streams that waited for others, have their own events.
std::string trace_json(const StepPlan& plan, const TracedStep& traced);

/// An activity from one moment to another, for traces without a plan.
struct TracedSpan {
  std::size_t process = 0;
  std::size_t thread = 0;
  std::string name;
  const char* category = "";
  double from_s = 0.0;
  double to_s = 0.0;
};
/// A named row of the trace, with named rows inside.
struct TracedProcess {
  std::string name;
  std::vector<std::string> threads;
};
/// Returns such spans in the same format; their process and thread indices start at 0.
std::string trace_json(const std::vector<TracedProcess>& processes, const std::vector<TracedSpan>& spans,
                       const std::string& program);

/// Call before anything runs: throws UserError if the file cannot be opened for writing. Does not leave a new file
/// behind.
void check_trace_file(const std::filesystem::path& path);
/// Throws EnvironmentError if the file cannot be written.
void write_trace(const std::filesystem::path& path, const StepPlan& plan, const TracedStep& traced);

}  // namespace krigtune::plan
