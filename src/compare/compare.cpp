#include "compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <numeric>

#include "core/error.h"
#include "core/parallel.h"
#include "run/run_directory.h"
#include "run/runner_pool.h"
#include "session/goodput.h"

namespace krigtune::compare {
namespace {

std::optional<double> worth_in_table(const session::Session& session, const space::Configuration& configuration) {
  const std::optional<double> value = session.table->value_of(configuration);
  return value ? std::optional(in_objective(session, configuration, *value)) : std::nullopt;
}

ComparedTrial compared_trial(const ComparedJob& job, const journal::Trial& trial, int number) {
  ComparedTrial row;
  row.strategy = job.key.strategy;
  row.seed = job.key.seed;
  row.trial = number;
  row.status = trial::status_text(*trial.outcome);
  row.value = search::value_of(trial, job.session.objective);
  row.wall_s = trial.proposal.suggest_s + trial.wall_s;
  row.configuration = job.candidates.key(trial.proposal.configuration);
  if (row.value && job.session.table) row.worth = worth_in_table(job.session, trial.proposal.configuration);
  return row;
}

std::vector<ComparedTrial> compared_trials(const ComparedJob& job, const search::History& history) {
  std::vector<ComparedTrial> rows;
  for (const journal::Trial& trial : history) {
    if (!trial.outcome || !search::counts(trial)) continue;
    if (static_cast<int>(rows.size()) == job.options.trials) break;  // resumed with a smaller budget
    rows.push_back(compared_trial(job, trial, static_cast<int>(rows.size())));
  }
  return rows;
}

// Only the budget of trials ends a run.
session::Session without_stop_rules(const ComparedJob& job) {
  session::Session session = job.session;
  session.budget = session::Budget{};
  session.budget.trials = job.options.trials;
  session.budget.regret = 0.0;
  session.budget.least_gain = 0.0;
  return session;
}

class HookObserver final : public run::Observer {
 public:
  explicit HookObserver(const RunHooks& hooks) : hooks_(hooks) {}

  void resumed(const search::History&) override { hooks_.look(); }
  void waiting(const journal::Trial&) override { hooks_.look(); }
  void trial_ended(const journal::Trial&, const search::History&) override { hooks_.trial_ended(); }

 private:
  const RunHooks& hooks_;
};

}  // namespace

double in_objective(const session::Session& session, const space::Configuration& configuration, double value) {
  const session::Objective& objective = session.objective;
  if (objective.throughput_field.empty()) return value;
  return value * session::statistical_efficiency(*objective.gradient_noise,
                                                 static_cast<double>(session::global_batch(session, configuration)));
}

RunRows run_in_memory(const ComparedJob& job, const RunHooks& hooks) {
  const std::unique_ptr<trial::Runner> runner = job.make_runner();
  const auto strategy =
      search::make_strategy(job.key.strategy, job.session, job.candidates, {job.key.seed, job.options.trials});
  run::Tuner tuner({job.session, job.candidates, *strategy, job.clock});
  RunRows run;
  while (static_cast<int>(tuner.history().size()) < job.options.trials) {
    hooks.look();
    if (hooks.stop) break;
    const std::optional<journal::Trial> trial = tuner.ask();
    if (!trial) {
      run.whole = true;
      break;
    }
    const double begun_s = job.clock.now_s();
    const trial::Outcome outcome = run::run_trial(job.candidates.filter(), *runner, trial->proposal, {});
    tuner.tell(trial->number, trial::usable(outcome, job.session.objective.field), job.clock.now_s() - begun_s);
    hooks.trial_ended();
  }
  run.whole = run.whole || static_cast<int>(tuner.history().size()) == job.options.trials;
  run.rows = compared_trials(job, tuner.history());
  return run;
}

RunRows run_on_disk(const ComparedJob& job, const RunHooks& hooks) {
  const std::filesystem::path directory =
      job.options.directory / fmt::format("{}-{}", search::to_string(job.key.strategy), job.key.seed);
  HookObserver observer(hooks);
  run::RunOptions options;
  options.loop = job.key;
  options.keep_going = true;
  const session::Session session = without_stop_rules(job);
  if (const std::string search = run::change_since_begun(directory, session, options.loop).search; !search.empty()) {
    throw UserError(fmt::format("{}: was begun with another strategy: {}", directory.string(), search),
                    "change it back, or choose another directory with --out");
  }
  const run::RunResult result =
      run::run_session(session, job.candidates, job.make_runner, directory, options, job.clock, observer, hooks.stop);
  if (result.reason == run::EndReason::kEnvironment) {
    throw EnvironmentError(fmt::format("{}: nothing can run here: {}", directory.string(), result.detail),
                           "fix it and run the same command again: what was measured is kept");
  }
  return {compared_trials(job, result.history), result.reason != run::EndReason::kInterrupted};
}

namespace {

std::vector<run::LoopOptions> runs_of(const session::Session& session, const CompareOptions& options) {
  std::vector<run::LoopOptions> keys;
  for (const search::StrategyKind strategy : options.strategies) {
    const int seeds = search::depends_on_seed(strategy, session) ? options.seeds : 1;
    for (int i = 0; i < seeds; ++i) keys.push_back({strategy, options.seed + static_cast<std::uint64_t>(i)});
  }
  return keys;
}

// Sorts seed by seed, so that an interrupted comparison has complete pairs, and drifts of the machine affect all
// strategies.
std::vector<std::size_t> order_of(const std::vector<run::LoopOptions>& keys) {
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return keys[a].seed < keys[b].seed; });
  return order;
}

/// Runs jobs [0, count) on `threads` threads until `stop`. An exception stops all of them and is thrown here.
void in_threads(int threads, std::size_t count, std::atomic<bool>& stop, const std::function<void(std::size_t)>& job) {
  std::atomic<std::size_t> next{0};
  run_side_by_side(static_cast<std::size_t>(threads), [&](std::size_t) {
    for (std::size_t i = next++; i < count && !stop; i = next++) {
      try {
        job(i);
      } catch (...) {
        stop = true;
        throw;
      }
    }
  });
}

/// Counts finished runs, and forwards a request to stop to all runs.
class RunsDone {
 public:
  RunsDone(std::size_t runs, const CompareProgress& hear, const std::atomic<bool>* stop) : hear_(hear), wanted_(stop) {
    state_.runs = static_cast<int>(runs);
  }

  void trial_ended() { add(0, 1); }
  void run_ended() { add(1, 0); }
  void look() {
    if (wanted_ != nullptr && *wanted_) stop_ = true;
  }
  std::atomic<bool>& stop() { return stop_; }

 private:
  void add(int runs, int trials) {
    const std::lock_guard lock(mutex_);
    state_.runs_done += runs;
    state_.trials_done += trials;
    if (hear_) hear_(state_);
    look();
  }

  const CompareProgress& hear_;
  const std::atomic<bool>* wanted_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  // guards state_ and hear_
  CompareState state_;
};

std::optional<double> optimum_of_table(const session::Session& session) {
  return session.table->optimum(session.space, [&](const space::Configuration& configuration, double value) {
    return in_objective(session, configuration, value);
  });
}

Comparison collect(std::vector<RunRows> runs, const std::vector<run::LoopOptions>& keys,
                   const session::Session& session) {
  Comparison comparison;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].whole) comparison.cut_short.emplace_back(keys[i].strategy, keys[i].seed);
    std::move(runs[i].rows.begin(), runs[i].rows.end(), std::back_inserter(comparison.trials));
  }
  if (session.table) comparison.optimum = optimum_of_table(session);
  comparison.optimum_is_known = comparison.optimum.has_value();
  return comparison;
}

}  // namespace

Comparison compare(const session::Session& session, const search::Candidates& candidates, const CompareOptions& options,
                   const trial::RunnerFactory& make_runner, const Clock& clock, const CompareProgress& progress,
                   const std::atomic<bool>* stop) {
  const std::vector<run::LoopOptions> keys = runs_of(session, options);
  std::vector<RunRows> runs(keys.size());
  RunsDone state(keys.size(), progress, stop);
  state.look();
  const RunHooks hooks{state.stop(), [&] { state.look(); }, [&] { state.trial_ended(); }};
  const std::vector<std::size_t> order = order_of(keys);
  in_threads(std::max(options.jobs, 1), keys.size(), state.stop(), [&](std::size_t turn) {
    const std::size_t i = order[turn];
    const ComparedJob job{session, candidates, options, keys[i], make_runner, clock};
    runs[i] = runner::traits_of(session.runner).runs_programs ? run_on_disk(job, hooks) : run_in_memory(job, hooks);
    state.run_ended();
  });
  Comparison comparison = collect(std::move(runs), keys, session);
  summarise(comparison, session.objective, options.trials);
  return comparison;
}

}  // namespace krigtune::compare
