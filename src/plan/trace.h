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

/// One step as it was executed or predicted: the times of its operations, rank by rank.
struct TracedStep {
  std::int64_t step = 0;
  std::vector<std::vector<OperationTime>> ranks;
  std::string program = "krigtune-bench";  ///< who executed it
  std::vector<MemoryPoint> memory{};       ///< of the first rank, in order of time; empty: not known
};

/// The step in Chrome's trace event format (JSON object form), which chrome://tracing and Perfetto show: a process a
/// rank, a thread a stream, complete events with microseconds from the first operation on, counters of memory.
/// Collectives that waited for other ranks, and streams that waited for others, have events of their own.
std::string trace_json(const StepPlan& plan, const TracedStep& traced);

/// Something that goes on from one moment to another, where there is no plan whose operations could be shown.
struct TracedSpan {
  std::size_t process = 0;
  std::size_t thread = 0;
  std::string name;
  const char* category = "";
  double from_s = 0.0;
  double to_s = 0.0;
};
/// Who does it: named rows, each with named rows of its own.
struct TracedProcess {
  std::string name;
  std::vector<std::string> threads;
};
/// The same format for such spans, which count from 0.
std::string trace_json(const std::vector<TracedProcess>& processes, const std::vector<TracedSpan>& spans,
                       const std::string& program);

/// Before anything is run: throws UserError when the file cannot be opened for writing. Leaves no file that was not
/// there.
void check_trace_file(const std::filesystem::path& path);
/// Throws EnvironmentError when the file cannot be written.
void write_trace(const std::filesystem::path& path, const StepPlan& plan, const TracedStep& traced);

}  // namespace krigtune::plan
