// A command trial: the user's program in a process of its own, everything it was given and said kept in the trial's
// directory.
#include "runner/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstring>
#include <sstream>

#include "core/block.h"
#include "core/json.h"
#include "core/text.h"
#include "trial/failure_text.h"
#include "trial/outcome.h"
#include "trial/program.h"
#include "trial/trial_files.h"

namespace krigtune::runner {
namespace {

constexpr std::size_t kCommandTailBytes = 1 << 20;  // of stdout and of stderr, searched for what went wrong
constexpr std::size_t kLargestResult = 1 << 20;

std::string trial_number(const std::filesystem::path& dir) {
  const std::string name = dir.filename().string();
  const std::size_t end = std::min(name.find_first_not_of("0123456789"), name.size());
  const std::size_t begin = std::min(name.find_first_not_of('0'), end);
  return begin == end ? "0" : name.substr(begin, end - begin);
}

// Programs write anything there, or a pipe, or a link to a device.
void read_result(const std::filesystem::path& file, CommandEnd& end) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    end.result_error = "it wrote no result: " + file.string() + " is not there";
  } else if (!std::filesystem::is_regular_file(file, error) || ::access(file.c_str(), R_OK) != 0) {
    end.result_error = "its result is no file that can be read: " + file.string();
  } else if (std::filesystem::file_size(file, error) > kLargestResult) {
    end.result_error = "its result is larger than 1 MiB: " + file.string();
  } else {
    end.result = trial::read_tail(file, kLargestResult);
  }
}

class CommandRunner final : public trial::Runner {
 public:
  CommandRunner(CommandJob job, const Clock& clock) : job_(std::move(job)), clock_(clock) {
    const std::string& name = job_.spec.argv.front();
    const bool is_plain = trial::unknown_placeholders(name).empty() && trial::fill_in(name, {}) == name;
    if (is_plain) trial::refuse_missing_program(name, job_.spec.working_directory, job_.spec.environment);
    for (const std::string& pattern : job_.spec.oom_patterns) patterns_.push_back(trial::compile_pattern(pattern));
  }

  trial::Outcome run(const space::Configuration& configuration, const std::filesystem::path& trial_dir,
                     const std::optional<trial::Rival>& rival) override {
    const trial::TrialFiles files(trial_dir);
    trial::ProcessSpec spec = prepare(configuration, files);
    const std::optional<std::int64_t> kills_before = trial::oom_kills_now();
    CommandEnd end;
    trial::ProgressLines progress(progress_file(files));
    if (rival && rival->metric == job_.metric) {
      spec.enough = [&] {
        const auto line = progress.next(job_.metric);
        if (line) end.bound = bound_by(*line, *rival);
        return end.bound.has_value();
      };
    }
    end.process = trial::run_process(spec, clock_);
    trial::write_exit(files, end.process);
    const std::optional<std::int64_t> kills_after = trial::oom_kills_now();
    if (kills_before && kills_after) end.oom_kills = *kills_after - *kills_before;
    end.standard_output = trial::read_tail(spec.stdout_file, kCommandTailBytes);
    end.standard_error = trial::read_tail(spec.stderr_file, kCommandTailBytes);
    read_result(files.result(), end);
    return command_outcome(end, job_, patterns_);
  }

 private:
  // Programs that say how they are doing may be ended early.
  static std::filesystem::path progress_file(const trial::TrialFiles& files) {
    return files.result().string() + ".progress";
  }

  std::optional<double> bound_by(const std::map<std::string, double>& line, const trial::Rival& rival) const {
    const auto sem = line.find("value_sem");
    const auto steps = line.find("steps");
    if (sem == line.end() || steps == line.end()) return std::nullopt;
    return trial::bound_of_a_loser({line.at(job_.metric), sem->second, static_cast<std::int64_t>(steps->second)},
                                   rival);
  }

  trial::ProcessSpec prepare(const space::Configuration& configuration, const trial::TrialFiles& files) const {
    std::error_code ignored;
    std::filesystem::remove_all(files.result(), ignored);  // of an earlier run of the same trial
    std::filesystem::remove_all(progress_file(files), ignored);
    const trial::Placeholders values = {{"config", files.config().string()},
                                        {"result", files.result().string()},
                                        {"dir", files.dir.string()},
                                        {"trial", trial_number(files.dir)}};
    trial::ProcessSpec spec;
    for (const std::string& word : job_.spec.argv) spec.argv.push_back(trial::fill_in(word, values));
    spec.timeout_s = job_.spec.timeout_s;
    spec.grace_s = job_.spec.grace_s;
    spec.stop = job_.stop;
    spec.working_directory = job_.spec.working_directory;
    spec.environment = job_.spec.environment;
    spec.no_progress_s = job_.spec.no_progress_s;
    spec.progress_files = {files.result(), progress_file(files)};
    trial::write_inputs(files, space::to_json(configuration), spec);
    return spec;
  }

  CommandJob job_;
  const Clock& clock_;
  std::vector<std::regex> patterns_;
};

}  // namespace

namespace {

// libstdc++ compiles by recursion: a pattern of this length is no danger to the stack.
constexpr std::size_t kLongestPattern = 500;

std::string indexed(const std::string& key, std::size_t index) { return fmt::format("{}/{}", key, index); }

void refuse_unknown_placeholders(const JsonObject& block, const CommandSpec& spec) {
  for (std::size_t i = 0; i < spec.argv.size(); ++i) {
    const std::vector<std::string> unknown = trial::unknown_placeholders(spec.argv[i]);
    if (unknown.empty()) continue;
    block.fail(indexed("argv", i), fmt::format("'{{{}}}' is no placeholder", unknown.front()),
               suggestion(unknown.front(), trial::known_placeholders()) + " A brace of its own is written '{{'");
  }
}

constexpr int kLargestExitCode = 255;

void read_exit_codes(JsonObject& block, CommandSpec& spec) {
  const Json* codes = block.find("oom_exit_codes");
  if (codes == nullptr) return;
  const auto is_code = [](const Json& code) {
    return code.is_number_integer() && code.get<double>() >= 1 && code.get<double>() <= kLargestExitCode;
  };
  if (!codes->is_array() || !std::all_of(codes->begin(), codes->end(), is_code)) {
    block.fail("oom_exit_codes", "a list of exit codes was expected", "write [3], each from 1 to 255");
  }
  for (const Json& code : *codes) spec.oom_exit_codes.push_back(code.get<int>());
}

void read_patterns(JsonObject& block, CommandSpec& spec) {
  spec.oom_patterns = block.texts("oom_patterns");
  for (std::size_t i = 0; i < spec.oom_patterns.size(); ++i) {
    const std::string& pattern = spec.oom_patterns[i];
    const std::string key = indexed("oom_patterns", i);
    if (pattern.size() > kLongestPattern) block.fail(key, "is too long", "give 500 characters at most");
    if (pattern.empty()) block.fail(key, "is empty and would match every line", "remove it");
    try {
      trial::compile_pattern(pattern);
    } catch (const std::regex_error&) {
      block.fail(key, fmt::format("'{}' is no regular expression", pattern),
                 "write one as in JavaScript, without back-references");
    }
  }
}

Block<CommandSpec> command_block(const std::filesystem::path& base_dir) {
  Block<CommandSpec> block("A program of yours, one process a trial");
  block
      .key("argv", &CommandSpec::argv, trial::command_words(R"(["python", "run.py", "{config}", "{result}"])"),
           "program and arguments with {config}, {result}, {dir}, {trial}; no shell")
      .required();
  trial::add_surroundings(block, base_dir);
  block.key("timeout_s", &CommandSpec::timeout_s, trial::time_limit(), "seconds after which a trial is ended");
  block.key("grace_s", &CommandSpec::grace_s, trial::grace(), "seconds between SIGTERM and SIGKILL");
  block.key("no_progress_s", &CommandSpec::no_progress_s, trial::time_limit(),
            "seconds without output after which it counts as hung (default: never)");
  block.custom("oom_exit_codes", schema::list(from_to(1, kLargestExitCode).applied_to(schema::integer())),
               "exit codes that mean out of memory", read_exit_codes,
               [](const CommandSpec& spec) { return Json(spec.oom_exit_codes); });
  block.custom("oom_patterns", schema::list(schema::not_empty(schema::text())),
               "regular expressions (ECMAScript) in its output that mean out of memory", read_patterns,
               [](const CommandSpec& spec) { return Json(spec.oom_patterns); });
  block.check([](JsonObject& object, const CommandSpec& spec) { refuse_unknown_placeholders(object, spec); });
  return block;
}

}  // namespace

trial::RunnerEntry<CommandSpec> CommandSpec::entry() {
  return {{.name = "command",
           .runs_programs = true,
           .after_bad_result = R"(the program must write {{"{}": NUMBER}} to the file that it is given as {{result}})"},
          command_block,
          [](const CommandSpec& spec, const trial::RunnerJob& job) {
            return make_command_runner({spec, job.field, job.stop}, job.clock);
          }};
}

std::unique_ptr<trial::Runner> make_command_runner(CommandJob job, const Clock& clock) {
  return std::make_unique<CommandRunner>(std::move(job), clock);
}

// The result file of a command trial. It comes from anybody's program: whatever is wrong with it is an outcome.
namespace {

// With sorted keys: in a file of a million bytes, nlohmann's ordered objects search for each key among all before it.
using Result = nlohmann::json;

constexpr int kDeepest = 16;
constexpr std::size_t kMostMetrics = 1000;  // each becomes a column of trials.csv

// What the result says of itself: no columns.
constexpr std::array kReserved = {"status", "reason", "value_sem", "peak_memory_bytes"};

trial::Failed bad(const std::string& what) { return {trial::FailureReason::kBadResult, 0, "the result " + what}; }

// The library's message without its "[json.exception...] " prefix.
std::string parse_error(const std::string& text, const nlohmann::json::exception& error) {
  const std::string message = error.what();
  const std::size_t begin = message.find("] ");
  std::string what = "is no JSON: " + (begin == std::string::npos ? message : message.substr(begin + 2));
  if (text.find("NaN") != std::string::npos || text.find("Infinity") != std::string::npos) {
    what += "; JSON has no NaN and no Infinity, write null";
  }
  return what;
}

bool flatten_result(const Result& object, const std::string& prefix, int depth,
                    std::map<std::string, double>& metrics) {
  if (depth > kDeepest) return false;
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix.empty() ? key : prefix + "_" + key;
    if (prefix.empty() && is_one_of(key, kReserved)) continue;
    if (value.is_object() && !flatten_result(value, name, depth + 1, metrics)) return false;
    if (value.is_number()) metrics[name] = value.get<double>();
  }
  return true;
}

// A number of 0 or more, absent, or a complaint.
std::optional<double> not_negative(const Result& result, const char* name, std::string& complaint) {
  const auto found = result.find(name);
  if (found == result.end() || found->is_null()) return std::nullopt;
  if (!found->is_number() || !(found->get<double>() >= 0.0)) {
    complaint = fmt::format("has {} as '{}', where a number of 0 or more was expected", found->dump(), name);
    return std::nullopt;
  }
  return found->get<double>();
}

std::string objective_complaint(const Result& result, const std::map<std::string, double>& metrics,
                                const std::string& metric) {
  const auto found = metrics.find(metric);
  if (found != metrics.end()) {
    if (found->second > 0.0 || trial::find_metric(metric) == nullptr) return "";
    return fmt::format("has {} as '{}', which must be above 0", found->second, metric);
  }
  const auto there = result.find(metric);
  if (there != result.end()) {
    constexpr std::size_t kShown = 60;
    const std::string dump = there->dump(-1, ' ', false, Result::error_handler_t::replace).substr(0, kShown);
    return fmt::format("has {} as '{}', where a number was expected", dump, metric);
  }
  std::vector<std::string> names;
  for (const auto& [name, value] : metrics) names.push_back(name);
  const std::string near = nearest_name(metric, names);
  return fmt::format("has no number '{}'{}", metric, near.empty() ? "" : fmt::format(" (but '{}')", near));
}

trial::Outcome read_measured(const Result& result, const std::string& metric) {
  std::string complaint;
  trial::Measured measured;
  if (!flatten_result(result, "", 0, measured.metrics)) return bad("is nested too deeply");
  if (measured.metrics.size() > kMostMetrics) {
    return bad(fmt::format("has {} numbers; at most {} become columns", measured.metrics.size(), kMostMetrics));
  }
  measured.value_sem = not_negative(result, "value_sem", complaint).value_or(0.0);
  if (const auto bytes = not_negative(result, "peak_memory_bytes", complaint)) {
    constexpr double kMost = 1e18;
    if (*bytes > kMost) return bad(fmt::format("has {} as 'peak_memory_bytes'", *bytes));
    measured.peak_memory = Bytes{std::llround(*bytes)};
    if (metric == "peak_memory_bytes") measured.metrics[metric] = *bytes;
  }
  if (complaint.empty()) complaint = objective_complaint(result, measured.metrics, metric);
  if (!complaint.empty()) return bad(complaint);
  return measured;
}

// A program does not know what an interrupted trial means to us: it would be asked again for ever.
trial::Failed read_failed(const std::string& reason) {
  const trial::FailureReason word = trial::failure_reason_from(reason);
  const bool ours = reason == trial::to_string(word) && word != trial::FailureReason::kInterrupted;
  return {ours ? word : trial::FailureReason::kCrash, 0, ours ? "" : reason};
}

}  // namespace

CommandResult interpret_result(const std::string& text, const std::string& metric) {
  Result result;
  try {
    result = Result::parse(text);
  } catch (const nlohmann::json::exception& error) {
    const bool blank = text.find_first_not_of(" \t\r\n") == std::string::npos;
    return {bad(blank ? "is empty" : parse_error(text, error)), false};
  }
  if (!result.is_object()) return {bad("is no JSON object"), false};
  for (const char* key : {"status", "reason"}) {
    if (result.contains(key) && !result[key].is_string() && !result[key].is_null()) {
      return {bad(fmt::format("has a '{}' that is no text", key)), false};
    }
  }
  const auto word = [&](const char* key) {
    return result.contains(key) && result[key].is_string() ? result[key].get<std::string>() : std::string();
  };
  const std::string status = result.contains("status") && result["status"].is_string() ? word("status") : "ok";
  if (status == "ok") return {read_measured(result, metric), false};
  if (status == "oom") return {trial::OutOfMemory{}, true};
  if (status == "failed") return {read_failed(word("reason")), true};
  return {bad(fmt::format("has the status '{}'; known: ok, oom, failed", status)), false};
}

trial::Outcome read_command_result(const std::string& text, const std::string& metric) {
  return interpret_result(text, metric).outcome;
}

namespace {

class Ending {
 public:
  Ending(const CommandEnd& end, const CommandJob& job, const std::vector<std::regex>& patterns)
      : end_(end), process_(end.process), job_(job), patterns_(patterns) {}

  trial::Outcome outcome() const {
    if (!process_.start_error.empty()) {
      return failed(trial::FailureReason::kEnvironment,
                    fmt::format("'{}' does not start: {}", job_.spec.argv.front(), process_.start_error));
    }
    if (process_.stopped) return failed(trial::FailureReason::kInterrupted, "");
    const CommandResult result = read_result();
    if (result.names_failure) return named(result.outcome);
    if (process_.cut_short && end_.bound && process_.exit_code != 0) return trial::Bounded{*end_.bound};
    if (process_.hung || process_.timed_out) {
      if (const auto complaint = memory_complaint()) return trial::OutOfMemory{complaint->requested, false};
      const char* why =
          process_.hung ? "ended after {:.1f} s, because its output no longer grew" : "ended after {:.1f} s";
      return failed(process_.hung ? trial::FailureReason::kHang : trial::FailureReason::kTimeout,
                    fmt::format(fmt::runtime(why), process_.wall_s));
    }
    if (process_.exit_code == 0 && std::holds_alternative<trial::Measured>(result.outcome))
      return measured(result.outcome);
    if (const std::optional<trial::OutOfMemory> oom = out_of_memory()) return *oom;
    if (process_.exit_code == 0) {
      return failed(trial::FailureReason::kBadResult, std::get<trial::Failed>(result.outcome).last_lines);
    }
    return failed(trial::FailureReason::kCrash, how_it_ended());
  }

 private:
  CommandResult read_result() const {
    if (end_.result) return interpret_result(*end_.result, job_.metric);
    return {trial::Failed{trial::FailureReason::kBadResult, 0, end_.result_error}, false};
  }

  trial::Failed failed(trial::FailureReason reason, const std::string& what) const {
    const std::string said = trial::failure_text(end_.standard_output, end_.standard_error);
    return {reason, process_.exit_code, what + (what.empty() || said.empty() ? "" : "\n") + said};
  }

  // What the program itself calls a failure.
  trial::Outcome named(const trial::Outcome& outcome) const {
    if (const auto* failure = std::get_if<trial::Failed>(&outcome)) return failed(failure->reason, failure->last_lines);
    const auto complaint = memory_complaint();
    return trial::OutOfMemory{complaint ? complaint->requested : std::nullopt, false};
  }

  trial::Outcome measured(const trial::Outcome& outcome) const {
    trial::Measured with_rss = std::get<trial::Measured>(outcome);
    with_rss.metrics.emplace("peak_rss_bytes", static_cast<double>(process_.peak_rss_bytes));
    return with_rss;
  }

  std::optional<trial::MemoryComplaint> memory_complaint() const {
    auto complaint = trial::find_memory_complaint(end_.standard_error, patterns_);
    if (!complaint) complaint = trial::find_memory_complaint(end_.standard_output, patterns_);
    return complaint;
  }

  bool was_killed() const {
    constexpr int kShellKilled = 128 + SIGKILL;
    constexpr int kDeepSpeedKilled = 256 - SIGKILL;
    return process_.exit_code == kShellKilled || process_.exit_code == kDeepSpeedKilled;
  }

  std::optional<trial::OutOfMemory> out_of_memory() const {
    const auto& codes = job_.spec.oom_exit_codes;
    const bool by_code = std::find(codes.begin(), codes.end(), process_.exit_code) != codes.end();
    const bool by_killer = was_killed() && end_.oom_kills.value_or(1) > 0;
    const auto complaint = memory_complaint();
    if (complaint) return trial::OutOfMemory{complaint->requested, false};
    if (by_code || by_killer) return trial::OutOfMemory{};
    return std::nullopt;
  }

  std::string how_it_ended() const {
    if (was_killed()) {
      return fmt::format("exit code {}: killed (SIGKILL), neither by krigtune nor by the kernel's OOM killer",
                         process_.exit_code);
    }
    if (process_.signal != 0) {
      return fmt::format("ended by signal {} ({})", process_.signal, ::strsignal(process_.signal));
    }
    return fmt::format("exit code {}", process_.exit_code);
  }

  const CommandEnd& end_;
  const trial::ProcessResult& process_;
  const CommandJob& job_;
  const std::vector<std::regex>& patterns_;
};

}  // namespace

trial::Outcome command_outcome(const CommandEnd& end, const CommandJob& job, const std::vector<std::regex>& patterns) {
  return Ending(end, job, patterns).outcome();
}

}  // namespace krigtune::runner
