// Replays sessions until their stop rules end them, and checks whether their statements at the end were true.
// usage: stopping SEEDS SESSION.json...     a row for each session, noise and seed; summarise.py makes tables from them
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "core/error.h"
#include "krigtune/rng.h"
#include "run/loop.h"
#include "run/prepared.h"
#include "search/model/best.h"

namespace krigtune {
namespace {

constexpr double kNear = 0.05;
constexpr double kNormal95 = 1.6449;
constexpr double kStatedShare = 0.25;  // of the noise: a run sees little of the differences between runs

/// A table's answers, each multiplied by exp(Normal(0, noise^2)), drawn from (seed, number of draws).
class NoisyRunner final : public trial::Runner {
 public:
  NoisyRunner(const runner::ReplayTable& table, std::string field, double noise, std::uint64_t seed)
      : table_(runner::make_replay_runner(table)), field_(std::move(field)), noise_(noise), rng_(seed, 0) {}

  trial::Outcome run(const space::Configuration& configuration, const trial::RunContext& context) override {
    trial::Outcome outcome = table_->run(configuration, context);
    auto* measured = std::get_if<trial::Measured>(&outcome);
    if (measured == nullptr || noise_ == 0.0) return outcome;
    double& value = measured->metrics.at(field_);
    value *= std::exp(noise_ * rng_.normal());
    measured->value_sem = kStatedShare * noise_ * value;
    return outcome;
  }

 private:
  std::unique_ptr<trial::Runner> table_;
  std::string field_;
  double noise_;
  Rng rng_;
};

/// How one session ended.
struct Ended {
  run::EndReason reason{};
  int trials = 0;
  double bound = -1.0;  ///< negative: none was stated
  double regret = 1.0;  ///< of its recommendation, without noise, as a fraction of it
  int first_near = 0;   ///< the first trial within 5 % of the best, counted from 1; budget + 1 if there is none
  int predicted = 0;    ///< trials whose value was predicted
  int held = 0;         ///< how many of these lie within the central interval of 90 %
};

/// A space, prepared once for all seeds.
class Replayed {
 public:
  explicit Replayed(const std::filesystem::path& file) : prepared_(session::load_session(file)) {}

  Ended run(std::uint64_t seed, double noise, const std::filesystem::path& directory) const {
    const trial::RunnerFactory make_runner = [&] {
      return std::make_unique<NoisyRunner>(*prepared_.session.table, prepared_.session.objective.field, noise, seed);
    };
    std::filesystem::remove_all(directory);
    session::Session session = prepared_.session;
    // If the rows of a table take turns, the model must know that values are noisy.
    if (noise > 0.0) std::get<runner::ReplaySpec>(session.runner).repeats = runner::ReplaySpec::Repeats::kCycle;
    run::RunOptions options;
    options.loop.seed = seed;
    run::Observer nobody;
    const std::atomic<bool> stop{false};
    const run::RunResult result =
        run::run_session(session, prepared_.candidates, make_runner, directory, options, clock_, nobody, stop);
    Ended ended;
    ended.reason = result.reason;
    ended.trials = search::closed_trials(result.history);
    if (result.outlook) ended.bound = result.outlook->regret_bound;
    const auto best = search::recommend(session, prepared_.candidates, result.history, seed);
    if (best) ended.regret = regret_of(best->configuration);
    ended.first_near = session.budget.trials + 1;
    for (const journal::Trial& trial : result.history) add(trial, ended);
    return ended;
  }

  std::string name() const { return prepared_.session.file.stem().string(); }

 private:
  void add(const journal::Trial& trial, Ended& ended) const {
    const std::optional<double> value = search::value_of(trial, prepared_.session.objective);
    if (!value) return;
    if (regret_of(trial.proposal.configuration) <= kNear)
      ended.first_near = std::min(ended.first_near, trial.number + 1);
    const journal::Proposal& proposal = trial.proposal;
    if (!proposal.predicted_value || !proposal.predicted_stddev) return;
    // Values are log-normal, and half the width of the 68 % interval is median * sinh(stddev).
    const double stddev = std::asinh(*proposal.predicted_stddev / *proposal.predicted_value);
    ++ended.predicted;
    ended.held += std::abs(std::log(*value / *proposal.predicted_value)) <= kNormal95 * stddev ? 1 : 0;
  }

  double regret_of(const space::Configuration& configuration) const {
    const session::Session& session = prepared_.session;
    const trial::Outcome outcome = session.table->look_up(configuration, 0);
    const double value = std::get<trial::Measured>(outcome).metrics.at(session.objective.field);
    return search::gain_over(session.objective, *session.table->optimum(session.space), value) - 1.0;
  }

  run::Prepared prepared_;
  ManualClock clock_;
};

int run_all(int seeds, const std::vector<std::string>& files) {
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / fmt::format("krigtune_stopping_{}", ::getpid());
  std::cout << "session,noise,seed,ended,trials,bound,regret,first_near,predicted,held_90\n";
  for (const std::string& file : files) {
    const Replayed replayed(file);
    for (const double noise : {0.0, 0.02}) {
      for (int seed = 1; seed <= seeds; ++seed) {
        const Ended ended = replayed.run(static_cast<std::uint64_t>(seed), noise, directory);
        std::cout << fmt::format("{},{},{},{},{},{:.6f},{:.6f},{},{},{}\n", replayed.name(), noise, seed,
                                 run::words_of(ended.reason).sentence, ended.trials, ended.bound, ended.regret,
                                 ended.first_near, ended.predicted, ended.held);
      }
    }
  }
  std::filesystem::remove_all(directory);
  return 0;
}

}  // namespace
}  // namespace krigtune

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: stopping SEEDS SESSION.json...\n";
    return 2;
  }
  try {
    return krigtune::run_all(std::atoi(argv[1]), {argv + 2, argv + argc});
  } catch (const krigtune::UserError& error) {
    std::cerr << "stopping: " << error.what() << '\n';
    return 2;
  }
}
