// Reads Google's "Trace Event Format": an object with "traceEvents", or just the array. Profilers write hundreds of
// megabytes, so the text is parsed as a stream: only events that take time are kept, and of each only what TraceEvent
// has.
#include "diagnose/trace_file.h"

#include <fmt/format.h>

#include <istream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "diagnose/unpacked.h"

namespace krigtune::diagnose {
namespace {

/// Receives the file value by value.
class EventReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t value) override { return take(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return take(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return take(value); }
  bool binary(binary_t& /*value*/) override { return true; }

  bool string(string_t& value) override {
    if (depth_ == 2 && outer_key_ == "otherData" && key_ == "program") trace_.program = value;
    if (in_arguments()) take_argument(value);
    if (!in_event()) return true;
    if (key_ == "ph") is_complete_ = value == "X";
    if (key_ == "name") event_.name = value;
    if (key_ == "cat") event_.category = value;
    if (key_ == "pid") process_ = value;
    if (key_ == "tid") event_.thread_name = value;
    return true;
  }

  bool start_object(std::size_t /*elements*/) override {
    ++depth_;
    if (depth_ == 2) outer_key_ = key_;
    if (in_event()) {
      event_ = {};
      process_.clear();
      is_complete_ = false;
    }
    return true;
  }
  bool end_object() override {
    if (in_event() && is_complete_ && event_.duration_us >= 0.0) keep();
    --depth_;
    return true;
  }
  bool start_array(std::size_t /*elements*/) override {
    ++depth_;
    if (events_depth_ == 0 && (depth_ == 1 || (depth_ == 2 && key_ == "traceEvents"))) events_depth_ = depth_;
    return true;
  }
  bool end_array() override {
    if (depth_ == events_depth_) events_depth_ = kOver;
    --depth_;
    return true;
  }
  bool key(string_t& name) override {
    key_ = name;
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    failed_at_ = position;
    return false;
  }

  std::size_t failed_at() const { return failed_at_; }
  bool found_events() const { return events_depth_ != 0; }
  TraceFile take_trace() { return std::move(trace_); }

 private:
  static constexpr int kOver = -1;

  bool in_event() const { return events_depth_ > 0 && depth_ == events_depth_ + 1; }

  bool in_arguments() const { return events_depth_ > 0 && depth_ == events_depth_ + 2; }

  // The names are those of torch/csrc/distributed/c10d/ParamCommsUtils.hpp. The name of a group is a number; from
  // PyTorch 2.5 on it also has a description.
  void take_argument(const std::string& value) {
    if (key_ == "Collective name") event_.collective = value;
    if (key_ == "Process Group Description" && !value.empty() && value != "undefined") event_.group = value;
    if (key_ == "Process Group Name" && event_.group.empty()) event_.group = "group " + value;
  }

  bool take(double value) {
    if (in_arguments() && key_ == "Group size") event_.group_size = static_cast<int>(value);
    if (!in_event()) return true;
    if (key_ == "ts") event_.start_us = value;
    if (key_ == "dur") event_.duration_us = value;
    if (key_ == "pid") process_ = fmt::format("{:.0f}", value);
    if (key_ == "tid") event_.thread_name = fmt::format("{:.0f}", value);
    return true;
  }

  void keep() {
    const auto number = [](auto& known, const auto& name) {
      return known.emplace(name, static_cast<std::int64_t>(known.size())).first->second;
    };
    event_.process = number(processes_, process_);
    event_.thread = number(threads_, std::pair(process_, event_.thread_name));
    trace_.events.push_back(std::move(event_));
  }

  TraceFile trace_;
  TraceEvent event_;
  std::string process_;
  bool is_complete_ = false;
  std::string key_;
  std::string outer_key_;
  int depth_ = 0;
  int events_depth_ = 0;  // depth of the array of events: 0 before it, kOver behind it
  std::size_t failed_at_ = 0;
  std::map<std::string, std::int64_t> processes_;
  std::map<std::pair<std::string, std::string>, std::int64_t> threads_;
};

}  // namespace

TraceFile read_trace(const std::filesystem::path& path) {
  const std::string name = path.string();
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw UserError(fmt::format("'{}' is not a file", name), "name a trace that a profiler wrote");
  }
  const std::unique_ptr<UnpackedBytes> bytes = open_unpacked(path);
  std::istream stream(bytes.get());
  EventReader reader;
  const bool whole = nlohmann::json::sax_parse(stream, &reader);
  const char* const hint = "let the profiler write it again, and let the program end by itself";
  if (const std::string trouble = bytes->trouble(); !trouble.empty()) {
    throw UserError(fmt::format("{}: {}", name, trouble), hint);
  }
  if (!whole) {
    const bool at_end = stream.eof() || bytes->in_avail() <= 0;
    throw UserError(
        fmt::format("{}: {} byte {}", name, at_end ? "the trace ends in the middle, at" : "it is not JSON from",
                    reader.failed_at()),
        reader.found_events() ? hint : "a trace is a JSON file with \"traceEvents\"");
  }
  if (!reader.found_events()) {
    throw UserError(fmt::format("{}: it has no \"traceEvents\"", name),
                    "a trace is what torch.profiler's export_chrome_trace or krigtune-bench --trace writes");
  }
  TraceFile trace = reader.take_trace();
  if (trace.events.empty()) {
    throw UserError(fmt::format("{}: it has no event with a duration (\"ph\": \"X\")", name),
                    "profile at least one whole step");
  }
  return trace;
}

}  // namespace krigtune::diagnose
