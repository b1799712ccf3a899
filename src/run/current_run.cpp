// A pause does not change the speed of a machine, but another machine, another allocation or the passing of time may.
// So a session that is continued begins a new run
//
//   - if trials are timed by a real clock: on another machine (or in another allocation of its scheduler) than that of
//     the last trial, or more than ten minutes after it ended;
//   - if trials are simulated: when "today" in the session has changed;
//   - never if trials are looked up or run by hand: a table has no clock, and nothing is known about the user's.
//
// Ten minutes are enough for a restart by hand or by a script after a crash. Within them the machine is assumed to be
// unchanged, as it is between two trials of a session that was not interrupted.
#include "run/current_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "search/model/best.h"

namespace krigtune::run {
namespace {

constexpr double kLongestPauseS = 600.0;

std::string machine_now(const session::Session& session, const RunOptions& options) {
  return runner::traits_of(session.runner).runs_programs ? options.machine : runner::simulated_machine(session.runner);
}

const journal::Trial* last_of_tune(const search::History& history) {
  const auto last = std::find_if(history.rbegin(), history.rend(), [](const journal::Trial& trial) {
    return trial.proposal.asker == journal::Asker::kTune && !trial.waiting;
  });
  return last == history.rend() ? nullptr : &*last;
}

// If the clock was set back, the length of the pause is unknown, and it counts as long.
bool paused_for_long(const journal::Trial& last, const Clock& clock) {
  const std::optional<std::int64_t> ended_us = journal::end_us_of(last);
  if (!ended_us) return true;
  const double pause_s = static_cast<double>(clock.unix_us() - *ended_us) * 1e-6;
  return std::abs(pause_s) > kLongestPauseS;
}

}  // namespace

int latest_run(const search::History& history) {
  int latest = 0;
  for (const journal::Trial& trial : history) latest = std::max(latest, trial.proposal.run);
  return latest;
}

CurrentRun current_run(const session::Session& session, const search::History& history, const RunOptions& options,
                       const Clock& clock) {
  CurrentRun run{latest_run(history), machine_now(session, options), options.loop.seed};
  const journal::Trial* last = last_of_tune(history);
  if (last == nullptr) return run;
  const std::string& before = last->proposal.machine;
  const bool is_elsewhere = !before.empty() && !run.machine.empty() && before != run.machine;
  const bool is_later = runner::traits_of(session.runner).runs_programs && paused_for_long(*last, clock);
  if (is_elsewhere || is_later) ++run.number;
  return run;
}

std::optional<journal::Proposal> leader_again(const session::Session& session, const search::Candidates& candidates,
                                              const search::History& history, const CurrentRun& run) {
  if (run.number == 0) return std::nullopt;
  const bool was_asked = std::any_of(history.begin(), history.end(), [&](const journal::Trial& trial) {
    const bool is_it = trial.proposal.run == run.number && trial.proposal.strategy == search::kAgainStrategy;
    // Measuring the baseline alone and together makes two runs, and the baseline already connects their scales.
    const bool is_tied = trial.proposal.run + 1 == run.number && trial.proposal.strategy == search::kTogetherStrategy;
    return (is_it || is_tied) && search::counts(trial);
  });
  if (was_asked) return std::nullopt;
  const std::optional<search::Recommendation> leader = search::recommend(session, candidates, history, run.seed);
  if (!leader) return std::nullopt;
  journal::Proposal proposal;
  proposal.configuration = leader->configuration;
  proposal.strategy = search::kAgainStrategy;
  proposal.repeat_of = leader->trial;
  proposal.predicted_value = leader->posterior_mean;
  return proposal;
}

}  // namespace krigtune::run
