// Is measuring a configuration again worth its trial? See README.md beside this file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "krigtune/core/clock.h"
#include "krigtune/tuner/best.h"
#include "krigtune/tuner/tuner.h"

namespace {

using namespace krigtune;

struct Options {
  std::string session;
  int seeds = 30;
  int jobs = 1;
  bool physics = true;
  bool shuffled = false;
  double noise = 0.0;  ///< relative; 0: the table's rows as they are
};

/// What a table says of a configuration: the mean of its rows.
struct Truth {
  std::map<std::string, double> means;
  double best = 0.0;
  double relative_error = 0.0;  ///< standard error of a difference of two means, pooled

  Truth(const Session& session, const ReplayTable& table, const Candidates& candidates, bool rows_are_noisy) {
    double squares = 0.0;
    double degrees = 0.0;
    double rows = 1.0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const int count = rows_are_noisy ? table.measurements(candidates[i]) : 1;
      std::vector<double> values;
      for (int row = 0; row < count; ++row) {
        Trial trial;
        trial.outcome = table.look_up(candidates[i], row);
        if (const auto value = value_of(trial, session.objective)) values.push_back(*value);
      }
      if (values.empty()) continue;
      double mean = 0.0;
      for (const double value : values) mean += value / static_cast<double>(values.size());
      for (const double value : values) squares += (value / mean - 1.0) * (value / mean - 1.0);
      degrees += static_cast<double>(values.size()) - 1.0;
      rows = static_cast<double>(values.size());
      means[candidates.key(candidates[i])] = mean;
      best = std::max(best, mean);
    }
    relative_error = degrees > 0.0 ? std::sqrt(2.0 * squares / degrees / rows) : 0.0;
  }
};

/// The rows of a table in turn, or in an order drawn for each configuration; or its first row with noise of its own.
class Measuring {
 public:
  Measuring(const Session& session, const ReplayTable& table, const Candidates& candidates, std::uint64_t seed,
            const Options& options)
      : session_(session), table_(table), candidates_(candidates), seed_(seed), options_(options) {}

  Outcome operator()(const Configuration& configuration) {
    const std::string key = candidates_.key(configuration);
    const auto [its, is_new] = turns_.try_emplace(key);
    Turn& turn = its->second;
    if (is_new) {
      for (int row = 0; row < table_.measurements(configuration); ++row) turn.rows.push_back(row);
      Rng rng(seed_, std::hash<std::string>{}(key));
      if (options_.shuffled) rng.shuffle(turn.rows);
    }
    const std::size_t measurement = turn.next++;
    if (options_.noise > 0.0) return with_noise(table_.look_up(configuration, 0), key, measurement);
    return table_.look_up(configuration, turn.rows[measurement % turn.rows.size()]);
  }

 private:
  struct Turn {
    std::vector<int> rows;
    std::size_t next = 0;
  };
  // Runs differ by what is stated of none of them, and by a third of that, which they state.
  Outcome with_noise(Outcome outcome, const std::string& key, std::size_t measurement) const {
    auto* measured = std::get_if<Measured>(&outcome);
    if (measured == nullptr) return outcome;
    Rng rng(seed_, std::hash<std::string>{}(key) + measurement);
    const double within = options_.noise / 3.0;
    double& value = measured->metrics.at(session_.objective.field);
    value *= std::exp(options_.noise * rng.normal() + within * rng.normal());
    measured->value_sem = within * value;
    return outcome;
  }

  const Session& session_;
  const ReplayTable& table_;
  const Candidates& candidates_;
  std::uint64_t seed_;
  const Options& options_;
  std::map<std::string, Turn> turns_;
};

struct Score {
  std::map<int, double> within;  ///< share of the seeds, after so many trials
  std::map<int, double> regret;  ///< mean of 1 - mean value of the recommended / best
  double repeats = 0.0;
  double failures = 0.0;
  double suggest_s = 0.0;
  std::vector<double> to_5pct;  ///< trials until a configuration within 5 % of the best was measured
};

void run_once(const Session& session, const ReplayTable& table, const Candidates& candidates, const Truth& truth,
              const Options& options, std::uint64_t seed, bool repeats, Score& score) {
  const int budget = session.budget.trials;
  const auto strategy = make_strategy(StrategyKind::kBayes, session, candidates, {seed, budget, repeats});
  const SystemClock clock;
  Tuner tuner({session, candidates, *strategy, clock});
  Measuring measure(session, table, candidates, seed, options);
  int closed = 0;
  int within_5pct = budget + 1;
  const double tolerance = std::max(0.02, 2.0 * truth.relative_error);
  const auto judge = [&](int trials) {
    const History known(tuner.history().begin(), tuner.history().begin() + std::min(trials, closed));
    const auto best = recommend(session, candidates, known, seed);
    const double share = best ? truth.means.at(candidates.key(best->configuration)) / truth.best : 0.0;
    score.within[trials] += (share >= 1.0 - tolerance ? 1.0 : 0.0) / options.seeds;
    score.regret[trials] += (1.0 - share) / options.seeds;
  };
  while (closed < budget) {
    int asked = static_cast<int>(tuner.history().size());
    for (; asked < std::min(closed + options.jobs, budget); ++asked) {
      const auto trial = tuner.ask();
      if (!trial) break;
      score.suggest_s += trial->proposal.suggest_s / budget / options.seeds;
      if (trial->proposal.repeat_of) score.repeats += 1.0 / options.seeds;
    }
    if (asked == closed) break;  // nothing is left
    const Configuration configuration = tuner.history()[static_cast<std::size_t>(closed)].proposal.configuration;
    const Outcome outcome = measure(configuration);
    if (!std::holds_alternative<Measured>(outcome)) score.failures += closed < 20 ? 1.0 / options.seeds : 0.0;
    tuner.tell(closed++, outcome, 0.0);
    const auto mean = truth.means.find(candidates.key(configuration));
    if (mean != truth.means.end() && mean->second >= 0.95 * truth.best) within_5pct = std::min(within_5pct, closed);
    if (closed % 10 == 0) judge(closed);
  }
  for (int trials = (closed / 10 + 1) * 10; trials <= budget; trials += 10) judge(trials);
  score.to_5pct.push_back(within_5pct);
}

Score score_of(const Session& session, const ReplayTable& table, const Candidates& candidates, const Truth& truth,
               const Options& options, bool repeats) {
  Score score;
  for (int seed = 1; seed <= options.seeds; ++seed) {
    run_once(session, table, candidates, truth, options, static_cast<std::uint64_t>(seed), repeats, score);
  }
  return score;
}

void print(const char* name, Score score) {
  std::sort(score.to_5pct.begin(), score.to_5pct.end());
  double mean = 0.0;
  for (const double trials : score.to_5pct) mean += trials / static_cast<double>(score.to_5pct.size());
  fmt::print(
      "{:>8}  repeats {:.1f}  failed of first 20 {:.1f}  measured within 5 %: median {:.1f} mean {:.1f}  "
      "suggestion {:.1f} ms\n",
      name, score.repeats, score.failures, score.to_5pct[score.to_5pct.size() / 2], mean, 1e3 * score.suggest_s);
  for (const auto& [trials, share] : score.within) {
    fmt::print("{:>8}  after {} trials: recommended within tolerance {:.0f} %, mean regret {:.2f} %\n", "", trials,
               100.0 * share, 100.0 * score.regret.at(trials));
  }
}

int run(const Options& options) {
  Session session = load_session(options.session);
  const MemoryFilter filter(session);
  const auto physics = options.physics ? make_physics_prior(session, filter) : nullptr;
  const Candidates candidates(session, filter, physics ? Priors{physics} : Priors{});
  const std::shared_ptr<const ReplayTable> table = session.table;
  const Truth truth(session, *table, candidates, options.noise == 0.0);
  if (options.noise > 0.0) session.table = nullptr;  // any number of measurements
  fmt::print("{} configurations, best {:.6g}, tolerance {:.1f} %, physics {}\n", candidates.size(), truth.best,
             100.0 * std::max(0.02, 2.0 * truth.relative_error), physics ? "yes" : "no");
  for (const bool repeats : {false, true}) {
    print(repeats ? "repeats" : "once", score_of(session, *table, candidates, truth, options, repeats));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--no-physics") {
      options.physics = false;
    } else if (word == "--shuffled") {
      options.shuffled = true;
    } else if (word == "--seeds" && i + 1 < argc) {
      options.seeds = std::atoi(argv[++i]);
    } else if (word == "--noise" && i + 1 < argc) {
      options.noise = std::atof(argv[++i]);
    } else if (word == "--jobs" && i + 1 < argc) {
      options.jobs = std::atoi(argv[++i]);
    } else {
      options.session = word;
    }
  }
  return run(options);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
