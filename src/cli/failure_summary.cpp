#include "failure_summary.h"

#include <fmt/format.h>

#include "krigtune/core/files.h"
#include "krigtune/core/json.h"
#include "krigtune/core/text.h"
#include "krigtune/space/parameter_names.h"
#include "session_state.h"

namespace krigtune {
namespace {

constexpr int kLastLines = 12;

const Trial* first_failed(const History& history) {
  for (const Trial& trial : history) {
    if (trial.outcome && counts(trial) && !std::holds_alternative<Measured>(*trial.outcome)) return &trial;
  }
  return nullptr;
}

bool has_text(const std::filesystem::path& file) {
  std::error_code error;
  return std::filesystem::file_size(file, error) > 0 && !error;
}

// Where the trial's program said something: what went to stderr first. Empty: it left no log.
std::filesystem::path log_of(const RunView& run, const Trial& trial) {
  const std::filesystem::path directory = run.directory / "trials" / trial_folder(trial);
  for (const char* name : {"stderr.log", "stdout.log"}) {
    if (has_text(directory / name)) return directory / name;
  }
  return {};
}

std::string last_lines(const std::string& text) {
  std::size_t begin = text.find_last_not_of('\n');
  if (begin == std::string::npos) return "";
  const std::size_t end = begin + 1;
  for (int lines = 0; lines < kLastLines; ++lines) {
    begin = begin == 0 ? std::string::npos : text.rfind('\n', begin - 1);
    if (begin == std::string::npos) return text.substr(0, end);
  }
  return text.substr(begin + 1, end - begin - 1);
}

// What the runner of DeepSpeed jobs made of it; an outcome without text has it only there.
std::string sentence_of(const RunView& run, const Trial& trial) {
  const std::filesystem::path file = run.directory / "trials" / trial_folder(trial) / "result.json";
  if (!is<DeepSpeedSpec>(run.session.runner) || !has_text(file)) return "";
  const Json result = Json::parse(read_text(file), nullptr, false);
  const bool there = result.is_object() && result.contains("sentence") && result["sentence"].is_string();
  return there ? result["sentence"].get<std::string>() : "";
}

void show_first_failure(const RunView& run, Log& log) {
  const Trial* trial = first_failed(run.history);
  if (trial == nullptr) return;
  const std::filesystem::path file = log_of(run, *trial);
  const auto* failed = std::get_if<Failed>(&*trial->outcome);
  std::string said = failed != nullptr ? last_lines(failed->last_lines) : "";
  if (said.empty()) said = sentence_of(run, *trial);
  if (said.empty() && !file.empty()) said = last_lines(read_text(file));
  if (said.empty()) return;
  log.progress(fmt::format("the first that failed, trial {}{}, said:\n{}", trial->number,
                           file.empty() ? "" : fmt::format(" ({})", file.string()), said));
}

// What of the space makes a trial need less memory, in the session's own words.
std::string less_memory(const Session& session) {
  std::vector<std::string> ways;
  for (const Parameter& parameter : session.space.parameters()) {
    if (parameter.name == kMicroBatch) ways.emplace_back("a lower micro_batch");
    if (parameter.name == kZeroStage) ways.emplace_back("a higher zero_stage");
  }
  if (ways.empty()) ways.emplace_back("configurations that need less memory");
  if (session.workload && session.space.find(kOffloadOptimizer) == nullptr) ways.emplace_back(kOffloadOptimizer);
  return "let the space hold " + join(ways, ", ");
}

std::string after_timeout(const Session& session) {
  return fmt::format("raise /runner/timeout_s of the session (now {} s), or let a trial do fewer steps",
                     number_text(timeout_s(session.runner)));
}

std::string after_crash(const RunView& run, const Trial& trial) {
  const std::filesystem::path command = run.directory / "trials" / trial_folder(trial) / "cmd.txt";
  return has_text(command) ? fmt::format("run the command in {} by hand", command.string())
                           : "run one of the configurations by hand";
}

std::string after_bad_result(const Session& session) {
  return fmt::format(fmt::runtime(traits_of(session.runner).after_bad_result), session.objective.field);
}

std::string after_failure(const RunView& run, const Trial& trial, FailureReason reason) {
  switch (reason) {
    case FailureReason::kTimeout:
      return after_timeout(run.session);
    case FailureReason::kHang:
      return "look for a deadlock, or raise /runner/no_progress_s of the session";
    case FailureReason::kCrash:
      return after_crash(run, trial);
    case FailureReason::kInvalid:
      return "leave out of the space what the program refuses: narrower ranges, or a constraint";
    case FailureReason::kBadResult:
      return after_bad_result(run.session);
    case FailureReason::kEnvironment:
      return "see krigtune doctor";
    case FailureReason::kInterrupted:
      break;
  }
  return "";
}

// What to do about trials that ended as this one did.
std::string advice(const RunView& run, const Trial& trial) {
  if (is<ReplaySpec>(run.session.runner)) return "widen \"space\" or \"where\" of the session";
  if (const auto* failed = std::get_if<Failed>(&*trial.outcome)) return after_failure(run, trial, failed->reason);
  const bool limited = run.session.usable_per_rank.has_value();
  return less_memory(run.session) + (limited ? ", or raise the memory limit (/memory/limit_gib)" : "");
}

}  // namespace

void explain_failure(const RunView& run, Log& log) {
  const std::vector<ClassCount> failures = counts_by_class(run.history);
  if (failures.empty()) {
    log.error("no trial is ok: none was run");
    return;
  }
  log.error("no trial is ok: " + text_of(failures));
  show_first_failure(run, log);
  const std::string to_try = advice(run, run.history.at(static_cast<std::size_t>(failures.front().first)));
  if (!to_try.empty()) log.progress("to try: " + to_try);
}

}  // namespace krigtune
