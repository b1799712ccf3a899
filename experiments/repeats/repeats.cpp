// Is it worth a trial to measure a configuration again? See README.md beside this file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "core/hash.h"
#include "krigtune/rng.h"
#include "run/tuner.h"
#include "search/model/best.h"

namespace {

using namespace krigtune;

struct Options {
  std::string session;
  int seeds = 30;
  int jobs = 1;
  bool physics = true;
  bool shuffled = false;
  double noise = 0.0;  ///< relative; 0: the table's rows unchanged
};

/// A table's values of a configuration: the mean of its rows.
struct Truth {
  std::map<std::string, double> means;
  double best = 0.0;
  double relative_error = 0.0;  ///< standard error of a difference of two means, pooled

  double tolerance() const { return std::max(0.02, 2.0 * relative_error); }

  Truth(const session::Session& session, const runner::ReplayTable& table, const search::Candidates& candidates,
        bool rows_are_noisy) {
    double squares = 0.0;
    double degrees = 0.0;
    double rows = 1.0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const int count = rows_are_noisy ? table.measurements(candidates[i]) : 1;
      std::vector<double> values;
      for (int row = 0; row < count; ++row) {
        journal::Trial trial;
        trial.outcome = table.look_up(candidates[i], row);
        if (const auto value = search::value_of(trial, session.objective)) values.push_back(*value);
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

/// The inputs that all runs share.
struct Setting {
  const session::Session& session;
  const runner::ReplayTable& table;
  const search::Candidates& candidates;
  const Truth& truth;
  const Options& options;
};

std::uint64_t hash_of(const std::string& key) {
  Fnv1a64 hash;
  hash.add(key.data(), key.size());
  return hash.value();
}

/// The rows of a table in turn, or in a random order for each configuration, or its first row with additional noise.
class Measuring {
 public:
  Measuring(const Setting& setting, std::uint64_t seed)
      : session_(setting.session),
        table_(setting.table),
        candidates_(setting.candidates),
        options_(setting.options),
        seed_(seed) {}

  trial::Outcome operator()(const space::Configuration& configuration) {
    const std::string key = candidates_.key(configuration);
    const auto [its, is_new] = turns_.try_emplace(key);
    Turn& turn = its->second;
    if (is_new) {
      for (int row = 0; row < table_.measurements(configuration); ++row) turn.rows.push_back(row);
      Rng rng(seed_, hash_of(key));
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
  // Runs differ by noise that none of them states, and by a third of that, which they state.
  trial::Outcome with_noise(trial::Outcome outcome, const std::string& key, std::size_t measurement) const {
    auto* measured = std::get_if<trial::Measured>(&outcome);
    if (measured == nullptr) return outcome;
    Rng rng(seed_, hash_of(key) + measurement);
    const double within = options_.noise / 3.0;
    double& value = measured->metrics.at(session_.objective.field);
    value *= std::exp(options_.noise * rng.normal() + within * rng.normal());
    measured->value_sem = within * value;
    return outcome;
  }

  const session::Session& session_;
  const runner::ReplayTable& table_;
  const search::Candidates& candidates_;
  const Options& options_;
  std::uint64_t seed_;
  std::map<std::string, Turn> turns_;
};

struct Score {
  std::map<int, double> within;  ///< fraction of the seeds, after so many trials
  std::map<int, double> regret;  ///< mean of 1 - mean value of the recommended / best
  double repeats = 0.0;
  double failures = 0.0;
  double suggest_s = 0.0;
  std::vector<double> to_5pct;  ///< trials until a configuration within 5 % of the best was measured
};

/// Judges the recommendation after so many trials by the table's values.
void judge(const Setting& setting, const search::History& history, int trials, std::uint64_t seed, Score& score) {
  const search::History known(history.begin(), history.begin() + std::min<std::ptrdiff_t>(trials, std::ssize(history)));
  const auto best = search::recommend(setting.session, setting.candidates, known, seed);
  const Truth& truth = setting.truth;
  const double share = best ? truth.means.at(setting.candidates.key(best->configuration)) / truth.best : 0.0;
  score.within[trials] += (share >= 1.0 - truth.tolerance() ? 1.0 : 0.0) / setting.options.seeds;
  score.regret[trials] += (1.0 - share) / setting.options.seeds;
}

void count(const Setting& setting, const journal::Trial& trial, Score& score) {
  score.suggest_s += trial.proposal.suggest_s / setting.session.budget.trials / setting.options.seeds;
  if (trial.proposal.repeat_of) score.repeats += 1.0 / setting.options.seeds;
}

/// Asks until so many trials are open, and then closes the oldest one.
void run_once(const Setting& setting, std::uint64_t seed, bool repeats, Score& score) {
  const int budget = setting.session.budget.trials;
  const auto strategy = search::make_strategy(search::StrategyKind::kBayes, setting.session, setting.candidates,
                                              {.seed = seed, .trials = budget, .repeats = repeats});
  const SystemClock clock;
  run::Tuner tuner({setting.session, setting.candidates, *strategy, clock});
  Measuring measure(setting, seed);
  int within_5pct = budget + 1;
  for (int closed = 0; closed < budget;) {
    while (std::ssize(tuner.history()) < std::min(closed + setting.options.jobs, budget)) {
      const auto trial = tuner.ask();
      if (!trial) break;
      count(setting, *trial, score);
    }
    if (std::ssize(tuner.history()) == closed) break;  // no configuration remains
    const space::Configuration configuration = tuner.history()[static_cast<std::size_t>(closed)].proposal.configuration;
    const trial::Outcome outcome = measure(configuration);
    if (!std::holds_alternative<trial::Measured>(outcome) && closed < 20) score.failures += 1.0 / setting.options.seeds;
    tuner.tell(closed++, outcome, 0.0);
    const auto mean = setting.truth.means.find(setting.candidates.key(configuration));
    if (mean != setting.truth.means.end() && mean->second >= 0.95 * setting.truth.best) {
      within_5pct = std::min(within_5pct, closed);
    }
  }
  for (int trials = 10; trials <= budget; trials += 10) judge(setting, tuner.history(), trials, seed, score);
  score.to_5pct.push_back(within_5pct);
}

Score score_of(const Setting& setting, bool repeats) {
  Score score;
  for (int seed = 1; seed <= setting.options.seeds; ++seed) {
    run_once(setting, static_cast<std::uint64_t>(seed), repeats, score);
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

int run_experiment(const Options& options) {
  session::Session session = session::load_session(options.session);
  if (session.table == nullptr || !session.objective.maximize) {
    throw UserError(options.session + ": not a table whose values are maximised", "name such a session");
  }
  const session::MemoryFilter filter(session);
  const auto physics = options.physics ? forecast::make_physics_prior(session, filter) : nullptr;
  const search::Candidates candidates(session, filter, physics ? forecast::Priors{physics} : forecast::Priors{});
  const std::shared_ptr<const runner::ReplayTable> table = session.table;
  const Truth truth(session, *table, candidates, options.noise == 0.0);
  if (options.noise > 0.0) session.table = nullptr;  // allows any number of measurements
  fmt::print("{} configurations, best {:.6g}, tolerance {:.1f} %, physics {}\n", candidates.size(), truth.best,
             100.0 * truth.tolerance(), physics ? "yes" : "no");
  const Setting setting{session, *table, candidates, truth, options};
  for (const bool repeats : {false, true}) {
    print(repeats ? "repeats" : "once", score_of(setting, repeats));
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
    } else if (word.rfind("--", 0) == 0) {
      throw UserError("unknown option " + word, "see README.md");
    } else {
      options.session = word;
    }
  }
  return run_experiment(options);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
