// Google's "Trace Event Format": {"traceEvents": [...]}, events "X" (complete: ts, dur in microseconds), "C"
// (counters) and "M" (metadata: names of processes and threads). Loaded by chrome://tracing and ui.perfetto.dev.
#include "plan/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "plan/op_traits.h"

namespace krigtune::plan {
namespace {

constexpr double kMicro = 1e6;
constexpr std::array kStreamNames = {"compute", "gather", "reduce", "copy", "host"};
static_assert(kStreamNames.size() == schedule::kStreamCount);
constexpr std::array kPlaceNames = {"device", "host"};
static_assert(kPlaceNames.size() == schedule::kPlaceCount);

Json name_event(const char* what, std::size_t rank, std::size_t stream, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", rank}, {"tid", stream}, {"args", {{"name", name}}}};
}

std::string name_of(const Operation& operation, const StepPlan& plan) {
  std::string name = to_string(operation.kind);
  if (operation.layer >= 0) name += fmt::format(" block {}", operation.layer);
  if (plan.micro_steps > 1 && operation.phase != schedule::Phase::kOptimizer) {
    name += fmt::format(" micro-step {}", operation.micro_step);
  }
  return name;
}

Json arguments_of(const Operation& operation, std::size_t id) {
  Json arguments = {{"operation", id}};
  if (is_collective(operation.kind)) {
    arguments["group"] = operation.group == schedule::Group::kData ? "data" : "tensor";
    arguments["wire_bytes"] = operation.wire_bytes;
  } else {
    arguments["flops"] = operation.flops;
  }
  arguments["bytes_read"] = operation.bytes_read;
  arguments["bytes_written"] = operation.bytes_written;
  return arguments;
}

class Events {
 public:
  Events(const StepPlan& plan, double origin_s) : plan_(plan), origin_s_(origin_s) {}

  void add(std::size_t rank, std::size_t id, const OperationTime& time) {
    const Operation& operation = plan_.operations[id];
    const std::string name = name_of(operation, plan_);
    if (time.start_s > time.queued_s) add(rank, operation, "wait to " + name, "wait", time.queued_s, time.start_s);
    if (time.ready_s > time.start_s) {
      add(rank, operation, "other ranks before " + name, "wait", time.start_s, time.ready_s);
    }
    add(rank, operation, name, schedule::to_string(operation.phase), time.ready_s, time.end_s);
    events_.back()["args"] = arguments_of(operation, id);
  }
  void add_names(std::size_t rank) {
    events_.push_back(name_event("process_name", rank, 0, fmt::format("rank {}", rank)));
    for (std::size_t stream = 0; stream < kStreamNames.size(); ++stream) {
      events_.push_back(name_event("thread_name", rank, stream, kStreamNames[stream]));
    }
  }
  void add_memory(const MemoryPoint& point) {
    Json bytes;
    for (std::size_t place = 0; place < kPlaceNames.size(); ++place) bytes[kPlaceNames[place]] = point.bytes[place];
    events_.push_back({{"name", "memory (bytes)"},
                       {"ph", "C"},
                       {"pid", 0},
                       {"ts", (point.at_s - origin_s_) * kMicro},
                       {"args", std::move(bytes)}});
  }
  Json take() { return std::move(events_); }

 private:
  void add(std::size_t rank, const Operation& operation, const std::string& name, const char* category, double from_s,
           double to_s) {
    events_.push_back({{"name", name},
                       {"cat", category},
                       {"ph", "X"},
                       {"pid", rank},
                       {"tid", static_cast<std::size_t>(operation.stream)},
                       {"ts", (from_s - origin_s_) * kMicro},
                       {"dur", (to_s - from_s) * kMicro}});
  }

  const StepPlan& plan_;
  double origin_s_;
  Json events_ = Json::array();
};

double first_s(const TracedStep& traced) {
  double first = std::numeric_limits<double>::infinity();
  for (const auto& times : traced.ranks) {
    for (const OperationTime& time : times) first = std::min(first, time.queued_s);
  }
  return first;
}

}  // namespace

std::string trace_json(const StepPlan& plan, const TracedStep& traced) {
  Events events(plan, first_s(traced));
  for (std::size_t rank = 0; rank < traced.ranks.size(); ++rank) {
    events.add_names(rank);
    for (std::size_t id = 0; id < traced.ranks[rank].size(); ++id) events.add(rank, id, traced.ranks[rank][id]);
  }
  for (const MemoryPoint& point : traced.memory) events.add_memory(point);
  const Json document = {{"traceEvents", events.take()},
                         {"displayTimeUnit", "ms"},
                         {"otherData", {{"program", traced.program}, {"step", traced.step}}}};
  return document.dump() + "\n";
}

std::string trace_json(const std::vector<TracedProcess>& processes, const std::vector<TracedSpan>& spans,
                       const std::string& program) {
  Json events = Json::array();
  for (std::size_t process = 0; process < processes.size(); ++process) {
    events.push_back(name_event("process_name", process, 0, processes[process].name));
    for (std::size_t thread = 0; thread < processes[process].threads.size(); ++thread) {
      events.push_back(name_event("thread_name", process, thread, processes[process].threads[thread]));
    }
  }
  for (const TracedSpan& span : spans) {
    events.push_back({{"name", span.name},
                      {"cat", span.category},
                      {"ph", "X"},
                      {"pid", span.process},
                      {"tid", span.thread},
                      {"ts", span.from_s * kMicro},
                      {"dur", (span.to_s - span.from_s) * kMicro}});
  }
  const Json document = {
      {"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}, {"otherData", {{"program", program}}}};
  return document.dump() + "\n";
}

void check_trace_file(const std::filesystem::path& path) {
  std::error_code unknown;
  const bool is_new = !std::filesystem::exists(path, unknown);
  if (!std::ofstream(path, std::ios::app)) {
    throw UserError(fmt::format("cannot write the trace '{}'", path.string()), "name a file in a folder that exists");
  }
  if (is_new) std::filesystem::remove(path, unknown);
}

void write_trace(const std::filesystem::path& path, const StepPlan& plan, const TracedStep& traced) {
  write_atomically(path, trace_json(plan, traced));
}

}  // namespace krigtune::plan
