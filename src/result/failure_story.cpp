#include "result/failure_story.h"

#include <fmt/format.h>

#include "core/files.h"
#include "core/json.h"
#include "core/text.h"
#include "report/memory_advice.h"
#include "report/trial_classes.h"
#include "run/run_directory.h"
#include "runner/runner.h"
#include "trial/trial_files.h"

namespace krigtune::result {
namespace {

constexpr int kLastLines = 12;

const journal::Trial* first_failed(const search::History& history) {
  for (const journal::Trial& trial : history) {
    if (trial.outcome && search::counts(trial) && !std::holds_alternative<trial::Measured>(*trial.outcome))
      return &trial;
  }
  return nullptr;
}

bool has_text(const std::filesystem::path& file) {
  std::error_code error;
  return std::filesystem::file_size(file, error) > 0 && !error;
}

// Returns the trial's log: stderr if it is not empty, otherwise stdout. Empty if there is no log.
std::filesystem::path log_of(const report::RunView& run, const journal::Trial& trial) {
  const std::filesystem::path directory = run.directory / "trials" / run::trial_folder(trial);
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

// Returns the runner's own sentence; for an outcome without text it is only in this file.
std::string sentence_of(const report::RunView& run, const journal::Trial& trial) {
  const std::filesystem::path file = run.directory / "trials" / run::trial_folder(trial) / "result.json";
  if (!runner::traits_of(run.session.runner).result_has_sentence || !has_text(file)) return "";
  const Json result = json_or_discarded(read_text(file));
  const bool there = result.is_object() && result.contains("sentence") && result["sentence"].is_string();
  return there ? result["sentence"].get<std::string>() : "";
}

void tell_first(const report::RunView& run, const journal::Trial& trial, FailureStory& story) {
  story.first = trial.number;
  story.log = log_of(run, trial);
  const auto* failed = std::get_if<trial::Failed>(&*trial.outcome);
  if (failed != nullptr) story.said = last_lines(failed->last_lines);
  if (story.said.empty()) story.said = sentence_of(run, trial);
  if (story.said.empty() && !story.log.empty())
    story.said = last_lines(trial::read_tail(story.log, trial::kMostJobFileBytes));
}

std::string after_timeout(const session::Session& session) {
  return fmt::format("raise /runner/timeout_s of the session (now {} s), or let a trial do fewer steps",
                     number_text(runner::timeout_s(session.runner)));
}

std::string after_crash(const report::RunView& run, const journal::Trial& trial) {
  const std::filesystem::path command = run.directory / "trials" / run::trial_folder(trial) / "cmd.txt";
  return has_text(command) ? fmt::format("run the command in {} by hand", command.string())
                           : "run one of the configurations by hand";
}

std::string after_bad_result(const session::Session& session) {
  const trial::MeasureSpec* measure = runner::measure_of(session.runner);
  if (measure != nullptr && !measure->metrics.empty()) {
    return "see what the trial printed (stdout.log); krigtune measure shows what the session's /runner/measure finds "
           "in it";
  }
  return fmt::format(fmt::runtime(runner::traits_of(session.runner).words.after_bad_result), session.objective.field);
}

std::string after_failure(const report::RunView& run, const journal::Trial& trial, trial::FailureReason reason) {
  switch (reason) {
    case trial::FailureReason::kTimeout:
      return after_timeout(run.session);
    case trial::FailureReason::kHang:
      return "look for a deadlock; if ranks are only slow, raise /runner/no_progress_s of the session, or the process "
             "group's own time limit";
    case trial::FailureReason::kCrash:
      return after_crash(run, trial);
    case trial::FailureReason::kInvalid:
      return "leave out of the space what the program refuses: narrower ranges, or a constraint";
    case trial::FailureReason::kBadResult:
      return after_bad_result(run.session);
    case trial::FailureReason::kEnvironment:
      return "see krigtune doctor";
    case trial::FailureReason::kNotApplied:
      return "the job does not use the values that it was given: see its command in cmd.txt and what it printed in "
             "stdout.log";
    case trial::FailureReason::kLost:
      return "see the machine or the scheduler; start over with --fresh once it is well, or leave the trial out";
    case trial::FailureReason::kInterrupted:
      break;
  }
  return "";
}

// Returns advice for trials that ended like this one.
std::string advice(const report::RunView& run, const journal::Trial& trial) {
  const char* const own = runner::traits_of(run.session.runner).words.after_failure;
  if (*own != '\0') return own;
  if (const auto* failed = std::get_if<trial::Failed>(&*trial.outcome))
    return after_failure(run, trial, failed->reason);
  return report::memory_advice(run.session);
}

}  // namespace

FailureStory failure_story(const report::RunView& run) {
  const std::vector<answer::ClassCount>& failures = run.answer.trials.by_class;
  if (failures.empty()) return {.reasons = "none was run"};
  FailureStory story{.reasons = report::text_of(failures)};
  if (const journal::Trial* trial = first_failed(run.history)) tell_first(run, *trial, story);
  story.to_try = advice(run, run.history.at(static_cast<std::size_t>(failures.front().first)));
  return story;
}

}  // namespace krigtune::result
