// Replays measured tables with K trials at a time on a virtual clock: how long it takes to find the best configuration,
// and how many trials.
//
// usage: scale_out SEEDS SESSION.json...     a row for each session, strategy, K and seed; summarise.py makes the table
//
// A trial takes kStartS plus the time of kSteps steps according to the table. A rate is converted to a time so that a
// step of the best configuration takes one second; times are scaled in the same way. A trial that fails takes only its
// start, and none takes longer than kLongestS, because sessions end trials that are surely worse. Whenever a worker is
// free, the strategy is asked, given what has ended until then and what runs.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <queue>

#include "core/error.h"
#include "run/prepared.h"
#include "run/tuner.h"
#include "search/strategies/strategy.h"
#include "search/trials/objective_scale.h"

namespace krigtune {
namespace {

constexpr double kNear = 0.05;
constexpr double kStartS = 20.0;
constexpr double kSteps = 30.0;
constexpr double kLongestS = 170.0;  // five times as slow as the best
constexpr int kMostTrials = 200;

struct Found {
  int trials = 0;       ///< number of closed trials at that time
  double wall_s = 0.0;  ///< on the virtual clock
  bool within = false;
};

struct Running {
  double ends_s = 0.0;
  int trial = 0;
  bool operator<(const Running& other) const {  // the earliest on top; of equal times, the one that began first
    return ends_s > other.ends_s || (ends_s == other.ends_s && trial > other.trial);
  }
};

/// A space, prepared once for all strategies, seeds and numbers of workers.
class Table {
 public:
  explicit Table(const std::filesystem::path& file)
      : prepared_(session::load_session(file)),
        optimum_(prepared_.session.table->optimum(prepared_.session.space).value()) {}

  Found run(search::StrategyKind kind, int workers, std::uint64_t seed) const {
    const auto strategy = search::make_strategy(kind, prepared_.session, prepared_.candidates, {seed, kMostTrials});
    run::Tuner tuner({prepared_.session, prepared_.candidates, *strategy, clock_});
    std::priority_queue<Running> running;
    Found found;
    while (found.trials < kMostTrials) {
      while (static_cast<int>(running.size()) < workers) {
        const std::optional<journal::Trial> trial = tuner.ask();
        if (!trial) break;
        running.push({found.wall_s + seconds_of(trial->proposal.configuration), trial->number});
      }
      if (running.empty()) break;
      const Running next = running.top();
      running.pop();
      found.wall_s = next.ends_s;
      ++found.trials;
      const space::Configuration& configuration =
          tuner.history()[static_cast<std::size_t>(next.trial)].proposal.configuration;
      const trial::Outcome outcome = prepared_.session.table->look_up(configuration, 0);
      tuner.tell(next.trial, outcome, seconds_of(configuration));
      if (regret_of(configuration) <= kNear) {
        found.within = true;
        break;
      }
    }
    return found;
  }

  std::string name() const { return prepared_.session.file.stem().string(); }

 private:
  // Returns how many times slower than the best it is; empty if it fails.
  std::optional<double> slowness_of(const space::Configuration& configuration) const {
    const std::optional<double> value = prepared_.session.table->value_of(configuration);
    if (!value) return std::nullopt;
    return prepared_.session.objective.maximize ? optimum_ / *value : *value / optimum_;
  }
  double seconds_of(const space::Configuration& configuration) const {
    return std::min(kStartS + kSteps * slowness_of(configuration).value_or(0.0), kLongestS);
  }
  double regret_of(const space::Configuration& configuration) const {
    const std::optional<double> slowness = slowness_of(configuration);
    return slowness ? *slowness - 1.0 : 1.0;
  }

  run::Prepared prepared_;
  double optimum_;
  ManualClock clock_;
};

int run_all(int seeds, const std::vector<std::string>& files) {
  std::cout << "session,strategy,workers,seed,within,trials,wall_s\n";
  for (const std::string& file : files) {
    const Table table(file);
    for (const search::StrategyKind kind : {search::StrategyKind::kBayes, search::StrategyKind::kRandom}) {
      for (const int workers : {1, 2, 4, 8}) {
        for (int seed = 1; seed <= seeds; ++seed) {
          const Found found = table.run(kind, workers, static_cast<std::uint64_t>(seed));
          std::cout << fmt::format("{},{},{},{},{},{},{:.1f}\n", table.name(), search::to_string(kind), workers, seed,
                                   found.within ? 1 : 0, found.trials, found.wall_s);
        }
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace krigtune

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: scale_out SEEDS SESSION.json...\n";
    return 2;
  }
  try {
    return krigtune::run_all(std::atoi(argv[1]), {argv + 2, argv + argc});
  } catch (const krigtune::UserError& error) {
    std::cerr << "scale_out: " << error.what() << '\n';
    return 2;
  }
}
