#include "programs/krigtune/session_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/columns.h"
#include "core/error.h"
#include "core/text.h"
#include "core/units.h"
#include "report/caveat_text.h"
#include "result/best_reader.h"
#include "run/earlier_run.h"
#include "run/loop.h"
#include "runner/replay.h"
#include "session/objectives.h"

namespace krigtune::cli {
namespace {

constexpr double kSecondsPerHour = 3600.0;

}  // namespace

std::optional<double> seconds_left(const session::Session& session, const search::History& history, int at_a_time) {
  const auto ours = std::count_if(history.begin(), history.end(), [](const journal::Trial& trial) {
    return search::is_closed(trial) && trial.proposal.asker == journal::Asker::kTune;
  });
  if (ours == 0) return std::nullopt;
  const double spent_s = run::seconds_spent(history);
  double left_s =
      spent_s / static_cast<double>(ours) * std::max(session.budget.trials - search::closed_trials(history), 0);
  left_s /= std::max(at_a_time, 1);
  if (session.budget.hours)
    left_s = std::min(left_s, *session.budget.hours * kSecondsPerHour - run::seconds_elapsed(history));
  return std::max(left_s, 0.0);
}

std::string seconds_text(double seconds) {
  return seconds < 60.0 ? fmt::format("{:.0f} s", std::floor(seconds)) : duration_text(std::floor(seconds));
}

void show_remarks(const Context& context, const std::vector<std::string>& remarks) {
  if (!context.arguments.command_remark().empty()) context.log.progress(context.arguments.command_remark());
  for (const std::string& remark : remarks) context.log.progress(remark);
}

void show_caveats(const Context& context, const session::Session& session) {
  if (!session.workload) return;
  for (const std::string& line : report::caveat_lines(*session.workload))
    context.log.progress(wrapped_lines(line, context.log.width(), 2));
}

session::Session session_of(const Context& context, const std::filesystem::path& file) {
  return session_of(context, file, load_json(file));
}

session::Session session_of(const Context& context, const std::filesystem::path& file, const Json& json) {
  session::Session session = session::read_session(json, file.string(), std::filesystem::absolute(file).parent_path());
  session.file = file;
  for (const std::string& warning : session.warnings) context.log.warning(warning);
  return session;
}

search::History read_history(const Context& context, const std::filesystem::path& directory) {
  constexpr std::size_t kShown = 3;
  const std::filesystem::path file = run::journal_path(directory);
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return {};
  std::vector<std::string> complaints;
  search::History history = journal::read_journal(file, &complaints);
  for (std::size_t i = 0; i < std::min(complaints.size(), kShown); ++i) context.log.warning(complaints[i]);
  if (complaints.size() > kShown) {
    context.log.warning(fmt::format("{}: {} more records are skipped; krigtune repair {} lists them", file.string(),
                                    complaints.size() - kShown, directory.string()));
  }
  return history;
}

LoadedRun::LoadedRun(const Context& context, const std::filesystem::path& path)
    : LoadedRun(context, path, run::load_run(path)) {}

LoadedRun::LoadedRun(const Context& context, const std::filesystem::path& path, run::RunRecord record)
    : directory(path),
      options(record.options),
      prepared(std::move(record.session), options.earlier),
      history(read_history(context, path)) {
  for (const std::string& warning : session().warnings) context.log.warning(warning);
}

namespace {

// A fit of ten thousand trials takes minutes, but tune has recorded its recommendation in best.json, without the
// effects of single changes. For fewer trials the time of a fit does not matter.
std::optional<search::Recommendation> recommendation_of(const LoadedRun& run) {
  constexpr std::ptrdiff_t kMostFittedAgain = 2000;
  if (answer::ended_trials(run.history) > kMostFittedAgain) {
    if (auto recorded = result::recorded_best(run.directory, run.history)) return recorded;
  }
  return search::recommend(run.session(), run.prepared.candidates, run.history, run.options.seed);
}

}  // namespace

report::RunView LoadedRun::view(const Console& console) const {
  return {session(),
          history,
          directory_name(directory),
          options,
          directory,
          runner::find_bench(console.program),
          answer::answer_of(session(), history, recommendation_of(*this))};
}

std::string directory_name(const std::filesystem::path& directory) {
  // "runs/job/" would end in an empty name.
  return std::filesystem::absolute(directory / "").lexically_normal().parent_path().filename().string();
}

std::string session_name(const session::Session& session) { return session.file.stem().string(); }

std::unique_ptr<trial::Runner> make_session_runner(const session::Session& session, const Console& console,
                                                   const std::atomic<bool>* stop) {
  const trial::RunnerJob job{session.workload, session.cluster,
                             session.memory,   session.space,
                             session.table,    session.objective.reported_field(),
                             console.program,  stop,
                             console.clock};
  return session::with_objectives(session, runner::make_runner(session.runner, job));
}

// --warm-start: earlier runs from which a new one learns.
namespace {

std::vector<std::string> sources_of(const forecast::EarlierRuns& runs) {
  std::vector<std::string> sources;
  for (const forecast::EarlierRun& run : runs) sources.push_back(run.source);
  return sources;
}

void say_what_is_learned(const Context& context, const session::Session& session, const forecast::EarlierRuns& runs) {
  const session::MemoryFilter filter(session);
  const auto physics = forecast::make_physics_prior(session, filter);
  for (const forecast::EarlierRun& run : runs) {
    if (forecast::make_warm_start_prior(session, run, physics.get()) == nullptr) {
      context.log.warning(
          fmt::format("--warm-start {}: nothing can be learned from it: its {} contradict what is predicted, or "
                      "follow from none of {}; the search begins without it",
                      run.source, counted(std::ssize(run.trials), "trial"),
                      join(forecast::shared_parameters(session.space, run), ", ")));
      continue;
    }
    context.log.progress(fmt::format("warm start: {} ok trials of {} over {}{}", run.trials.size(), run.source,
                                     join(forecast::shared_parameters(session.space, run), ", "),
                                     physics ? ", less what is predicted of them" : ""));
  }
}

}  // namespace

void declare_warm_start(boost::program_options::options_description& options) {
  options.add_options()(kWarmStart, repeated_value_named("DIR"),
                        "learn from an earlier run, of this job or another. DIR is a run directory, or a journal of "
                        "Optuna's (FILE, or FILE:STUDY); may be repeated");
}

forecast::EarlierRuns earlier_runs(const Context& context, const session::Session& session,
                                   const std::filesystem::path& directory, bool is_begun) {
  return earlier_runs(context, context.arguments.texts(kWarmStart), fmt::format("--{}", kWarmStart), session, directory,
                      is_begun);
}

forecast::EarlierRuns earlier_runs(const Context& context, const std::vector<std::string>& named,
                                   const std::string& where, const session::Session& session,
                                   const std::filesystem::path& directory, bool is_begun) {
  if (is_begun) {
    forecast::EarlierRuns recorded = run::recorded_earlier_runs(directory);
    if (named.empty() || named == sources_of(recorded)) return recorded;
  }
  forecast::EarlierRuns runs;
  for (const std::string& source : named) runs.push_back(run::read_earlier_run(source, session, where));
  if (!runs.empty()) say_what_is_learned(context, session, runs);
  return runs;
}

}  // namespace krigtune::cli
