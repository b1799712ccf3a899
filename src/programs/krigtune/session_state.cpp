#include "programs/krigtune/session_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "core/units.h"
#include "report/labels.h"
#include "run/earlier_run.h"
#include "run/loop.h"
#include "runner/replay.h"
#include "search/trials/run_effects.h"
#include "session/goodput.h"

namespace krigtune {
namespace {

constexpr double kSecondsPerHour = 3600.0;

bool is_closed(const Trial& trial) { return trial.outcome && counts(trial); }

std::string class_of(const Outcome& outcome) {
  const std::string reason = reason_text(outcome);
  return reason.empty() ? status_text(outcome) : fmt::format("{} ({})", status_text(outcome), reason);
}

}  // namespace

std::vector<ClassCount> counts_by_class(const History& history) {
  std::vector<ClassCount> counts = {{"ok"}};
  for (const Trial& trial : history) {
    if (!is_closed(trial)) continue;
    const std::string name = class_of(*trial.outcome);
    const auto found = std::find_if(counts.begin(), counts.end(), [&](const ClassCount& c) { return c.name == name; });
    if (found == counts.end()) {
      counts.push_back({name, 1, trial.number});
    } else {
      ++found->count;
    }
  }
  std::stable_sort(counts.begin() + 1, counts.end(),
                   [](const ClassCount& a, const ClassCount& b) { return a.count > b.count; });
  if (counts.front().count == 0) counts.erase(counts.begin());
  return counts;
}

std::string text_of(const std::vector<ClassCount>& counts) {
  std::vector<std::string> parts;
  for (const ClassCount& one : counts) parts.push_back(fmt::format("{} {}", one.count, one.name));
  return parts.empty() ? "none" : join(parts, ", ");
}

std::optional<Trial> best_trial(const Objective& objective, const History& history) {
  std::optional<MeasuredMean> best;
  for (const MeasuredMean& mean : measured_means(objective, history)) {
    if (!best || objective.better(mean.value, best->value)) best = mean;
  }
  return best ? std::optional(history[best->best]) : std::nullopt;
}

std::string gain_text_of(const Objective& objective, double value, const History& history) {
  const std::optional<Trial> reference = reference_trial(objective, history);
  return reference ? gain_text(gain_over(objective, value, *RunEffects(objective, history).value_of(*reference))) : "";
}

std::optional<double> seconds_left(const Session& session, const History& history, int at_a_time) {
  const auto ours = std::count_if(history.begin(), history.end(), [](const Trial& trial) {
    return is_closed(trial) && trial.proposal.asker == Asker::kTune;
  });
  if (ours == 0) return std::nullopt;
  const double spent_s = seconds_spent(history);
  double left_s = spent_s / static_cast<double>(ours) * std::max(session.budget.trials - closed_trials(history), 0);
  if (session.budget.hours) left_s = std::min(left_s, *session.budget.hours * kSecondsPerHour - spent_s);
  return std::max(left_s, 0.0) / std::max(at_a_time, 1);
}

std::string last_line_of(const Trial& trial) {
  const auto* failed = trial.outcome ? std::get_if<Failed>(&*trial.outcome) : nullptr;
  if (failed == nullptr || is_interrupted(trial)) return "";
  const std::string& text = failed->last_lines;
  const std::size_t end = text.find_last_not_of(" \r\n");
  if (end == std::string::npos) return "";
  const std::size_t before = text.rfind('\n', end);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return text.substr(begin, end - begin + 1);
}

std::string seconds_text(double seconds) {
  return seconds < 60.0 ? fmt::format("{:.0f} s", std::floor(seconds)) : duration_text(std::floor(seconds));
}

std::string closed_trial_text(const Session& session, const Trial& trial, const History& history) {
  const Objective& objective = session.objective;
  const std::optional<int>& repeated = trial.proposal.repeat_of;
  const std::string again =
      repeated ? fmt::format("#{} = #{} again:", trial.number, *repeated) : fmt::format("#{}", trial.number);
  std::string line = fmt::format("trial {}/{} {:<6}  {} {}  {}", closed_trials(history), session.budget.trials,
                                 status_text(*trial.outcome), again, short_text(session, trial.proposal.configuration),
                                 outcome_text(session, trial));
  const RunEffects effects(objective, history);
  if (const auto value = effects.value_of(trial)) line += "  " + gain_text_of(objective, *value, history);
  if (const auto best = best_value(objective, history)) line += "  best " + gain_text_of(objective, *best, history);
  line += short_emulated_note(session);
  const std::string trouble = last_line_of(trial);
  return trouble.empty() ? line : line + ": " + trouble;
}

std::string short_emulated_note(const Session& session) { return is_emulated(session) ? " (emulated network)" : ""; }

Session session_of(const Context& context, const std::filesystem::path& file) {
  Session session = load_session(file);
  for (const std::string& warning : session.warnings) context.log.warning(warning);
  return session;
}

LoadedRun::LoadedRun(const Context& context, const std::filesystem::path& path)
    : LoadedRun(context, path, load_run(path)) {}

LoadedRun::LoadedRun(const Context& context, const std::filesystem::path& path, RunRecord record)
    : directory(path),
      options(record.options),
      prepared(std::move(record.session), options.earlier),
      history(read_journal(journal_path(path))) {
  for (const std::string& warning : session().warnings) context.log.warning(warning);
}

RunView LoadedRun::view(const Console& console) const {
  return {session(),
          history,
          directory_name(directory),
          options,
          directory,
          find_bench(console.program),
          recommend(session(), prepared.candidates, history, options.seed)};
}

std::string directory_name(const std::filesystem::path& directory) {
  // "runs/job/" ends in an empty name.
  return std::filesystem::absolute(directory / "").lexically_normal().parent_path().filename().string();
}

std::string session_name(const Session& session) { return session.file.stem().string(); }

std::unique_ptr<Runner> make_session_runner(const Session& session, const Console& console,
                                            const std::atomic<bool>* stop) {
  const RunnerJob job{session.workload, session.cluster,
                      session.memory,   session.space,
                      session.table,    session.objective.reported_field(),
                      console.program,  stop,
                      console.clock};
  return with_goodput(session, make_runner(session.runner, job));
}

// --warm-start: earlier runs that a new one learns from.
namespace {

constexpr const char* kOption = "warm-start";

std::vector<std::string> sources_of(const EarlierRuns& runs) {
  std::vector<std::string> sources;
  for (const EarlierRun& run : runs) sources.push_back(run.source);
  return sources;
}

std::string sources_text(const std::vector<std::string>& sources) {
  return sources.empty() ? "without --warm-start" : "with --warm-start " + join(sources, " and ");
}

void say_what_is_learned(const Context& context, const Session& session, const EarlierRuns& runs) {
  const MemoryFilter filter(session);
  const auto physics = make_physics_prior(session, filter);
  for (const EarlierRun& run : runs) {
    if (make_warm_start_prior(session, run, physics.get()) == nullptr) {
      context.log.warning(
          fmt::format("--warm-start {}: nothing is to be learned from it: its {} trials contradict what "
                      "is predicted, or follow from none of {}; the search begins without it",
                      run.source, run.trials.size(), join(shared_parameters(session.space, run), ", ")));
      continue;
    }
    context.log.progress(fmt::format("warm start: {} ok trials of {} over {}{}", run.trials.size(), run.source,
                                     join(shared_parameters(session.space, run), ", "),
                                     physics ? ", less what is predicted of them" : ""));
  }
}

}  // namespace

void declare_warm_start(boost::program_options::options_description& options) {
  options.add_options()(kOption, repeated_value_named("DIR"),
                        "learn from an earlier run directory, of this job or another, or from a journal of Optuna's "
                        "(FILE, or FILE:STUDY); may be repeated");
}

EarlierRuns earlier_runs(const Context& context, const Session& session, const std::filesystem::path& directory,
                         bool is_begun) {
  const std::vector<std::string> named = context.arguments.texts(kOption);
  if (is_begun) {
    EarlierRuns recorded = recorded_earlier_runs(directory);
    if (named.empty() || named == sources_of(recorded)) return recorded;
    throw UserError(fmt::format("{}: was begun {}, not {}", directory.string(), sources_text(sources_of(recorded)),
                                sources_text(named)),
                    "leave the option out to go on, or choose another directory");
  }
  EarlierRuns runs;
  for (const std::string& source : named) runs.push_back(read_earlier_run(source, session, "--warm-start"));
  if (!runs.empty()) say_what_is_learned(context, session, runs);
  return runs;
}

}  // namespace krigtune
