#include "krigtune/tuner/compare.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <exception>
#include <mutex>
#include <thread>

#include "krigtune/tuner/goodput.h"
#include "krigtune/tuner/tuner.h"
#include "run/run_trial.h"

namespace krigtune {
namespace {

struct RunKey {
  StrategyKind strategy{};
  std::uint64_t seed = 0;
};

std::vector<RunKey> runs_of(const Session& session, const CompareOptions& options) {
  std::vector<RunKey> keys;
  for (const StrategyKind strategy : options.strategies) {
    const int seeds = depends_on_seed(strategy, session) ? options.seeds : 1;
    for (int i = 0; i < seeds; ++i) keys.push_back({strategy, options.seed + static_cast<std::uint64_t>(i)});
  }
  return keys;
}

std::vector<ComparedTrial> run_once(const Session& session, const Candidates& candidates, const RunKey& key, int trials,
                                    Runner& runner, const Clock& clock) {
  const auto strategy = make_strategy(key.strategy, session, candidates, {key.seed, trials});
  Tuner tuner({session, candidates, *strategy, clock});
  std::vector<ComparedTrial> rows;
  while (static_cast<int>(rows.size()) < trials) {
    const std::optional<Trial> trial = tuner.ask();
    if (!trial) break;
    const double begun_s = clock.now_s();
    const Outcome outcome = run_trial(candidates.filter(), runner, trial->proposal.configuration, {});
    ComparedTrial row;
    row.strategy = key.strategy;
    row.seed = key.seed;
    row.trial = trial->number;
    row.wall_s = clock.now_s() - begun_s;
    row.status = status_text(outcome);
    tuner.tell(trial->number, outcome, row.wall_s);
    row.value = value_of(tuner.history().back(), session.objective);
    rows.push_back(row);
  }
  return rows;
}

/// Runs jobs [0, count) on so many threads; the first exception ends it and is thrown here.
void in_threads(int threads, std::size_t count, const std::function<void(std::size_t)>& job) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;  // of failure
  std::exception_ptr failure;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        job(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  std::vector<std::thread> pool;
  for (int i = 1; i < threads; ++i) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
}

// In the objective's unit.
std::optional<double> optimum_of_table(const Session& session) {
  const Objective& objective = session.objective;
  if (objective.throughput_field.empty()) return session.table->optimum(session.space);
  return session.table->optimum(session.space, [&](const Configuration& configuration, double value) {
    return value *
           statistical_efficiency(*objective.gradient_noise, static_cast<double>(global_batch(session, configuration)));
  });
}

}  // namespace

Comparison compare(const Session& session, const Candidates& candidates, const CompareOptions& options,
                   const RunnerFactory& make_runner, const Clock& clock, const CompareProgress& progress) {
  const std::vector<RunKey> keys = runs_of(session, options);
  std::vector<std::vector<ComparedTrial>> runs(keys.size());
  std::mutex mutex;  // of done and progress
  int done = 0;
  in_threads(std::max(options.jobs, 1), keys.size(), [&](std::size_t i) {
    const std::unique_ptr<Runner> runner = make_runner();
    runs[i] = run_once(session, candidates, keys[i], options.trials, *runner, clock);
    const std::lock_guard lock(mutex);
    ++done;
    if (progress) progress(done, static_cast<int>(keys.size()));
  });
  Comparison comparison;
  for (const auto& run : runs) comparison.trials.insert(comparison.trials.end(), run.begin(), run.end());
  if (session.table) comparison.optimum = optimum_of_table(session);
  comparison.optimum_is_known = comparison.optimum.has_value();
  summarise(comparison, session.objective, options.trials);
  return comparison;
}

}  // namespace krigtune
