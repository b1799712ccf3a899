// Tunes on a cluster that exists only in this process (virtual_cluster.h): a thousand nodes that fail, racks that fail,
// preemption, late results, and a tuner that is killed in the middle and started again five minutes later.
//
// usage: scale_cluster SESSION.json OUT STRATEGY JOBS [TRIALS [DRAWN]]
//   OUT     a new directory
//   JOBS    trials at a time
//   DRAWN   so many trials are first drawn at random, which takes seconds; then STRATEGY continues
//
// Prints what happened, whether every trial ended exactly once, how long suggestions took (processor time, by the
// number of trials before them), and the peak memory.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "run/prepared.h"
#include "run/run_directory.h"
#include "virtual_cluster.h"

namespace krigtune::scale_out {
namespace {

void print_suggestions(const std::vector<double>& suggest_s, int before) {
  std::cout << "trials before,median s,95 % s,longest s\n";
  constexpr std::size_t kParts = 10;
  const std::size_t width = std::max<std::size_t>(suggest_s.size() / kParts, 1);
  for (std::size_t first = 0; first + width <= suggest_s.size(); first += width) {
    std::vector<double> part(suggest_s.begin() + static_cast<std::ptrdiff_t>(first),
                             suggest_s.begin() + static_cast<std::ptrdiff_t>(first + width));
    std::sort(part.begin(), part.end());
    std::cout << fmt::format("{}-{},{:.4f},{:.4f},{:.4f}\n", before + static_cast<int>(first),
                             before + static_cast<int>(first + width) - 1, part[width / 2], part[width * 95 / 100],
                             part.back());
  }
}

struct Task {
  std::string session;
  std::filesystem::path directory;
  search::StrategyKind strategy = search::StrategyKind::kBayes;
  int jobs = 1;
  int trials = 0;
  int drawn = 0;
};

// A directory belongs to one strategy, but here another one continues it.
void hand_over(const std::filesystem::path& directory, search::StrategyKind strategy) {
  Json record = load_json(run::session_path(directory));
  record["strategy"] = search::to_string(strategy);
  write_atomically(run::session_path(directory), record.dump(2) + "\n");
}

int run_all(const Task& task) {
  run::Prepared prepared(session::load_session(task.session));
  VirtualClock clock(true);
  VirtualCluster cluster(clock, {.most_jobs = task.jobs, .faults = kRoughLife});
  const auto runner = runner::make_runner(prepared.session.runner, {prepared.session.workload,
                                                                    prepared.session.cluster,
                                                                    prepared.session.memory,
                                                                    prepared.session.space,
                                                                    nullptr,
                                                                    prepared.session.objective.field,
                                                                    {},
                                                                    nullptr,
                                                                    clock});
  run::RunOptions options;
  const SystemClock own;
  const double begun_s = own.now_s();
  if (task.drawn > 0) {
    Watcher drawing(cluster, 0);
    options.loop.strategy = search::StrategyKind::kRandom;
    prepared.session.budget.trials = task.drawn;
    tune_with_a_death(prepared, *runner, task.directory, options, cluster, clock, drawing);
    hand_over(task.directory, task.strategy);
  }
  options.loop.strategy = task.strategy;
  prepared.session.budget.trials = task.trials;
  Watcher watcher(cluster, (task.trials - task.drawn) / 2);
  const run::RunResult result = tune_with_a_death(prepared, *runner, task.directory, options, cluster, clock, watcher);
  const ClusterCounts counts = cluster.counts();
  std::cout << fmt::format(
      "{} candidates, {} jobs at a time, {} trials in {:.1f} hours of the cluster and {:.0f} s here; peak of memory "
      "{:.0f} "
      "MB\n",
      prepared.candidates.listed() ? std::to_string(prepared.candidates.size()) : "unlisted", task.jobs,
      result.history.size(), clock.virtual_s() / 3600.0, own.now_s() - begun_s, peak_memory_mb());
  std::cout << fmt::format(
      "{} jobs submitted, at most {} at a time, {} of them waiting; {} nodes failed, {} preempted, {} requeued by the "
      "scheduler, {} lost, {} late, {} ended while no tuner was there\n",
      counts.submitted, counts.most_pending, counts.most_waiting, counts.nodes_failed, counts.preempted,
      counts.requeued, counts.lost, counts.late, counts.ended_unseen);
  const std::vector<std::string> wrong = what_is_wrong(prepared.candidates, result.history, cluster);
  for (const std::string& line : wrong) std::cout << line << '\n';
  if (wrong.empty()) std::cout << "no trial lost, none repeated\n";
  print_suggestions(watcher.suggest_s, task.drawn);
  return wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace krigtune::scale_out

int main(int argc, char** argv) {
  constexpr int kTrials = 5000;
  if (argc < 5 || argc > 7) {
    std::cerr << "usage: scale_cluster SESSION.json OUT STRATEGY JOBS [TRIALS [DRAWN]]\n";
    return 2;
  }
  const auto number = [&](int index, int otherwise) { return argc > index ? std::atoi(argv[index]) : otherwise; };
  try {
    return krigtune::scale_out::run_all({argv[1], argv[2], krigtune::search::strategy_kind_from(argv[3], "STRATEGY"),
                                         number(4, 1), number(5, kTrials), number(6, 0)});
  } catch (const krigtune::UserError& error) {
    std::cerr << "scale_cluster: " << error.what() << '\n';
    return 2;
  }
}
