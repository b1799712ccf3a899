#pragma once
#include <cmath>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>

#include "core/clock.h"
#include "core/files.h"
#include "core/json.h"
#include "run/tuner.h"
#include "runner/runner.h"
#include "trial/temporary_directory.h"

namespace krigtune {

/// A session without workload over the given block "space", with the objective "speed" (or "cost", minimised). Only its
/// budget ends it.
inline session::Session plain_session(const std::string& space, bool maximize = true) {
  session::Session session;
  space::JobFacts facts;
  facts.well_known = false;
  session.space = space::Space(space::read_parameters(parse_json(space, "test"), "test", "/space"), facts);
  const std::string metric = maximize ? "speed" : "cost";
  session.objective = {metric, maximize, metric};
  session.runner = runner::ReplaySpec();  // a runner that needs no files
  session.budget.regret = 0.0;
  session.budget.least_gain = 0.0;
  return session;
}

inline trial::Outcome measured(const session::Session& session, double value) {
  trial::Measured result;
  result.metrics[session.objective.field] = value;
  return result;
}

/// Answers with a function and counts the calls.
class FakeRunner final : public trial::Runner {
 public:
  using Answer = std::function<trial::Outcome(const space::Configuration&)>;
  explicit FakeRunner(Answer answer) : answer_(std::move(answer)) {}
  trial::Outcome run(const space::Configuration& configuration, const trial::RunContext& context) override {
    {
      const std::lock_guard lock(mutex_);
      asked.push_back(configuration);
      rivals.push_back(context.rival);
    }
    return answer_(configuration);
  }
  std::vector<space::Configuration> asked;
  std::vector<std::optional<trial::Rival>> rivals;  ///< one for each call

 private:
  Answer answer_;
  std::mutex mutex_;  // guards asked_
};

/// Makes runners that all use the same one, which must outlive them.
inline trial::RunnerFactory sharing(trial::Runner& runner) {
  class Shared final : public trial::Runner {
   public:
    explicit Shared(trial::Runner& one) : one_(one) {}
    trial::Outcome run(const space::Configuration& configuration, const trial::RunContext& context) override {
      return one_.run(configuration, context);
    }

   private:
    trial::Runner& one_;
  };
  return [&runner] { return std::make_unique<Shared>(runner); };
}

/// 4 x 7 x 8 x 2 = 448 configurations.
inline constexpr const char* kFourKnobs = R"({
    "stage": [0, 1, 2, 3],
    "batch": {"min": 1, "max": 64, "scale": "log2"},
    "bucket": {"min": 1000, "max": 1000000, "scale": "log", "steps": 8},
    "overlap": [false, true]})";

inline double log2_of(const space::Configuration& configuration, const char* name) {
  return std::log2(space::as_number(*configuration.find(name)));
}

/// A session, its memory filter and its candidates, which refer to each other.
struct Problem {
  explicit Problem(session::Session the_session)
      : session(std::move(the_session)), filter(session), candidates(session, filter) {}
  /// Uses the session's own prior, if it has one.
  struct WithPhysics {};
  Problem(session::Session the_session, WithPhysics)
      : session(std::move(the_session)), filter(session), candidates(session, filter, priors_of(session, filter)) {}
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  std::unique_ptr<search::Strategy> strategy(search::StrategyKind kind, std::uint64_t seed, int trials = 30) const {
    return search::make_strategy(kind, session, candidates, {seed, trials});
  }
  /// Asks and tells at most `trials` times, one trial at a time.
  search::History drive(search::StrategyKind kind, std::uint64_t seed, int trials, const FakeRunner::Answer& answer,
                        search::History history = {}) const {
    const auto asked = strategy(kind, seed, trials);
    const ManualClock clock;
    run::Tuner tuner({session, candidates, *asked, clock}, std::move(history));
    while (static_cast<int>(tuner.history().size()) < trials) {
      const std::optional<journal::Trial> trial = tuner.ask();
      if (!trial) break;
      tuner.tell(trial->number, answer(trial->proposal.configuration), 0.0);
    }
    return tuner.history();
  }

  static forecast::Priors priors_of(const session::Session& session, const session::MemoryFilter& filter) {
    forecast::Priors priors;
    if (auto physics = forecast::make_physics_prior(session, filter)) priors.push_back(std::move(physics));
    return priors;
  }

  session::Session session;
  session::MemoryFilter filter;
  search::Candidates candidates;
};

inline std::vector<std::string> texts(const search::History& history) {
  std::vector<std::string> result;
  for (const journal::Trial& trial : history) result.push_back(trial.proposal.configuration.text());
  return result;
}

}  // namespace krigtune
