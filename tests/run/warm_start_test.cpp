#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "run/earlier_run.h"
#include "run/loop_fixture.h"
#include "run/prepared.h"
#include "user_error.h"

namespace krigtune::warm_start_test {

// 7 x 8 x 2 = 112 configurations.
constexpr const char* kSpace = R"({"batch": {"min": 1, "max": 64, "scale": "log2"},
    "bucket": {"min": 1000, "max": 1000000, "scale": "log", "steps": 8}, "overlap": [false, true]})";

// Best at a large batch and a middle bucket. `shift` moves the optimum a little, like another machine.
double speed(const space::Configuration& c, double shift = 0.0) {
  const double batch = std::exp2(log2_of(c, "batch"));
  const double bucket = log2_of(c, "bucket") - 15.0 - shift;
  return 1000.0 * batch / (batch + 6.0) * std::exp(-0.04 * bucket * bucket) *
         (1.0 + 0.1 * space::as_number(*c.find("overlap")));
}

using Speed = std::function<double(const space::Configuration&)>;

// Returns a run of every `step`-th configuration of the space.
forecast::EarlierRun run_of(const session::Session& session, const Speed& value, std::int64_t step = 3) {
  forecast::EarlierRun run;
  run.source = "old";
  std::int64_t i = 0;
  session.space.for_each([&](const space::Configuration& c) {
    if (i++ % step == 0) run.trials.push_back({c, value(c)});
    return true;
  });
  return run;
}

// Returns the number of trials of bayes until a value within 2 % of the best, as a mean over seeds.
double mean_trials_to_best(const session::Session& session, const forecast::EarlierRuns& runs) {
  const run::Prepared prepared(session, runs);
  const search::Candidates& candidates = prepared.candidates;
  double best = 0.0;
  for (std::size_t i = 0; i < candidates.size(); ++i) best = std::max(best, speed(candidates[i], 0.5));
  constexpr int kSeeds = 4;
  int sum = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const auto strategy = search::make_strategy(search::StrategyKind::kBayes, session, candidates, {seed, 30});
    const ManualClock clock;
    run::Tuner tuner({session, candidates, *strategy, clock});
    double found = 0.0;
    while (found < 0.98 * best) {
      const journal::Trial trial = *tuner.ask();
      found = std::max(found, speed(trial.proposal.configuration, 0.5));
      tuner.tell(trial.number, measured(session, speed(trial.proposal.configuration, 0.5)), 0.0);
      ++sum;
    }
  }
  return static_cast<double>(sum) / kSeeds;
}

TEST(WarmStart, SavesTrialsAndPoisonCostsFew) {
  const session::Session session = plain_session(kSpace);
  const double cold = mean_trials_to_best(session, {});
  const double warm = mean_trials_to_best(session, {run_of(session, [](const auto& c) { return speed(c); })});
  const double inverse = mean_trials_to_best(session, {run_of(session, [](const auto& c) { return 1.0 / speed(c); })});
  Rng rng(3, 0);
  const double noise =
      mean_trials_to_best(session, {run_of(session, [&](const auto&) { return std::exp(rng.normal()); })});
  RecordProperty("cold", std::to_string(cold));
  RecordProperty("warm", std::to_string(warm));
  RecordProperty("inverse", std::to_string(inverse));
  RecordProperty("noise", std::to_string(noise));
  EXPECT_LE(warm, cold - 2.0);
  EXPECT_LE(inverse, cold + 2.0);
  EXPECT_LE(noise, cold + 2.0);
}

TEST(WarmStart, KnowsTheRunsValuesNearItsTrialsAndWhatIsTypicalFarFromThem) {
  const session::Session session = plain_session(R"({"x": {"min": 0, "max": 80}})");
  forecast::EarlierRun run;
  for (std::int64_t x = 0; x <= 20; ++x) {
    run.trials.push_back({{{"x", x}}, std::exp(std::sin(0.2 * static_cast<double>(x)))});
  }
  const auto prior = forecast::make_warm_start_prior(session, run, nullptr);
  ASSERT_NE(prior, nullptr);
  std::vector<double> values;
  for (const forecast::EarlierTrial& trial : run.trials) values.push_back(std::log(trial.value));
  std::sort(values.begin(), values.end());
  const double typical = values[values.size() / 2];
  const Eigen::VectorXd said = prior->log_values(
      {{{"x", std::int64_t{3}}}, {{"x", std::int64_t{9}}}, {{"x", std::int64_t{75}}}, {{"x", std::int64_t{80}}}});
  EXPECT_NEAR(said(0), std::sin(0.6) - typical, 0.1);
  EXPECT_NEAR(said(1), std::sin(1.8) - typical, 0.1);
  EXPECT_LE(std::abs(said(2) - said(3)), 0.1);
  EXPECT_LE(std::abs(said(3)), 0.5);
  EXPECT_EQ(prior->coefficient().centre, 0.5);
  EXPECT_EQ(forecast::make_warm_start_prior(session, run, nullptr, 3)->coefficient().centre, 0.25);
}

// If physics is right, there is nothing to learn. The opposite of physics is not believed.
TEST(WarmStart, CarriesOverWhatPhysicsDoesNotKnow) {
  class Physics final : public forecast::Prior {
   public:
    Eigen::VectorXd log_values(const std::vector<space::Configuration>& configurations) const override {
      Eigen::VectorXd values(static_cast<Eigen::Index>(configurations.size()));
      for (std::size_t i = 0; i < configurations.size(); ++i) {
        values(static_cast<Eigen::Index>(i)) = 0.02 * space::as_number(*configurations[i].find("x"));
      }
      return values;
    }
    Coefficient coefficient() const override { return {}; }
  };
  const session::Session session = plain_session(R"({"x": {"min": 0, "max": 100}})");
  const Physics physics;
  const auto run_with = [](const std::function<double(double)>& log_value) {
    forecast::EarlierRun run;
    for (std::int64_t x = 0; x <= 100; x += 5) {
      run.trials.push_back({{{"x", x}}, std::exp(log_value(static_cast<double>(x)))});
    }
    return run;
  };
  const auto residual = [](double x) { return x > 60.0 ? -0.5 : 0.0; };
  const auto prior = forecast::make_warm_start_prior(
      session, run_with([&](double x) { return 7.0 + 0.02 * x + residual(x); }), &physics);
  ASSERT_NE(prior, nullptr);
  const Eigen::VectorXd said =
      prior->log_values({{{"x", std::int64_t{20}}}, {{"x", std::int64_t{40}}}, {{"x", std::int64_t{85}}}});
  EXPECT_NEAR(said(0), said(1), 0.05);
  EXPECT_NEAR(said(2) - said(0), -0.5, 0.1);
  EXPECT_EQ(forecast::make_warm_start_prior(session, run_with([](double x) { return -0.02 * x; }), &physics), nullptr);
}

// Minimised, and with other values of the parameters: short times were good.
TEST(WarmStart, TurnsWhatIsMinimisedRound) {
  const session::Session session = plain_session(R"({"x": {"min": 0, "max": 30}})", false);
  forecast::EarlierRun run;
  run.maximize = false;
  for (std::int64_t x = 0; x <= 40; x += 2) run.trials.push_back({{{"x", x}}, std::exp(0.1 * static_cast<double>(x))});
  const auto prior = forecast::make_warm_start_prior(session, run, nullptr);
  const Eigen::VectorXd said = prior->log_values({{{"x", std::int64_t{1}}}, {{"x", std::int64_t{29}}}});
  EXPECT_NEAR(said(0) - said(1), 2.8, 0.2);
}

TEST(WarmStart, LearnsFromParametersThatVariedInBothOnly) {
  const session::Session session =
      plain_session(R"({"x": [1, 2, 4], "y": [true, false], "mode": ["a", "b"], "own": [1, 2]})");
  forecast::EarlierRun run;
  for (int i = 0; i < 8; ++i) {
    run.trials.push_back({{{"mode", std::string(i % 2 == 0 ? "b" : "c")},  // a text that is new
                           {"x", std::int64_t{1} << (i % 4)},
                           {"y", std::int64_t{i}},     // of another kind
                           {"own", std::int64_t{1}}},  // always the same value
                          1.0 + i});
  }
  EXPECT_EQ(forecast::shared_parameters(session.space, run), (std::vector<std::string>{"x", "mode"}));
}

using WarmStartLoop = Loop;

TEST_F(WarmStartLoop, IsRecordedSoThatTheOldDirectoryIsNotNeededAgain) {
  const session::Session session = budgeted(10);
  run(session);  // the earlier one
  const std::filesystem::path old = directory_ / "old";
  std::filesystem::rename(directory(), old);
  options_.loop.earlier = {run::read_earlier_run(old.string(), session, "--warm-start")};
  EXPECT_GE(options_.loop.earlier[0].trials.size(), 5U);
  EXPECT_EQ(options_.loop.earlier[0].metric, "speed");
  std::filesystem::remove_all(old);
  StoppingObserver observer;
  FakeRunner runner([&](const space::Configuration& c) { return answer(session, c); });
  const run::Prepared prepared(session, options_.loop.earlier);
  const search::Candidates& candidates = prepared.candidates;
  ASSERT_EQ(candidates.priors().size(), 1U);
  run::run_session(session, candidates, sharing(runner), directory(), options_, clock_, observer, observer.stop);

  EXPECT_EQ(run::to_json(run::recorded_earlier_runs(directory())).dump(), run::to_json(options_.loop.earlier).dump());
  EXPECT_EQ(run::settle(directory(), session, options_.loop), "");
}

// This is a log of Optuna 4 with two studies, the second one minimised, with one parameter given by its index.
constexpr const char* kOptuna =
    R"({"op_code":0,"worker_id":"w","study_name":"other","directions":[2]}
{"op_code":0,"worker_id":"w","study_name":"mine","directions":[1]}
{"op_code":4,"worker_id":"w","study_id":0,"datetime_start":null}
{"op_code":4,"worker_id":"w","study_id":1,"datetime_start":null}
{"op_code":5,"worker_id":"w","trial_id":1,"param_name":"a","param_value_internal":2.0,"distribution":"{\"name\": \"IntDistribution\", \"attributes\": {\"log\": false, \"step\": 1, \"low\": 0, \"high\": 5}}"}
{"op_code":5,"worker_id":"w","trial_id":1,"param_name":"b","param_value_internal":3,"distribution":"{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [1, 2, 4, 8]}}"}
{"op_code":6,"worker_id":"w","trial_id":1,"state":1,"values":[2.5],"datetime_complete":null}
{"op_code":4,"worker_id":"w","study_id":1,"datetime_start":null}
{"op_code":5,"worker_id":"w","trial_id":2,"param_name":"a","param_value_internal":4.0,"distribution":"{\"name\": \"IntDistribution\", \"attributes\": {\"log\": false, \"step\": 1, \"low\": 0, \"high\": 5}}"}
{"op_code":6,"worker_id":"w","trial_id":2,"state":1,"values":[3.5],"datetime_complete":null}
{"op_code":4,"worker_id":"w","study_id":1,"datetime_start":null}
{"op_code":6,"worker_id":"w","trial_id":3,"state":3,"values":null,"datetime_complete":null}
)";

TEST_F(WarmStartLoop, ReadsAJournalOfOptunas) {
  const session::Session session = budgeted(10);
  const std::string file = directory_.write("optuna.log", kOptuna).string();
  const forecast::EarlierRun run = run::read_earlier_run(file + ":mine", session, "--warm-start");
  EXPECT_FALSE(run.maximize);
  ASSERT_EQ(run.trials.size(), 2U);
  EXPECT_EQ(run.trials[0].configuration.text(), "a=2 b=8");
  EXPECT_EQ(run.trials[0].value, 2.5);
  const auto error_of = [&](const std::string& source) {
    return user_error_of([&] { run::read_earlier_run(source, session, "--warm-start"); });
  };
  EXPECT_NE(error_of(file).find("has the studies other, mine; name one: " + file + ":other"), std::string::npos);
  EXPECT_NE(error_of(file + ":mne").find("has no study 'mne'; did you mean 'mine'?"), std::string::npos);
  EXPECT_NE(error_of(file + ":other").find("it has no ok trial"), std::string::npos);
  EXPECT_EQ(error_of("/nowhere").rfind("--warm-start /nowhere: there is no such directory or file", 0), 0U);
  EXPECT_NE(error_of(directory_.write("t.csv", "a,b\n1,2\n").string()).find("has no study"), std::string::npos);
}

TEST_F(WarmStartLoop, RefusesRunsThatHaveNothingToDoWithTheSession) {
  run(budgeted(6));
  const auto error_of = [&](const session::Session& session) {
    return user_error_of([&] { run::read_earlier_run(directory().string(), session, "--warm-start"); });
  };
  EXPECT_NE(error_of(plain_session(R"({"c": [1, 2]})")).find("no parameter of the space varied in it; it has a, b"),
            std::string::npos);
  session::Session other = budgeted(6);
  other.objective = {"loss", false, "loss"};
  EXPECT_NE(error_of(other).find("it measured 'speed', this session 'loss'"), std::string::npos);
}

}  // namespace krigtune::warm_start_test
