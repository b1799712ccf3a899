#include "compare/compared_run.h"

#include <fmt/format.h>

#include "krigtune/core/error.h"
#include "krigtune/tuner/goodput.h"
#include "run/run_trial.h"

namespace krigtune {
namespace {

std::optional<double> worth_in_table(const Session& session, const Configuration& configuration) {
  const std::optional<double> value = session.table->value_of(configuration);
  return value ? std::optional(in_objective(session, configuration, *value)) : std::nullopt;
}

ComparedTrial compared_trial(const ComparedJob& job, const Trial& trial, int number) {
  ComparedTrial row;
  row.strategy = job.key.strategy;
  row.seed = job.key.seed;
  row.trial = number;
  row.status = status_text(*trial.outcome);
  row.value = value_of(trial, job.session.objective);
  row.wall_s = trial.proposal.suggest_s + trial.wall_s;
  row.configuration = job.candidates.key(trial.proposal.configuration);
  if (row.value && job.session.table) row.worth = worth_in_table(job.session, trial.proposal.configuration);
  return row;
}

std::vector<ComparedTrial> compared_trials(const ComparedJob& job, const History& history) {
  std::vector<ComparedTrial> rows;
  for (const Trial& trial : history) {
    if (!trial.outcome || !counts(trial)) continue;
    if (static_cast<int>(rows.size()) == job.options.trials) break;  // resumed with a smaller budget
    rows.push_back(compared_trial(job, trial, static_cast<int>(rows.size())));
  }
  return rows;
}

// The budget of trials alone ends a run.
Session without_stop_rules(const ComparedJob& job) {
  Session session = job.session;
  session.budget = Budget{};
  session.budget.trials = job.options.trials;
  session.budget.regret = 0.0;
  session.budget.least_gain = 0.0;
  return session;
}

class HookObserver final : public Observer {
 public:
  explicit HookObserver(const RunHooks& hooks) : hooks_(hooks) {}

  void resumed(const History&) override { hooks_.look(); }
  void waiting(const Trial&) override { hooks_.look(); }
  void trial_ended(const Trial&, const History&) override { hooks_.trial_ended(); }

 private:
  const RunHooks& hooks_;
};

}  // namespace

double in_objective(const Session& session, const Configuration& configuration, double value) {
  const Objective& objective = session.objective;
  if (objective.throughput_field.empty()) return value;
  return value *
         statistical_efficiency(*objective.gradient_noise, static_cast<double>(global_batch(session, configuration)));
}

RunRows run_in_memory(const ComparedJob& job, const RunHooks& hooks) {
  const std::unique_ptr<Runner> runner = job.make_runner();
  const auto strategy =
      make_strategy(job.key.strategy, job.session, job.candidates, {job.key.seed, job.options.trials});
  Tuner tuner({job.session, job.candidates, *strategy, job.clock});
  RunRows run;
  while (static_cast<int>(tuner.history().size()) < job.options.trials) {
    hooks.look();
    if (hooks.stop) break;
    const std::optional<Trial> trial = tuner.ask();
    if (!trial) {
      run.whole = true;
      break;
    }
    const double begun_s = job.clock.now_s();
    const Outcome outcome = run_trial(job.candidates.filter(), *runner, trial->proposal, {});
    tuner.tell(trial->number, outcome, job.clock.now_s() - begun_s);
    hooks.trial_ended();
  }
  run.whole = run.whole || static_cast<int>(tuner.history().size()) == job.options.trials;
  run.rows = compared_trials(job, tuner.history());
  return run;
}

RunRows run_on_disk(const ComparedJob& job, const RunHooks& hooks) {
  const std::filesystem::path directory =
      job.options.directory / fmt::format("{}-{}", to_string(job.key.strategy), job.key.seed);
  HookObserver observer(hooks);
  RunOptions options;
  options.loop = job.key;
  const Session session = without_stop_rules(job);
  const RunResult result =
      run_session(session, job.candidates, job.make_runner, directory, options, job.clock, observer, hooks.stop);
  if (result.reason == EndReason::kEnvironment) {
    throw EnvironmentError(fmt::format("{}: nothing can run here: {}", directory.string(), result.detail),
                           "mend it and give the same command again: what was measured is kept");
  }
  return {compared_trials(job, result.history), result.reason != EndReason::kInterrupted};
}

}  // namespace krigtune
