#include "krigtune/tuner/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>

#include "krigtune/core/files.h"
#include "krigtune/core/json.h"
#include "krigtune/tuner/best.h"
#include "krigtune/tuner/run_directory.h"
#include "run_trial.h"

namespace krigtune {
namespace {

constexpr double kSecondsPerHour = 3600.0;
constexpr double kWorthwhileGain = 1.01;  // of the rule "patience"
constexpr int kEnvironmentFailures = 3;   // in a row: nothing will run here

double hours_spent(const History& history) {
  double seconds = 0.0;
  for (const Trial& trial : history) seconds += trial.wall_s + trial.proposal.suggest_s;
  return seconds / kSecondsPerHour;
}

// Closed trials since the best value last rose by more than 1 %; none before the first ok trial.
int trials_without_gain(const Objective& objective, const History& history) {
  std::optional<double> best;
  int without = 0;
  for (const Trial& trial : history) {
    if (!trial.outcome || !counts(trial)) continue;
    const std::optional<double> value = value_of(trial, objective);
    if (value && (!best || gain_over(objective, *value, *best) > kWorthwhileGain)) {
      best = value;
      without = 0;
    } else if (best) {
      ++without;
    }
  }
  return without;
}

const Failed* environment_failure(const Trial& trial) {
  const auto* failed = trial.outcome ? std::get_if<Failed>(&*trial.outcome) : nullptr;
  return failed != nullptr && failed->reason == FailureReason::kEnvironment ? failed : nullptr;
}

bool environment_lacks_something(const History& history) {
  int in_a_row = 0;
  for (auto trial = history.rbegin(); trial != history.rend() && environment_failure(*trial); ++trial) ++in_a_row;
  return in_a_row >= kEnvironmentFailures;
}

/// One call of run_session.
class Run {
 public:
  Run(const Session& session, const Candidates& candidates, const RunnerFactory& make_runner,
      const std::filesystem::path& directory, const LoopOptions& options, const Clock& clock, Observer& observer,
      const std::atomic<bool>& stop)
      : session_(session),
        candidates_(candidates),
        runner_(make_runner()),
        directory_(directory),
        clock_(clock),
        observer_(observer),
        stop_(stop),
        journal_(journal_path(directory), session.space, session.objective.field, session.objective.maximize),
        strategy_(make_strategy(session, candidates, options)),
        tuner_(session, candidates, *strategy_, clock, recovered(journal_, clock)) {}

  RunResult until_it_ends() {
    observer_.resumed(tuner_.history());
    RunResult result;
    std::optional<EndReason> reason = reason_to_end(0);
    while (!reason) {
      const std::optional<Trial> trial = tuner_.ask();
      if (trial) run(*trial);
      if (trial) ++result.trials_now;
      reason = trial ? reason_to_end(result.trials_now) : EndReason::kExhausted;
    }
    result.reason = *reason;
    result.history = tuner_.history();
    if (result.reason == EndReason::kEnvironment) {
      result.detail = environment_failure(result.history.back())->last_lines;
    }
    return result;
  }

 private:
  static std::unique_ptr<Strategy> make_strategy(const Session& session, const Candidates& candidates,
                                                 const LoopOptions& options) {
    const StrategyOptions for_strategy{options.seed, session.budget.trials};
    return krigtune::make_strategy(options.strategy, session, candidates, for_strategy);
  }

  // What the journal holds, the trials of a process that died closed.
  static const History& recovered(Journal& journal, const Clock& clock) {
    for (std::size_t i = 0; i < journal.trials().size(); ++i) {
      const Trial& trial = journal.trials()[i];
      if (!trial.outcome) journal.end(trial.number, Failed{FailureReason::kInterrupted, 0, ""}, 0.0, clock.unix_us());
    }
    return journal.trials();
  }

  std::optional<EndReason> reason_to_end(int trials_now) const {
    const History& history = tuner_.history();
    const Budget& budget = session_.budget;
    if (stop_ || (trials_now > 0 && is_interrupted(history.back()))) return EndReason::kInterrupted;
    if (trials_now > 0 && environment_lacks_something(history)) return EndReason::kEnvironment;
    if (counted_trials(history) >= budget.trials) return EndReason::kTrials;
    if (budget.hours && hours_spent(history) >= *budget.hours) return EndReason::kHours;
    if (budget.patience && trials_without_gain(session_.objective, history) >= *budget.patience) {
      return EndReason::kPatience;
    }
    return std::nullopt;
  }

  void run(Trial trial) {
    const std::int64_t started_us = clock_.unix_us();
    journal_.begin(trial.proposal, started_us, tuner_.history().size() - 1);
    trial.started_at = local_iso_time(started_us);
    tuner_.set_started(trial.number, trial.started_at);
    observer_.trial_begins(trial, tuner_.history());
    const double begun_s = clock_.now_s();
    const Outcome outcome = outcome_of(trial);
    const double wall_s = clock_.now_s() - begun_s;
    journal_.end(trial.number, outcome, wall_s, clock_.unix_us());
    tuner_.tell(trial.number, outcome, wall_s);
    observer_.trial_ended(tuner_.history().back(), tuner_.history());
  }

  // The runner has a thread of its own, so that the observer hears from this one while it works.
  Outcome outcome_of(const Trial& trial) {
    const std::filesystem::path trial_directory = make_trial_directory(trial);
    auto running = std::async(std::launch::async, [&] {
      return run_trial(candidates_.filter(), *runner_, trial.proposal.configuration, trial_directory);
    });
    constexpr std::chrono::milliseconds kTick{200};
    while (running.wait_for(kTick) != std::future_status::ready) observer_.waiting(trial);
    return running.get();
  }

  std::filesystem::path make_trial_directory(const Trial& trial) const {
    if (session_.runner.kind == RunnerKind::kReplay) return directory_;
    std::filesystem::path path = directory_ / "trials" / trial_folder(trial);
    make_writable_directory(path);
    return path;
  }

  const Session& session_;
  const Candidates& candidates_;
  std::unique_ptr<Runner> runner_;
  const std::filesystem::path& directory_;
  const Clock& clock_;
  Observer& observer_;
  const std::atomic<bool>& stop_;
  Journal journal_;
  std::unique_ptr<Strategy> strategy_;
  Tuner tuner_;
};

}  // namespace

const char* to_string(EndReason reason) {
  switch (reason) {
    case EndReason::kTrials:
      return "the budget of trials is spent";
    case EndReason::kHours:
      return "the budget of hours is spent";
    case EndReason::kPatience:
      return "no improvement of more than 1 % for as long as the session's patience lasts";
    case EndReason::kExhausted:
      return "every configuration was tried";
    case EndReason::kNothingFits:
      return "no configuration fits in memory";
    case EndReason::kInterrupted:
      return "interrupted";
    case EndReason::kEnvironment:
      return "nothing can run here";
  }
  return "unknown";
}

std::string trial_folder(const Trial& trial) {
  const Configuration& configuration = trial.proposal.configuration;
  std::string name = fmt::format("{:04}", trial.number);
  const std::pair<const char*, const char*> kParts[] = {
      {"zero_stage", "z"}, {"micro_batch", "mb"}, {"gradient_accumulation_steps", "gas"}};
  for (const auto& [parameter, prefix] : kParts) {
    if (const Value* value = configuration.find(parameter)) name += fmt::format("_{}{}", prefix, to_string(*value));
  }
  return name;
}

RunResult run_session(const Session& session, const Candidates& candidates, const RunnerFactory& make_runner,
                      const std::filesystem::path& directory, const RunOptions& options, const Clock& clock,
                      Observer& observer, const std::atomic<bool>& stop) {
  check_same_run(directory, session, options.loop);
  if (candidates.size() == 0) {
    RunResult result;
    result.reason = EndReason::kNothingFits;
    return result;
  }
  make_writable_directory(directory);
  // The journal first: it refuses a directory in which another krigtune is at work.
  Run run(session, candidates, make_runner, directory, options.loop, clock, observer, stop);
  write_atomically(session_path(directory), run_record(session, options.loop).dump(2) + "\n");
  return run.until_it_ends();
}

}  // namespace krigtune
