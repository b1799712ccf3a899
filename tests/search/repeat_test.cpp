#include <fmt/format.h>
#include <gtest/gtest.h>

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "journal/journal.h"
#include "krigtune/rng.h"
#include "search/fixtures.h"
#include "search/model/best.h"
#include "search/model/outlook.h"
#include "search/model/trial_model.h"

namespace krigtune::repeat_test {

double standard_normal_density(double z) { return std::exp(-0.5 * z * z) / std::sqrt(2.0 * std::acos(-1.0)); }

// By the trapezoidal rule, which converges as 1/n^2 because of the kinks.
double integrated_gain(const Eigen::VectorXd& means, const Eigen::VectorXd& slopes) {
  constexpr double kEnd = 9.0;
  constexpr int kSteps = 20'000;
  double sum = 0.0;
  for (int i = 0; i <= kSteps; ++i) {
    const double z = -kEnd + 2.0 * kEnd * i / kSteps;
    sum += (means + z * slopes).maxCoeff() * standard_normal_density(z) * 2.0 * kEnd / kSteps;
  }
  return sum - means.maxCoeff();
}

TEST(ChoiceGain, IsTheIntegralOfTheLargestLine) {
  Rng rng(3, 0);
  for (int repeat = 0; repeat < 30; ++repeat) {
    const auto count = static_cast<Eigen::Index>(1 + rng.below(8));
    Eigen::VectorXd means(count);
    Eigen::VectorXd slopes(count);
    for (Eigen::Index i = 0; i < count; ++i) {
      means(i) = rng.normal();
      slopes(i) = rng.normal();
    }
    if (count > 3) slopes(1) = slopes(0);  // parallel
    if (count > 5) means(3) = means(2), slopes(3) = slopes(2);
    const double expected = integrated_gain(means, slopes);
    EXPECT_LE(std::abs(search::expected_gain_of_choice(means, slopes) - expected), 1e-6) << "repeat " << repeat;
  }
}

TEST(ChoiceGain, IsNothingWhereOneMeasurementMovesAllAlike) {
  EXPECT_EQ(search::expected_gain_of_choice(Eigen::Vector3d(1.0, 2.0, 1.5), Eigen::Vector3d::Constant(0.7)), 0.0);
  EXPECT_EQ(search::expected_gain_of_choice(Eigen::VectorXd::Constant(1, 2.0), Eigen::VectorXd::Constant(1, 3.0)), 0.0);
}

class Achieved : public testing::Test {
 protected:
  static constexpr Eigen::Index kCount = 6;

  Achieved() : points_(surrogate::Points::zero(kCount, 1, 0)), values_(kCount), stated_(kCount) {
    surrogate::SurrogateOptions options;
    options.standardise = false;
    options.mean = surrogate::Mean::zero();
    surrogate_ = surrogate::Surrogate(options);
    Rng rng(5, 0);
    for (Eigen::Index i = 0; i < kCount; ++i) {
      points_.ordered(i, 0) = 0.2 * static_cast<double>(i);
      values_(i) = rng.normal();
      stated_(i) = 0.01 + 0.05 * rng.uniform();
    }
    theta_ = Eigen::Vector3d(std::log(0.4), std::log(0.8), std::log(kOwn));
    surrogate_.condition({points_, values_, stated_}, theta_);
  }

  Eigen::MatrixXd kernel(const surrogate::Points& a, const surrogate::Points& b) const {
    return surrogate_.processes().front().prior_covariance(a, b);
  }

  static constexpr double kOwn = 0.3;  // stddev of the part that belongs to a single configuration
  surrogate::Points points_;
  Eigen::VectorXd values_;
  Eigen::VectorXd stated_;
  Eigen::VectorXd theta_;
  surrogate::Surrogate surrogate_;
};

// The direct way: f has the kernel plus a diagonal, and y is f with the stated errors.
TEST_F(Achieved, IsThePosteriorOfAKernelWithADiagonal) {
  const search::AchievedValues achieved(surrogate_, points_, stated_);
  const Eigen::MatrixXd prior = kernel(points_, points_) + kOwn * kOwn * Eigen::MatrixXd::Identity(kCount, kCount);
  const Eigen::MatrixXd observed = prior + Eigen::MatrixXd(stated_.asDiagonal());
  const Eigen::MatrixXd gain = prior * observed.inverse();
  EXPECT_LE((achieved.mean() - gain * values_).cwiseAbs().maxCoeff(), 1e-9);
  EXPECT_LE((achieved.covariance() - (prior - gain * prior)).cwiseAbs().maxCoeff(), 1e-9);
  surrogate::Points elsewhere = surrogate::Points::zero(1, 1, 0);
  elsewhere.ordered(0, 0) = 0.33;
  const Eigen::VectorXd cross = kernel(points_, elsewhere).col(0);
  EXPECT_LE((achieved.covariance_with(elsewhere) - (cross - gain * cross)).cwiseAbs().maxCoeff(), 1e-9);
}

TEST_F(Achieved, IsWhatWasMeasuredWhereThatIsExactAndTheSmoothFunctionWhereAllIsNoise) {
  const search::AchievedValues exact(surrogate_, points_, Eigen::VectorXd::Zero(kCount));
  EXPECT_LE((exact.mean() - values_).cwiseAbs().maxCoeff(), 1e-12);
  EXPECT_LE(exact.covariance().cwiseAbs().maxCoeff(), 1e-12);
  const search::AchievedValues smooth(surrogate_, points_, stated_.array() + kOwn * kOwn);
  const surrogate::Prediction prediction = surrogate_.predict(points_);
  EXPECT_LE((smooth.mean() - prediction.mean).cwiseAbs().maxCoeff(), 1e-9);
  EXPECT_LE((smooth.covariance().diagonal() - prediction.variance).cwiseAbs().maxCoeff(), 1e-9);
}

// 4 x 7 = 28 configurations, with two ridges that are almost equally good.
constexpr const char* kSpace = R"({"stage": [0, 1, 2, 3], "batch": {"min": 1, "max": 64, "scale": "log2"}})";

double speed(const space::Configuration& c) {
  const double batch = std::log2(space::as_number(*c.find("batch")));
  const double stage = space::as_number(*c.find("stage"));
  return 100.0 * std::exp(-0.03 * (batch - 4.0) * (batch - 4.0)) * (stage == 0.0 ? 1.0 : 0.97 - 0.02 * stage);
}

/// Each measurement has an error of 4 %, and states it.
class NoisyMachine {
 public:
  NoisyMachine(const session::Session& session, std::uint64_t seed, double sem = 0.01)
      : session_(session), seed_(seed), sem_(sem) {}

  trial::Outcome operator()(const space::Configuration& configuration) {
    Rng rng(seed_, ++measurements_);
    const double value = speed(configuration) * std::exp(sem_ > 0.0 ? 0.04 * rng.normal() : 0.0);
    trial::Outcome outcome = measured(session_, value);
    std::get<trial::Measured>(outcome).value_sem = sem_ * value;
    return outcome;
  }

 private:
  const session::Session& session_;
  std::uint64_t seed_;
  double sem_;
  std::uint64_t measurements_ = 0;
};

int repeats_in(const search::History& history) {
  return static_cast<int>(std::count_if(history.begin(), history.end(), [](const journal::Trial& trial) {
    return trial.proposal.repeat_of.has_value();
  }));
}

// Returns the number of labels.
int check_labels(const search::History& history) {
  std::set<std::string> seen;
  for (const journal::Trial& trial : history) {
    const std::string text = trial.proposal.configuration.text();
    const std::optional<int> repeated = trial.proposal.repeat_of;
    EXPECT_EQ(repeated.has_value(), seen.count(text) > 0) << "trial " << trial.number;
    if (repeated) {
      EXPECT_LT(*repeated, trial.number);
      EXPECT_EQ(history[static_cast<std::size_t>(*repeated)].proposal.configuration.text(), text);
      EXPECT_EQ(trial.proposal.strategy, "bayes");
      EXPECT_TRUE(trial.proposal.predicted_value);
    }
    seen.insert(text);
  }
  return repeats_in(history);
}

TEST(Repeats, AreOfWhatWasMeasuredAndSayOfWhich) {
  const Problem problem(plain_session(kSpace));
  int repeats = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    repeats += check_labels(problem.drive(search::StrategyKind::kBayes, seed, 30, NoisyMachine(problem.session, seed)));
  }
  EXPECT_GE(repeats, 8);
}

TEST(Repeats, AreNeverAskedWhereValuesStateNoSpread) {
  const Problem problem(plain_session(kSpace));
  const search::History history =
      problem.drive(search::StrategyKind::kBayes, 1, 60, NoisyMachine(problem.session, 1, 0.0));
  EXPECT_EQ(repeats_in(history), 0);
  EXPECT_EQ(history.size(), 28U);  // each once, then none remains
}

TEST(Repeats, AreNotOfWhatIsPending) {
  const Problem problem(plain_session(kSpace));
  NoisyMachine machine(problem.session, 2);
  const search::History history = problem.drive(search::StrategyKind::kBayes, 2, 24, machine);
  const auto strategy = problem.strategy(search::StrategyKind::kBayes, 2);
  const ManualClock clock;
  run::Tuner tuner({problem.session, problem.candidates, *strategy, clock}, history);
  std::set<std::string> asked;
  for (int i = 0; i < 6; ++i) {
    const std::optional<journal::Trial> trial = tuner.ask();
    if (!trial) break;
    EXPECT_TRUE(asked.insert(trial->proposal.configuration.text()).second);
  }
  EXPECT_GE(asked.size(), 4U);
}

TEST(Repeats, EndWithTheRowsOfATable) {
  const TemporaryDirectory directory;
  std::string table = "x,v,e\n";
  // Two rows each: the best two are worth another measurement.
  for (const auto& [x, value] : std::map<char, int>{{'a', 118}, {'b', 60}, {'c', 124}, {'d', 70}, {'e', 121}}) {
    table += fmt::format("{0},{1},8\n{0},{2},8\n", x, value, value - 1);
  }
  write_atomically(directory.path() / "t.csv", table);
  const auto runner = [](const char* repeats) {
    return fmt::format(
        R"({{"space": {{"x": ["a", "b", "c", "d", "e"]}},
        "objective": {{"metric": "speed", "direction": "maximize"}},
        "runner": {{"kind": "replay", "table": "t.csv", "value": "v", "metrics": {{"value_sem": "e"}},
        "repeats": "{}"}}}})",
        repeats);
  };
  for (const auto& [repeats, most] : std::map<const char*, int>{{"cycle", 2}, {"best", 1}}) {
    const Problem problem(session::read_session(parse_json(runner(repeats), "s"), "s", directory.path()));
    const std::unique_ptr<trial::Runner> replay = runner::make_replay_runner(*problem.session.table);
    const search::History history =
        problem.drive(search::StrategyKind::kBayes, 1, 30,
                      [&](const space::Configuration& c) { return replay->run(c, directory.path()); });
    std::map<std::string, int> measurements;
    for (const journal::Trial& trial : history) ++measurements[trial.proposal.configuration.text()];
    EXPECT_EQ(measurements.size(), 5U);
    int largest = 0;
    for (const auto& [text, count] : measurements) largest = std::max(largest, count);
    EXPECT_EQ(largest, most) << repeats;
  }
}

TEST(Repeats, MakeTheRecommendationBetter) {
  const Problem problem(plain_session(kSpace));
  double with = 0.0;
  double without = 0.0;
  constexpr int kSeeds = 20;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (const bool repeats : {true, false}) {
      NoisyMachine machine(problem.session, seed);
      const auto strategy =
          search::make_strategy(search::StrategyKind::kBayes, problem.session, problem.candidates, {seed, 40, repeats});
      const ManualClock clock;
      run::Tuner tuner({problem.session, problem.candidates, *strategy, clock});
      for (int i = 0; i < 40; ++i) {
        const std::optional<journal::Trial> trial = tuner.ask();
        if (!trial) break;
        tuner.tell(trial->number, machine(trial->proposal.configuration), 0.0);
      }
      const auto best = search::recommend(problem.session, problem.candidates, tuner.history(), seed);
      (repeats ? with : without) += (1.0 - speed(best->configuration) / 100.0) / kSeeds;
    }
  }
  EXPECT_LE(with, 0.7 * without);
  EXPECT_LE(with, 0.02);
}

TEST(Recommendation, CarriesTheEvidenceOfAllItsMeasurements) {
  const Problem problem(plain_session(kSpace));
  const space::Configuration best({{"stage", std::int64_t{0}}, {"batch", std::int64_t{16}}});
  const space::Configuration other({{"stage", std::int64_t{1}}, {"batch", std::int64_t{1}}});
  search::History history;
  for (const auto& [configuration, value] :
       std::vector<std::pair<space::Configuration, double>>{{best, 98.0}, {other, 50.0}, {best, 104.0}, {best, 98.0}}) {
    journal::Trial trial;
    trial.number = static_cast<int>(history.size());
    trial.proposal.configuration = configuration;
    trial.outcome = measured(problem.session, value);
    std::get<trial::Measured>(*trial.outcome).value_sem = 0.5;
    history.push_back(trial);
  }
  const auto recommended = search::recommend(problem.session, problem.candidates, history, 1);
  ASSERT_TRUE(recommended);
  EXPECT_EQ(recommended->configuration.text(), best.text());
  EXPECT_EQ(recommended->measurements, 3);
  EXPECT_DOUBLE_EQ(recommended->value, 100.0);
  EXPECT_DOUBLE_EQ(recommended->value_sem, 2.0);  // scatter sqrt(12), divided by sqrt(3)
  EXPECT_EQ(recommended->trial, 2);
  EXPECT_LT(recommended->lower_95, recommended->posterior_mean);
}

TEST(Repeats, AreNamedInTheJournal) {
  const TemporaryDirectory directory;
  const session::Session session = plain_session(kSpace);
  journal::Proposal proposal;
  proposal.configuration = space::Configuration({{"stage", std::int64_t{0}}, {"batch", std::int64_t{1}}});
  proposal.strategy = "bayes";
  const std::filesystem::path file = directory.path() / "journal.log";
  {
    journal::Journal journal(file, session.space, session.objective.field, true);
    journal.begin(proposal, 1, 0);
    proposal.repeat_of = 0;
    journal.begin(proposal, 2, 1);
  }
  const std::vector<journal::Trial> trials = journal::read_journal(file);
  ASSERT_EQ(trials.size(), 2U);
  EXPECT_FALSE(trials[0].proposal.repeat_of);
  EXPECT_EQ(trials[1].proposal.repeat_of, 0);
}

}  // namespace krigtune::repeat_test
