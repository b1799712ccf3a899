#include "krigtune/tuner/predictions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "../src/tuner/model/objective_scale.h"
#include "../src/tuner/model/posterior_draws.h"
#include "../src/tuner/model/sobol_indices.h"
#include "fixtures.h"
#include "krigtune/core/error.h"
#include "krigtune/tuner/best.h"
#include "krigtune/tuner/importance.h"

namespace krigtune {
namespace {

// E[max(0, improvement)] by the trapezium rule over +-12 standard deviations: errors below 1e-9 for smooth integrands,
// and the kink costs no more than the square of the step.
double improvement_by_quadrature(bool maximize, bool logarithmic, double mean, double stddev, double best) {
  constexpr int kSteps = 400000;
  const double step = 24.0 / kSteps;
  const auto value = [&](double latent) {
    const double scaled = maximize ? latent : -latent;
    return logarithmic ? std::exp(scaled) : scaled;
  };
  double sum = 0.0;
  for (int i = 0; i <= kSteps; ++i) {
    const double z = -12.0 + i * step;
    const double gain = maximize ? value(mean + stddev * z) - value(best) : value(best) - value(mean + stddev * z);
    sum += std::max(gain, 0.0) * std::exp(-0.5 * z * z) * (i == 0 || i == kSteps ? 0.5 : 1.0);
  }
  return sum * step / std::sqrt(2.0 * M_PI);
}

TEST(ObjectiveScale, HasTheExpectedImprovementOfTheObjectiveItself) {
  for (const bool maximize : {true, false}) {
    for (const bool logarithmic : {true, false}) {
      const Objective objective{"m", maximize, "m"};
      History history(1);
      Measured measured;
      measured.metrics["m"] = logarithmic ? 5.0 : -5.0;
      history[0].outcome = measured;
      const ObjectiveScale scale(objective, history);
      ASSERT_EQ(scale.logarithmic(), logarithmic);
      for (const double delta : {-2.0, -0.5, 0.0, 0.3, 1.5}) {
        for (const double stddev : {0.05, 0.4, 1.0}) {
          const double exact = improvement_by_quadrature(maximize, logarithmic, 1.0 + delta, stddev, 1.0);
          if (exact < 1e-12) continue;
          const double log_ei = scale.log_expected_improvement(1.0 + delta, stddev, 1.0);
          EXPECT_LE(std::abs(std::exp(log_ei) / exact - 1.0), 1e-6)
              << "maximize " << maximize << " log " << logarithmic << " delta " << delta << " stddev " << stddev;
        }
      }
    }
  }
}

TEST(ObjectiveScale, IsContinuousWhereItChangesItsForm) {
  const ObjectiveScale scale({"m", true, "m"}, {});
  // Far below the incumbent the difference of the two terms vanishes; log EI must go on falling smoothly.
  double last = 0.0;
  for (double delta = -0.001; delta > -40.0; delta *= 1.05) {
    const double log_ei = scale.log_expected_improvement(delta, 0.01, 0.0);
    EXPECT_TRUE(std::isfinite(log_ei)) << delta;
    EXPECT_LT(log_ei, last) << delta;
    last = log_ei;
  }
}

TEST(ObjectiveScale, ReadsBackWhatItWrote) {
  for (const bool maximize : {true, false}) {
    const ObjectiveScale scale({"m", maximize, "m"}, {});
    EXPECT_NEAR(scale.from_latent(scale.to_latent(123.0)), 123.0, 1e-10);
    EXPECT_EQ(scale.to_latent(2.0) > scale.to_latent(1.0), maximize);
    EXPECT_NEAR(scale.latent_variance(50.0, 1.0), 4e-4, 1e-15);
  }
}

double cost(const Configuration& c) {
  const double a = as_number(*c.find("a"));
  return 5.0 + (a - 6.0) * (a - 6.0);
}

class Predictions : public testing::Test {
 protected:
  Predictions() : problem_(plain_session(R"({"a": {"min": 0, "max": 9}, "b": ["x", "y"]})", false)) {
    history_ = problem_.drive(StrategyKind::kBayes, 1, 8, [&](const Configuration& c) -> Outcome {
      if (as_number(*c.find("a")) == 0) return OutOfMemory{};
      return measured(problem_.session, cost(c));
    });
  }
  std::vector<PredictionRow> rows(const PredictOptions& options = {}, const History* history = nullptr) const {
    std::vector<PredictionRow> result;
    for_each_prediction(problem_.session, problem_.filter, problem_.candidates,
                        history == nullptr ? history_ : *history, options,
                        [&](const PredictionRow& row) { result.push_back(row); });
    return result;
  }
  Problem problem_;
  History history_;
};

TEST_F(Predictions, HoldTheWholeSpaceInTheObjectivesUnits) {
  const std::vector<PredictionRow> all = rows();
  ASSERT_EQ(all.size(), 20u);
  int observed = 0;
  for (const PredictionRow& row : all) {
    ASSERT_TRUE(row.mean && row.stddev && row.lower_95 && row.upper_95 && row.expected_improvement);
    EXPECT_GT(*row.mean, 0.0);
    EXPECT_LT(*row.lower_95, *row.mean);
    EXPECT_GT(*row.upper_95, *row.mean);
    // A log-normal: the median is the geometric mean of the interval's ends.
    EXPECT_LE(std::abs(std::sqrt(*row.lower_95 * *row.upper_95) / *row.mean - 1.0), 1e-9);
    if (*row.log_expected_improvement > -700.0) {  // exp underflows below
      EXPECT_NEAR(std::log(*row.expected_improvement), *row.log_expected_improvement, 1e-9);
    }
    EXPECT_TRUE(row.probability_feasible > 0.0 && row.probability_feasible < 1.0);
    EXPECT_FALSE(row.memory_feasible);
    if (row.observed) {
      ++observed;
      EXPECT_EQ(row.status, "ok");
      EXPECT_EQ(*row.observed, cost(row.configuration));
      EXPECT_LE(std::abs(*row.mean / *row.observed - 1.0), 0.1);
    }
  }
  const auto ok = std::count_if(history_.begin(), history_.end(),
                                [&](const Trial& t) { return value_of(t, problem_.session.objective).has_value(); });
  EXPECT_EQ(observed, ok);
}

TEST_F(Predictions, SayWhatFailedAndThatItIsLessLikely) {
  double failed = 1.0;
  double worked = 0.0;
  for (const PredictionRow& row : rows()) {
    if (row.status == "oom") failed = std::min(failed, row.probability_feasible);
    if (row.status == "ok") worked = std::max(worked, row.probability_feasible);
  }
  EXPECT_LT(failed, worked);
}

TEST_F(Predictions, AreEmptyBeforeAnythingWasMeasured) {
  const History nothing;
  for (const PredictionRow& row : rows({}, &nothing)) {
    EXPECT_FALSE(row.mean || row.expected_improvement || row.observed);
    EXPECT_EQ(row.status, "");
  }
}

TEST_F(Predictions, AreChosenByAPredicateAndSampled) {
  PredictOptions options;
  options.where = [](const Configuration& c) { return as_number(*c.find("a")) >= 5; };
  EXPECT_EQ(rows(options).size(), 10u);
  options.sample = 4;
  const std::vector<PredictionRow> some = rows(options);
  ASSERT_EQ(some.size(), 4u);
  std::set<std::string> distinct;
  for (const PredictionRow& row : some) distinct.insert(row.configuration.text());
  EXPECT_EQ(distinct.size(), 4u);
  options.sample = 100;
  EXPECT_EQ(rows(options).size(), 10u);
}

TEST(MemoryPredictions, HoldWhatIsTooLargeAndSayThatItDoesNotFit) {
  Session session = read_session(parse_json(R"({
      "workload": {"model": {"layers": 2, "hidden": 32, "heads": 2, "vocab": 64, "seq_len": 16}, "precision": "fp32"},
      "cluster": {"nodes": 1, "gpus_per_node": 2, "gpu": "local"}, "memory": {"limit_gib": 1},
      "space": {"zero_stage": [0, 3], "micro_batch": [1, 2, 64]}, "baseline": null})",
                                            "s"),
                                 "s", ".");
  const MemoryFilter all(session);
  const Configuration small{{"zero_stage", std::int64_t{0}}, {"micro_batch", std::int64_t{2}}};
  session.usable_per_rank = Bytes{all.planned(small)->predicted.count};
  const Problem problem(session);
  int too_large = 0;
  int count = 0;
  for_each_prediction(problem.session, problem.filter, problem.candidates, {}, {}, [&](const PredictionRow& row) {
    ++count;
    ASSERT_TRUE(row.memory_feasible && row.predicted_memory);
    EXPECT_EQ(*row.memory_feasible, row.predicted_memory->count <= session.usable_per_rank->count);
    if (*row.memory_feasible) return;
    ++too_large;
    EXPECT_EQ(row.probability_feasible, 0.0);
  });
  EXPECT_EQ(count, 6);
  EXPECT_GE(too_large, 1);
}

TEST(Recommendation, IsTheLargestPosteriorMeanAndItsGainIsOverTrialZero) {
  Session session = plain_session(R"({"a": {"min": 0, "max": 9}})", false);
  session.baseline = Configuration{{"a", std::int64_t{0}}};
  const Problem problem(session);
  const History history = problem.drive(StrategyKind::kBayes, 1, 9,
                                        [&](const Configuration& c) { return measured(problem.session, cost(c)); });
  const std::optional<Recommendation> best = recommend(problem.session, problem.candidates, history, 1);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->configuration.text(), "a=6");
  EXPECT_EQ(best->value, 5.0);
  EXPECT_EQ(best->reference_trial, 0);
  EXPECT_EQ(best->reference_value, 41.0);
  EXPECT_NEAR(best->gain, 41.0 / 5.0, 1e-12);  // times faster
  EXPECT_TRUE(best->lower_95 <= best->posterior_mean && best->posterior_mean <= best->upper_95);
}

TEST(Recommendation, DoesNotFollowALuckyNoisyTrial) {
  const Problem problem(plain_session(R"({"a": {"min": 0, "max": 20}})"));
  History history;
  for (int a = 0; a <= 20; a += 2) {
    Trial trial;
    trial.number = static_cast<int>(history.size());
    trial.proposal.configuration = Configuration{{"a", std::int64_t{a}}};
    Measured result;
    const double smooth = 100.0 * std::exp(-0.01 * (a - 14) * (a - 14));
    // One trial far out was lucky by 25 %, and says itself that it is that uncertain.
    const bool lucky = a == 6;
    result.metrics["speed"] = lucky ? 110.0 : smooth;
    result.value_sem = lucky ? 40.0 : 0.5;
    trial.outcome = result;
    history.push_back(trial);
  }
  const std::optional<Recommendation> best = recommend(problem.session, problem.candidates, history, 1);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->configuration.text(), "a=14");
  EXPECT_EQ(best_value(problem.session.objective, history), 110.0);
}

TEST(Recommendation, IsRelativeToTheFirstOkTrialWhereTheBaselineFailed) {
  Session session = plain_session(R"({"a": {"min": 0, "max": 9}})");
  session.baseline = Configuration{{"a", std::int64_t{0}}};
  const Problem problem(session);
  const History history = problem.drive(StrategyKind::kRandom, 1, 4, [&](const Configuration& c) -> Outcome {
    if (as_number(*c.find("a")) == 0) return OutOfMemory{};
    return measured(problem.session, 1.0 + as_number(*c.find("a")));
  });
  const std::optional<Recommendation> best = recommend(problem.session, problem.candidates, history, 1);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->reference_trial, 1);
  EXPECT_FALSE(recommend(problem.session, problem.candidates, {}, 1));
}

using Function = std::function<double(const Configuration&)>;

double number(const Configuration& configuration, const char* name) { return as_number(*configuration.find(name)); }

std::vector<Configuration> all_of(const Space& space) {
  std::vector<Configuration> configurations;
  space.for_each([&](const Configuration& configuration) {
    configurations.push_back(configuration);
    return true;
  });
  return configurations;
}

Eigen::VectorXd values_of(const std::vector<Configuration>& points, const Function& function) {
  Eigen::VectorXd values(static_cast<Eigen::Index>(points.size()));
  for (std::size_t i = 0; i < points.size(); ++i) values(static_cast<Eigen::Index>(i)) = function(points[i]);
  return values;
}

SobolIndices exact_indices(const Space& space, const Function& function) {
  const SobolDesign design = listed_design(space, all_of(space));
  return sobol_indices(design, values_of(design.points, function));
}

TEST(SobolIndices, OfASumAreTheSharesOfItsTerms) {
  const Session session = plain_session(R"({"a": {"min": 0, "max": 4}, "b": {"min": 0, "max": 2}, "c": ["x", "y"]})");
  const SobolIndices indices =
      exact_indices(session.space, [](const Configuration& c) { return number(c, "a") + 3.0 * number(c, "b"); });
  // Variances of 0 ... n evenly: n (n + 2) / 12.
  const double a = 4.0 * 6.0 / 12.0;
  const double b = 9.0 * 2.0 * 4.0 / 12.0;
  EXPECT_NEAR(indices.variance, a + b, 1e-12);
  EXPECT_NEAR(indices.first_order(0), a / (a + b), 1e-14);
  EXPECT_NEAR(indices.first_order(1), b / (a + b), 1e-14);
  EXPECT_NEAR(indices.first_order(2), 0.0, 1e-14);
  EXPECT_LE((indices.first_order - indices.total).cwiseAbs().maxCoeff(), 1e-14) << "without interactions";
}

TEST(SobolIndices, OfAProductHaveItsClosedForm) {
  const Session session = plain_session(R"({"a": [-1, 1], "b": [-1, 0, 1], "c": {"min": -2, "max": 2}})");
  // prod (1 + z_i) with means 0 and variances v_i: V_i = v_i, total V_i = v_i prod_{j != i} (1 + v_j).
  const double v[] = {1.0, 2.0 / 3.0, 2.0};
  const SobolIndices indices = exact_indices(session.space, [](const Configuration& c) {
    return (1.0 + number(c, "a")) * (1.0 + number(c, "b")) * (1.0 + number(c, "c"));
  });
  const double product = (1.0 + v[0]) * (1.0 + v[1]) * (1.0 + v[2]);
  EXPECT_NEAR(indices.variance, product - 1.0, 1e-12);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(indices.first_order(i), v[i] / (product - 1.0), 1e-14) << i;
    EXPECT_NEAR(indices.total(i), v[i] * product / (1.0 + v[i]) / (product - 1.0), 1e-14) << i;
  }
}

// Ishigami & Homma 1990 on twelve midpoints of [-pi, pi] each: sums of sines over them are the integrals, those of x^4
// and x^8 are taken as they are.
constexpr int kIshigamiLevels = 12;
double ishigami_level(double index) { return M_PI * ((2.0 * index + 1.0) / kIshigamiLevels - 1.0); }
double ishigami(const Configuration& c) {
  const double x = ishigami_level(number(c, "x"));
  const double y = ishigami_level(number(c, "y"));
  const double z = ishigami_level(number(c, "z"));
  return std::sin(x) + 7.0 * std::sin(y) * std::sin(y) + 0.1 * std::pow(z, 4) * std::sin(x);
}

class Ishigami : public testing::Test {
 protected:
  Ishigami() {
    double fourth = 0.0;
    double eighth = 0.0;
    for (int i = 0; i < kIshigamiLevels; ++i) {
      fourth += std::pow(ishigami_level(i), 4) / kIshigamiLevels;
      eighth += std::pow(ishigami_level(i), 8) / kIshigamiLevels;
    }
    const double x = 0.5 * (1.0 + 0.1 * fourth) * (1.0 + 0.1 * fourth);
    const double y = 49.0 / 8.0;
    const double x_and_z = 0.5 * 0.01 * (eighth - fourth * fourth);
    const double all = x + y + x_and_z;
    first_order_ << x / all, y / all, 0.0;
    total_ << (x + x_and_z) / all, y / all, x_and_z / all;
  }
  const Session session_ =
      plain_session(R"({"x": {"min": 0, "max": 11}, "y": {"min": 0, "max": 11}, "z": {"min": 0, "max": 11}})");
  Eigen::Vector3d first_order_, total_;
};

TEST_F(Ishigami, HasItsIndicesExactlyWhereAllIsListed) {
  const SobolIndices indices = exact_indices(session_.space, ishigami);
  EXPECT_LE((indices.first_order - first_order_).cwiseAbs().maxCoeff(), 1e-13);
  EXPECT_LE((indices.total - total_).cwiseAbs().maxCoeff(), 1e-13);
}

TEST_F(Ishigami, HasThemWithinTheStatedErrorWhereSampled) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    Rng rng(seed, 0);
    const SobolDesign design = sampled_design(
        session_.space, [&] { return session_.space.sample(rng); }, [](const Configuration&) { return true; });
    const Eigen::VectorXd values = values_of(design.points, ishigami);
    const SobolIndices indices = sobol_indices(design, values);
    const double error = sampling_error(design, values);
    EXPECT_TRUE(error > 0.001 && error < 0.06) << error;
    EXPECT_LE((indices.first_order - first_order_).cwiseAbs().maxCoeff(), 3.0 * error) << seed;
    EXPECT_LE((indices.total - total_).cwiseAbs().maxCoeff(), 3.0 * error) << seed;
  }
}

TEST(SobolIndices, FollowTheirDefinitionWhereConstraintsTieParametersTogether) {
  Session session = plain_session(R"({"a": {"min": 0, "max": 5}, "b": {"min": 0, "max": 5}})");
  session.space.restrict_to([](const Configuration& c) { return number(c, "a") + number(c, "b") <= 5.0; });
  const Function function = [](const Configuration& c) { return number(c, "a") * number(c, "a") + number(c, "b"); };
  const SobolIndices indices = exact_indices(session.space, function);
  // By the definitions, with a and b of 0 ... 5 - a.
  double mean = 0.0;
  for (int a = 0; a <= 5; ++a) {
    for (int b = 0; b <= 5 - a; ++b) mean += (a * a + b) / 21.0;
  }
  double variance = 0.0;
  double given_a = 0.0;
  double within_a = 0.0;  // a known: what b changes
  for (int a = 0; a <= 5; ++a) {
    const double mean_of_b = (5 - a) / 2.0;
    given_a += (6 - a) / 21.0 * std::pow(a * a + mean_of_b - mean, 2);
    for (int b = 0; b <= 5 - a; ++b) {
      variance += std::pow(a * a + b - mean, 2) / 21.0;
      within_a += std::pow(b - mean_of_b, 2) / 21.0;
    }
  }
  EXPECT_NEAR(indices.variance, variance, 1e-12);
  EXPECT_NEAR(indices.first_order(0), given_a / variance, 1e-14);
  EXPECT_NEAR(indices.total(1), within_a / variance, 1e-14);
  Rng rng(1, 0);
  const SobolDesign sampled = sampled_design(
      session.space, [&] { return session.space.sample(rng); }, [](const Configuration&) { return true; });
  const Eigen::VectorXd values = values_of(sampled.points, function);
  EXPECT_LE(std::abs(sobol_indices(sampled, values).total(1) - within_a / variance),
            3.0 * sampling_error(sampled, values));
}

TEST(PosteriorDraws, HaveThePosteriorsCovariance) {
  constexpr int kPoints = 7;
  constexpr int kDraws = 40'000;
  GaussianProcess process(make_kernel(KernelKind::kMatern52));
  Observations data;
  data.points = Points::zero(2, 1, 0);
  data.points.ordered << 0.2, 0.7;
  data.values = Eigen::Vector2d(1.0, -1.0);
  process.condition(data, Eigen::Vector3d(std::log(0.4), 0.0, std::log(0.1)));
  Points points = Points::zero(kPoints, 1, 0);
  points.ordered = Eigen::VectorXd::LinSpaced(kPoints, 0.0, 1.0);
  Rng rng(1, 0);
  const Eigen::MatrixXd draws = posterior_deviations(process, points, kDraws, rng);
  const Eigen::MatrixXd covariance = process.posterior_covariance(points);
  // The standard error of a covariance is at most sqrt(2) times the largest variance over sqrt(draws).
  const double error = std::sqrt(2.0 / kDraws) * covariance.diagonal().maxCoeff();
  EXPECT_LE((draws * draws.transpose() / kDraws - covariance).cwiseAbs().maxCoeff(), 4.0 * error);
}

class ImportanceOfParameters : public testing::Test {
 protected:
  // a: 8 % a step and 1.5 times with b = "y"; c does nothing.
  static double speed(const Configuration& c) {
    return std::exp(0.08 * number(c, "a")) * (to_string(*c.find("b")) == "y" ? 1.5 : 1.0);
  }
  ImportanceOfParameters()
      : problem_(
            plain_session(R"({"a": {"min": 0, "max": 9}, "b": ["x", "y"], "c": {"min": 0, "max": 4}, "d": [1]})")) {
    history_ = problem_.drive(StrategyKind::kRandom, 1, 40,
                              [&](const Configuration& c) { return measured(problem_.session, speed(c)); });
  }
  std::optional<Importance> of(const ImportanceOptions& options = {}) const {
    return importance(problem_.session, problem_.candidates, history_, options);
  }
  Problem problem_;
  History history_;
};

TEST_F(ImportanceOfParameters, IsThatOfTheFunctionThatWasMeasured) {
  const std::optional<Importance> found = of();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->configurations, 100);
  EXPECT_FALSE(found->sampled);
  const double a = 0.08 * 0.08 * 9.0 * 11.0 / 12.0;
  const double b = std::log(1.5) * std::log(1.5) / 4.0;
  EXPECT_LE(std::abs(found->stddev / std::sqrt(a + b) - 1.0), 0.05);
  ASSERT_EQ(found->parameters.size(), 3u) << "d has one value";
  EXPECT_EQ(found->parameters[0].name, "a");
  EXPECT_NEAR(found->parameters[0].first_order.value, a / (a + b), 0.03);
  EXPECT_EQ(found->parameters[1].name, "b");
  EXPECT_NEAR(found->parameters[1].total.value, b / (a + b), 0.03);
  EXPECT_LE(found->parameters[2].total.value, 0.02);
  for (const ParameterImportance& parameter : found->parameters) {
    EXPECT_LE(parameter.total.lower_95, parameter.total.value) << parameter.name;
    EXPECT_LE(parameter.total.value, parameter.total.upper_95) << parameter.name;
  }
}

TEST_F(ImportanceOfParameters, SaysWhatAnotherValueThanTheBestOnesDoes) {
  const std::optional<Importance> found = of();
  ASSERT_TRUE(found);
  EXPECT_EQ(as_number(*found->best.find("a")), 9.0);
  ASSERT_EQ(found->effects.size(), 3u);
  const Effect& a = found->effects[0];
  EXPECT_EQ(a.parameter, "a");
  EXPECT_TRUE(a.clear());
  EXPECT_EQ(as_number(a.best), 9.0);
  EXPECT_EQ(as_number(a.other), 0.0);
  EXPECT_LE(std::abs(a.factor / std::exp(0.72) - 1.0), 0.05);
  EXPECT_EQ(found->effects[1].parameter, "b");
  EXPECT_LE(std::abs(found->effects[1].factor / 1.5 - 1.0), 0.05);
  EXPECT_LE(std::abs(found->effects[2].factor - 1.0), 0.02);
  for (const Effect& effect : found->effects) {
    EXPECT_TRUE(effect.lower_95 <= effect.factor && effect.factor <= effect.upper_95) << effect.parameter;
  }
}

TEST_F(ImportanceOfParameters, OfASliceIsThatOfTheOthers) {
  ImportanceOptions options;
  options.where = [](const Configuration& c) { return number(c, "a") == 3.0; };
  const std::optional<Importance> found = of(options);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->configurations, 10);
  EXPECT_EQ(found->parameters[0].name, "b");
  EXPECT_NEAR(found->parameters[0].total.value, 1.0, 0.03);
  EXPECT_EQ(as_number(*found->best.find("a")), 3.0);
}

TEST_F(ImportanceOfParameters, IsSampledWhereThereAreTooManyToList) {
  const Problem large(
      plain_session(R"({"a": {"type": "real", "min": 0, "max": 9}, "b": ["x", "y"], "c": {"min": 0, "max": 999}})"));
  const History history = large.drive(StrategyKind::kRandom, 1, 40,
                                      [&](const Configuration& c) { return measured(large.session, speed(c)); });
  const std::optional<Importance> found = importance(large.session, large.candidates, history, {});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->sampled);
  EXPECT_TRUE(found->sampling_error > 0.0 && found->sampling_error < 0.05) << found->sampling_error;
  const double a = 0.08 * 0.08 * 81.0 / 12.0;
  const double b = std::log(1.5) * std::log(1.5) / 4.0;
  EXPECT_NEAR(found->parameters[0].total.value, a / (a + b), 0.03 + 3.0 * found->sampling_error);
  EXPECT_EQ(found->parameters[2].name, "c");
}

TEST_F(ImportanceOfParameters, IsNothingBeforeTwoTrialsAreOk) {
  EXPECT_FALSE(importance(problem_.session, problem_.candidates, {}, {}));
  const History one(history_.begin(), history_.begin() + 1);
  EXPECT_FALSE(importance(problem_.session, problem_.candidates, one, {}));
}

}  // namespace
}  // namespace krigtune
