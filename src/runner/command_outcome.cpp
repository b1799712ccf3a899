#include "runner/command_outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <type_traits>

#include "runner/command_result.h"
#include "trial/failure_text.h"
#include "trial/python_exception.h"

namespace krigtune::runner {
namespace {

class Ending {
 public:
  Ending(const CommandEnd& end, const CommandJob& job, const std::vector<Pattern>& patterns)
      : end_(end), process_(end.process), job_(job), patterns_(patterns) {}

  trial::Outcome outcome() const {
    if (!process_.start_error.empty()) {
      return failed(trial::FailureReason::kEnvironment,
                    fmt::format("'{}' does not start: {}", job_.spec.argv.front(), process_.start_error));
    }
    if (process_.stopped) return failed(trial::FailureReason::kInterrupted, "");
    if (!process_.lost.empty()) return failed(trial::FailureReason::kLost, process_.lost);
    const CommandResult result = read_result();
    if (result.names_failure) return named(result.outcome);
    // A program that ended well, before it was ended or when it was asked to, has a result of its own.
    const bool has_ended_well = process_.exit_code == 0 && std::holds_alternative<trial::Measured>(result.outcome);
    if (process_.cut_short && end_.bound && !has_ended_well) return trial::Bounded{*end_.bound};
    if (end_.is_complete && std::holds_alternative<trial::Measured>(result.outcome)) return measured(result.outcome);
    if (process_.hung || process_.timed_out) {
      if (const auto complaint = memory_complaint()) return trial::OutOfMemory{complaint->requested, false};
      const char* why =
          process_.hung ? "ended after {:.1f} s, because its output no longer grew" : "ended after {:.1f} s";
      return with_what_is_missing(failed(process_.hung ? trial::FailureReason::kHang : trial::FailureReason::kTimeout,
                                         fmt::format(fmt::runtime(why), process_.wall_s)));
    }
    if (process_.exit_code == 0 && std::holds_alternative<trial::Measured>(result.outcome))
      return measured(result.outcome);
    if (const std::optional<trial::OutOfMemory> oom = out_of_memory()) return *oom;
    if (process_.exit_code == 0) return without_a_value(std::get<trial::Failed>(result.outcome).last_lines);
    if (ended_by(SIGKILL)) return known(trial::FailureReason::kCrash, how_it_ended());
    if (const auto shortage = found(trial::find_shortage)) return known(trial::FailureReason::kEnvironment, *shortage);
    if (const auto line = found(trial::find_collective_timeout)) {
      return known(trial::FailureReason::kHang, "a collective did not end in time: " + trial::printable(*line));
    }
    return with_origin(failed(trial::FailureReason::kCrash, refused_addition() + how_it_ended()));
  }

 private:
  // "OSError: Failed to load tokenizer." says less than the exception that it was raised from.
  trial::Failed with_origin(trial::Failed failure) const {
    const auto cause = found(trial::cause_of_failure);
    if (!cause || cause->origin.empty()) return failure;
    failure.last_lines += fmt::format("\n{} (raised from {})", cause->line(), cause->origin);
    return failure;
  }

  // Returns what is found in stderr, or else in stdout.
  template <class Find>
  std::invoke_result_t<Find, const std::string&> found(const Find& find) const {
    auto what = find(end_.standard_error);
    return what ? what : find(end_.standard_output);
  }

  CommandResult read_result() const {
    if (end_.measured) return *end_.measured;
    if (end_.result) return interpret_result(*end_.result, job_.metric);
    return {trial::Failed{trial::FailureReason::kBadResult, 0, end_.result_error}, false};
  }

  trial::Failed failed(trial::FailureReason reason, const std::string& what) const {
    const std::string said = trial::failure_text(end_.standard_output, end_.standard_error);
    return {reason, process_.exit_code, what + (what.empty() || said.empty() ? "" : "\n") + said};
  }

  // Lists of trials show the last line of a failure. Here that is what is known: the job's own last lines are those of
  // the ranks that lost the one which was killed, or waited for it.
  trial::Failed known(trial::FailureReason reason, const std::string& what) const {
    const std::string said = trial::failure_text(end_.standard_output, end_.standard_error);
    return {reason, process_.exit_code, said + (said.empty() ? "" : "\n") + what};
  }

  // The job ended well, so its last lines do not say what is wrong.
  trial::Failed without_a_value(const std::string& why) const {
    const std::string said = end_.measured ? "" : trial::failure_text(end_.standard_output, end_.standard_error);
    return {trial::FailureReason::kBadResult, process_.exit_code, said + (said.empty() ? "" : "\n") + why};
  }

  // The same holds for what it should have printed until the time limit.
  trial::Failed with_what_is_missing(trial::Failed failure) const {
    if (!end_.measured) return failure;
    const auto* missing = std::get_if<trial::Failed>(&end_.measured->outcome);
    if (missing != nullptr) failure.last_lines += "\n" + missing->last_lines;
    return failure;
  }

  // The outcome if the program itself, or the measurement of its output, reports a failure.
  trial::Outcome named(const trial::Outcome& outcome) const {
    if (const auto* failure = std::get_if<trial::Failed>(&outcome)) {
      // Krigtune itself knows what is wrong with the output; the job's last lines are about something else.
      if (end_.measured) return trial::Failed{failure->reason, process_.exit_code, failure->last_lines};
      return failed(failure->reason, failure->last_lines);
    }
    const auto complaint = memory_complaint();
    return trial::OutOfMemory{complaint ? complaint->requested : std::nullopt, false};
  }

  trial::Outcome measured(const trial::Outcome& outcome) const {
    trial::Measured with_rss = std::get<trial::Measured>(outcome);
    if (process_.peak_rss_bytes > 0)  // not counted on other machines
      with_rss.metrics.emplace("peak_rss_bytes", static_cast<double>(process_.peak_rss_bytes));
    return with_rss;
  }

  std::optional<trial::MemoryComplaint> memory_complaint() const {
    return found([&](const std::string& text) { return trial::find_memory_complaint(text, patterns_); });
  }

  bool ended_by(int signal) const {
    return trial::tells_of_signal(process_.exit_code, end_.standard_error, signal) ||
           trial::tells_of_signal(process_.exit_code, end_.standard_output, signal);
  }

  std::optional<trial::OutOfMemory> out_of_memory() const {
    const auto& codes = job_.spec.oom_exit_codes;
    const bool by_code = std::find(codes.begin(), codes.end(), process_.exit_code) != codes.end();
    const bool by_killer = ended_by(SIGKILL) && end_.oom_kills.value_or(1) > 0;
    const auto complaint = memory_complaint();
    if (complaint) return trial::OutOfMemory{complaint->requested, false};
    if (by_code || by_killer || process_.out_of_memory) return trial::OutOfMemory{};
    return std::nullopt;
  }

  // What a recipe adds to the user's own command may be unknown to the program.
  std::string refused_addition() const {
    if (job_.spec.users_command.empty()) return "";
    const auto flag = found([&](const std::string& text) {
      return trial::refused_addition(text, job_.spec.argv, job_.spec.users_command);
    });
    if (!flag) return "";
    return fmt::format(
        "the program does not take {}, which the recipe {} added: name the parameters with --vary instead\n", *flag,
        job_.spec.recipe);
  }

  std::string how_it_ended() const {
    if (ended_by(SIGKILL)) {
      return fmt::format("exit code {}: killed (SIGKILL), neither by krigtune nor by the kernel's OOM killer",
                         process_.exit_code);
    }
    if (ended_by(SIGBUS)) return fmt::format("exit code {}: {}", process_.exit_code, trial::kBusError);
    if (process_.signal != 0) {
      return fmt::format("ended by signal {} ({})", process_.signal, ::strsignal(process_.signal));
    }
    return fmt::format("exit code {}", process_.exit_code);
  }

  const CommandEnd& end_;
  const trial::ProcessResult& process_;
  const CommandJob& job_;
  const std::vector<Pattern>& patterns_;
};

}  // namespace

trial::Outcome command_outcome(const CommandEnd& end, const CommandJob& job, const std::vector<Pattern>& patterns) {
  return Ending(end, job, patterns).outcome();
}

}  // namespace krigtune::runner
