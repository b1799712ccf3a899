#include "insight/importance.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>

#include "insight/sobol_indices.h"
#include "search/fixtures.h"

namespace krigtune::importance_test {

using Function = std::function<double(const space::Configuration&)>;

double number(const space::Configuration& configuration, const char* name) {
  return space::as_number(*configuration.find(name));
}

std::vector<space::Configuration> all_of(const space::Space& space) {
  std::vector<space::Configuration> configurations;
  space.for_each([&](const space::Configuration& configuration) {
    configurations.push_back(configuration);
    return true;
  });
  return configurations;
}

Eigen::VectorXd values_of(const std::vector<space::Configuration>& points, const Function& function) {
  Eigen::VectorXd values(static_cast<Eigen::Index>(points.size()));
  for (std::size_t i = 0; i < points.size(); ++i) values(static_cast<Eigen::Index>(i)) = function(points[i]);
  return values;
}

insight::SobolIndices exact_indices(const space::Space& space, const Function& function) {
  const insight::SobolDesign design = insight::listed_design(space, all_of(space));
  return insight::sobol_indices(design, values_of(design.points, function));
}

TEST(SobolIndices, OfASumAreTheSharesOfItsTerms) {
  const session::Session session =
      plain_session(R"({"a": {"min": 0, "max": 4}, "b": {"min": 0, "max": 2}, "c": ["x", "y"]})");
  const insight::SobolIndices indices =
      exact_indices(session.space, [](const space::Configuration& c) { return number(c, "a") + 3.0 * number(c, "b"); });
  // The variance of 0 ... n with equal weights is n (n + 2) / 12.
  const double a = 4.0 * 6.0 / 12.0;
  const double b = 9.0 * 2.0 * 4.0 / 12.0;
  EXPECT_NEAR(indices.variance, a + b, 1e-12);
  EXPECT_NEAR(indices.first_order(0), a / (a + b), 1e-14);
  EXPECT_NEAR(indices.first_order(1), b / (a + b), 1e-14);
  EXPECT_NEAR(indices.first_order(2), 0.0, 1e-14);
  EXPECT_LE((indices.first_order - indices.total).cwiseAbs().maxCoeff(), 1e-14) << "without interactions";
}

TEST(SobolIndices, OfAProductHaveItsClosedForm) {
  const session::Session session = plain_session(R"({"a": [-1, 1], "b": [-1, 0, 1], "c": {"min": -2, "max": 2}})");
  // prod (1 + z_i) with means 0 and variances v_i: V_i = v_i, total V_i = v_i prod_{j != i} (1 + v_j).
  const double v[] = {1.0, 2.0 / 3.0, 2.0};
  const insight::SobolIndices indices = exact_indices(session.space, [](const space::Configuration& c) {
    return (1.0 + number(c, "a")) * (1.0 + number(c, "b")) * (1.0 + number(c, "c"));
  });
  const double product = (1.0 + v[0]) * (1.0 + v[1]) * (1.0 + v[2]);
  EXPECT_NEAR(indices.variance, product - 1.0, 1e-12);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(indices.first_order(i), v[i] / (product - 1.0), 1e-14) << i;
    EXPECT_NEAR(indices.total(i), v[i] * product / (1.0 + v[i]) / (product - 1.0), 1e-14) << i;
  }
}

// Ishigami & Homma 1990 on twelve midpoints of [-pi, pi] for each variable. Sums of sines over them equal the
// integrals; the sums of x^4 and x^8 are computed.
constexpr int kIshigamiLevels = 12;
double ishigami_level(double index) { return M_PI * ((2.0 * index + 1.0) / kIshigamiLevels - 1.0); }
double ishigami(const space::Configuration& c) {
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
  const session::Session session_ =
      plain_session(R"({"x": {"min": 0, "max": 11}, "y": {"min": 0, "max": 11}, "z": {"min": 0, "max": 11}})");
  Eigen::Vector3d first_order_, total_;
};

TEST_F(Ishigami, HasItsIndicesExactlyWhereAllIsListed) {
  const insight::SobolIndices indices = exact_indices(session_.space, ishigami);
  EXPECT_LE((indices.first_order - first_order_).cwiseAbs().maxCoeff(), 1e-13);
  EXPECT_LE((indices.total - total_).cwiseAbs().maxCoeff(), 1e-13);
}

TEST_F(Ishigami, HasThemWithinTheStatedErrorWhereSampled) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    Rng rng(seed, 0);
    const insight::SobolDesign design = insight::sampled_design(
        session_.space, [&] { return session_.space.sample(rng); }, [](const space::Configuration&) { return true; });
    const Eigen::VectorXd values = values_of(design.points, ishigami);
    const insight::SobolIndices indices = insight::sobol_indices(design, values);
    const double error = insight::sampling_error(design, values);
    EXPECT_TRUE(error > 0.001 && error < 0.06) << error;
    EXPECT_LE((indices.first_order - first_order_).cwiseAbs().maxCoeff(), 3.0 * error) << seed;
    EXPECT_LE((indices.total - total_).cwiseAbs().maxCoeff(), 3.0 * error) << seed;
  }
}

TEST(SobolIndices, FollowTheirDefinitionWhereConstraintsTieParametersTogether) {
  session::Session session = plain_session(R"({"a": {"min": 0, "max": 5}, "b": {"min": 0, "max": 5}})");
  session.space.restrict_to([](const space::Configuration& c) { return number(c, "a") + number(c, "b") <= 5.0; });
  const Function function = [](const space::Configuration& c) {
    return number(c, "a") * number(c, "a") + number(c, "b");
  };
  const insight::SobolIndices indices = exact_indices(session.space, function);
  // By the definitions, with a and b of 0 ... 5 - a.
  double mean = 0.0;
  std::array<double, 6> mean_of_square{};  // over a, given b
  for (int a = 0; a <= 5; ++a) {
    for (int b = 0; b <= 5 - a; ++b) {
      mean += (a * a + b) / 21.0;
      mean_of_square.at(static_cast<std::size_t>(b)) += a * a / (6.0 - b);
    }
  }
  double variance = 0.0;
  double by_a = 0.0;      // effect of a, whatever b is
  double within_a = 0.0;  // a is known: effect of b
  for (int a = 0; a <= 5; ++a) {
    const double mean_of_b = (5 - a) / 2.0;
    double effect = 0.0;
    for (int b = 0; b <= 5 - a; ++b) {
      variance += std::pow(a * a + b - mean, 2) / 21.0;
      within_a += std::pow(b - mean_of_b, 2) / 21.0;
      effect += (a * a - mean_of_square.at(static_cast<std::size_t>(b))) / (6.0 - a);
    }
    by_a += (6 - a) / 21.0 * effect * effect;
  }
  EXPECT_NEAR(indices.variance, variance, 1e-12);
  EXPECT_NEAR(indices.first_order(0), by_a / variance, 1e-14);
  EXPECT_NEAR(indices.total(1), within_a / variance, 1e-14);
  Rng rng(1, 0);
  const insight::SobolDesign sampled = insight::sampled_design(
      session.space, [&] { return session.space.sample(rng); }, [](const space::Configuration&) { return true; });
  const Eigen::VectorXd values = values_of(sampled.points, function);
  EXPECT_LE(std::abs(insight::sobol_indices(sampled, values).total(1) - within_a / variance),
            3.0 * insight::sampling_error(sampled, values));
}

// Values that are tied by constraints, and random functions of them. The numbers are the seeds.
TEST(SobolIndices, OfAParameterAloneAreNeverAboveItsTotal) {
  for (const std::uint64_t seed : {11U, 12U, 13U, 14U, 15U}) {
    session::Session session =
        plain_session(R"({"a": {"min": 0, "max": 5}, "b": {"min": 0, "max": 5}, "c": {"min": 0, "max": 3}})");
    session.space.restrict_to([](const space::Configuration& c) { return number(c, "a") + number(c, "b") <= 5.0; });
    Rng rng(seed, 0);
    const Eigen::Vector4d weights(rng.normal(), rng.normal(), rng.normal(), 0.2 * rng.normal());
    const Function function = [&](const space::Configuration& c) {
      const double a = number(c, "a"), b = number(c, "b"), z = number(c, "c");
      return weights(0) * a + weights(1) * b * b + weights(2) * z + weights(3) * a * z;
    };
    const insight::SobolIndices exact = exact_indices(session.space, function);
    const insight::SobolDesign design = insight::sampled_design(
        session.space, [&] { return session.space.sample(rng); }, [](const space::Configuration&) { return true; },
        {60, 15});
    const insight::SobolIndices drawn = insight::sobol_indices(design, values_of(design.points, function));
    for (const insight::SobolIndices& indices : {exact, drawn}) {
      for (int i = 0; i < 3; ++i) {
        EXPECT_GE(indices.first_order(i), 0.0) << "seed " << seed;
        EXPECT_LE(indices.first_order(i), indices.total(i)) << "seed " << seed;
      }
    }
  }
}

// With a + b = 5 neither can change alone. Of 3 a + c, with a uniform on 0 to 5 and c on 0 to 3, they explain 9 * 35/12
// / (9 * 35/12 + 15/12). d occurs neither in the constraint nor in the function.
TEST(SobolIndices, OfParametersThatAConstraintTiesAreThoseOfAllOfThem) {
  session::Session session = plain_session(
      R"({"a": {"min": 0, "max": 5}, "b": {"min": 0, "max": 5}, "c": {"min": 0, "max": 3}, "d": [1, 2]})");
  session.space.restrict_to([](const space::Configuration& c) { return number(c, "a") + number(c, "b") == 5.0; });
  const Function function = [](const space::Configuration& c) { return 3.0 * number(c, "a") + number(c, "c"); };
  Rng rng(6, 0);
  const insight::SobolDesign listed = insight::listed_design(session.space, all_of(session.space));
  const insight::SobolDesign sampled = insight::sampled_design(
      session.space, [&] { return session.space.sample(rng); }, [](const space::Configuration&) { return true; });
  for (const insight::SobolDesign* design : {&listed, &sampled}) {
    std::map<std::string, double> total;
    const Eigen::VectorXd values = values_of(design->points, function);
    const insight::SobolIndices indices = insight::sobol_indices(*design, values);
    for (std::size_t i = 0; i < design->axes.size(); ++i)
      total[design->axes[i].name()] = indices.total(static_cast<Eigen::Index>(i));
    ASSERT_EQ(total.size(), 3U);
    const double truth = 9.0 * 35.0 / 12.0 / (9.0 * 35.0 / 12.0 + 15.0 / 12.0);
    const double error = 1e-12 + 4.0 * insight::sampling_error(*design, values);
    EXPECT_NEAR(total.at("a and b"), truth, error);
    EXPECT_NEAR(total.at("c"), 1.0 - truth, error);
    EXPECT_EQ(total.at("d"), 0.0);
  }
}

// For the product of three factors, the terms that contain both i and j are v_i v_j (1 + v_k); a sum has none.
TEST(SobolIndices, OfPairsAreTheirTermsOfTheDecomposition) {
  const session::Session session =
      plain_session(R"({"a": {"min": 0, "max": 3}, "b": {"min": 0, "max": 4}, "c": {"min": 0, "max": 2}})");
  const Function product = [](const space::Configuration& c) {
    return (1.0 + 0.5 * (number(c, "a") - 1.5)) * (1.0 + 0.3 * (number(c, "b") - 2.0)) *
           (1.0 + 0.4 * (number(c, "c") - 1.0));
  };
  const Function sum = [](const space::Configuration& c) { return number(c, "a") + 2.0 * number(c, "b"); };
  const std::array<double, 3> v = {0.25 * 15.0 / 12.0, 0.09 * 24.0 / 12.0, 0.16 * 8.0 / 12.0};
  const double variance = (1.0 + v[0]) * (1.0 + v[1]) * (1.0 + v[2]) - 1.0;
  Rng rng(5, 0);
  insight::SobolDesign exact = insight::listed_design(session.space, all_of(session.space));
  insight::SobolDesign drawn = insight::sampled_design(
      session.space, [&] { return session.space.sample(rng); }, [](const space::Configuration&) { return true; },
      {4000, 2000});
  for (insight::SobolDesign* design : {&exact, &drawn}) {
    insight::add_pairs(
        session.space, [](const space::Configuration&) { return true; }, {"a", "b", "c"}, *design, rng);
    ASSERT_EQ(design->pairs.size(), 3U);
    const insight::SobolIndices indices = insight::sobol_indices(*design, values_of(design->points, product));
    const insight::SobolIndices none = insight::sobol_indices(*design, values_of(design->points, sum));
    for (std::size_t p = 0; p < 3; ++p) {
      const std::size_t a = design->pairs[p].a;
      const std::size_t b = design->pairs[p].b;
      const double truth = v.at(a) * v.at(b) * (1.0 + v.at(3 - a - b)) / variance;
      // 2000 rectangles, whose squares deviate from their mean by about twice the mean.
      EXPECT_NEAR(indices.pairs(static_cast<Eigen::Index>(p)) / truth, 1.0, 0.15) << a << b;
      EXPECT_LE(none.pairs(static_cast<Eigen::Index>(p)), 1e-25) << a << b;
    }
  }
}

TEST(PosteriorDraws, HaveThePosteriorsCovariance) {
  constexpr int kPoints = 7;
  constexpr int kDraws = 40'000;
  surrogate::GaussianProcess process(surrogate::make_kernel(surrogate::KernelKind::kMatern52));
  surrogate::Observations data;
  data.points = surrogate::Points::zero(2, 1, 0);
  data.points.ordered << 0.2, 0.7;
  data.values = Eigen::Vector2d(1.0, -1.0);
  process.condition(data, Eigen::Vector3d(std::log(0.4), 0.0, std::log(0.1)));
  surrogate::Points points = surrogate::Points::zero(kPoints, 1, 0);
  points.ordered = Eigen::VectorXd::LinSpaced(kPoints, 0.0, 1.0);
  Rng rng(1, 0);
  const Eigen::MatrixXd draws = insight::posterior_deviations(process, points, kDraws, rng);
  const Eigen::MatrixXd covariance = process.posterior_covariance(points);
  // The standard error of a covariance is at most sqrt(2) times the largest variance over sqrt(draws).
  const double error = std::sqrt(2.0 / kDraws) * covariance.diagonal().maxCoeff();
  EXPECT_LE((draws * draws.transpose() / kDraws - covariance).cwiseAbs().maxCoeff(), 4.0 * error);
}

class ImportanceOfParameters : public testing::Test {
 protected:
  // a gains 8 % for each step, and 1.5 times that with b = "y"; c has no effect.
  static double speed(const space::Configuration& c) {
    return std::exp(0.08 * number(c, "a")) * (space::to_string(*c.find("b")) == "y" ? 1.5 : 1.0);
  }
  ImportanceOfParameters()
      : problem_(
            plain_session(R"({"a": {"min": 0, "max": 9}, "b": ["x", "y"], "c": {"min": 0, "max": 4}, "d": [1]})")) {
    history_ = problem_.drive(search::StrategyKind::kRandom, 1, 40,
                              [&](const space::Configuration& c) { return measured(problem_.session, speed(c)); });
  }
  std::optional<insight::Importance> of(const insight::ImportanceOptions& options = {}) const {
    return insight::importance(problem_.session, problem_.candidates, history_, options);
  }
  Problem problem_;
  search::History history_;
};

TEST_F(ImportanceOfParameters, IsThatOfTheFunctionThatWasMeasured) {
  const std::optional<insight::Importance> found = of();
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
  ASSERT_EQ(found->pairs.size(), 3U);
  for (const insight::PairImportance& pair : found->pairs) {
    EXPECT_LE(pair.interaction.value, 0.02) << "the logarithm of a product has no interactions";
    EXPECT_LE(pair.interaction.value, pair.interaction.upper_95) << pair.a << pair.b;
  }
  for (const insight::ParameterImportance& parameter : found->parameters) {
    EXPECT_LE(parameter.total.lower_95, parameter.total.value) << parameter.name;
    EXPECT_LE(parameter.first_order.value, parameter.total.value) << parameter.name;
    EXPECT_LE(parameter.total.value, parameter.total.upper_95) << parameter.name;
  }
}

TEST_F(ImportanceOfParameters, SaysWhatAnotherValueThanTheBestOnesDoes) {
  const std::optional<insight::Importance> found = of();
  ASSERT_TRUE(found);
  EXPECT_EQ(space::as_number(*found->best.find("a")), 9.0);
  ASSERT_EQ(found->effects.size(), 3u);
  const insight::Effect& a = found->effects[0];
  EXPECT_EQ(a.parameter, "a");
  EXPECT_TRUE(a.clear());
  EXPECT_EQ(space::as_number(a.best), 9.0);
  EXPECT_EQ(space::as_number(a.other), 0.0);
  EXPECT_LE(std::abs(a.factor / std::exp(0.72) - 1.0), 0.05);
  EXPECT_EQ(found->effects[1].parameter, "b");
  EXPECT_LE(std::abs(found->effects[1].factor / 1.5 - 1.0), 0.05);
  EXPECT_LE(std::abs(found->effects[2].factor - 1.0), 0.02);
  for (const insight::Effect& effect : found->effects) {
    EXPECT_TRUE(effect.lower_95 <= effect.factor && effect.factor <= effect.upper_95) << effect.parameter;
  }
}

TEST(ImportanceOfTiedParameters, SaysWhatChangingAllOfThemDoes) {
  session::Session session = plain_session(R"({"a": [1, 2, 4, 8], "b": [1, 2, 4, 8], "c": [1, 2, 3]})", false);
  session.space.restrict_to([](const space::Configuration& c) { return number(c, "a") * number(c, "b") == 8.0; });
  const Problem tied(session);
  const search::History history = tied.drive(search::StrategyKind::kRandom, 1, 12, [&](const space::Configuration& c) {
    return measured(tied.session, 100.0 * number(c, "a"));
  });
  const std::optional<insight::Importance> found = insight::importance(tied.session, tied.candidates, history, {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->parameters[0].name, "a and b");
  EXPECT_EQ(found->parameters[0].tied, (std::vector<std::string>{"a", "b"}));
  EXPECT_GT(found->parameters[0].total.value, 0.95);
  EXPECT_EQ(found->effects[0].parameter, "a and b");
  EXPECT_EQ(space::to_string(found->effects[0].best), "1 and 8");
  EXPECT_EQ(space::to_string(found->effects[0].other), "8 and 1");
  EXPECT_NEAR(found->effects[0].factor, 8.0, 1.0);
}

TEST_F(ImportanceOfParameters, OfASliceIsThatOfTheOthers) {
  insight::ImportanceOptions options;
  options.where = [](const space::Configuration& c) { return number(c, "a") == 3.0; };
  const std::optional<insight::Importance> found = of(options);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->configurations, 10);
  EXPECT_EQ(found->parameters[0].name, "b");
  EXPECT_NEAR(found->parameters[0].total.value, 1.0, 0.03);
  EXPECT_EQ(space::as_number(*found->best.find("a")), 3.0);
}

TEST_F(ImportanceOfParameters, IsSampledWhereThereAreTooManyToList) {
  const Problem large(
      plain_session(R"({"a": {"type": "real", "min": 0, "max": 9}, "b": ["x", "y"], "c": {"min": 0, "max": 999}})"));
  const search::History history = large.drive(search::StrategyKind::kRandom, 1, 40, [&](const space::Configuration& c) {
    return measured(large.session, speed(c));
  });
  const std::optional<insight::Importance> found = insight::importance(large.session, large.candidates, history, {});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->sampled);
  EXPECT_TRUE(found->sampling_error > 0.0 && found->sampling_error < 0.05) << found->sampling_error;
  const double a = 0.08 * 0.08 * 81.0 / 12.0;
  const double b = std::log(1.5) * std::log(1.5) / 4.0;
  EXPECT_NEAR(found->parameters[0].total.value, a / (a + b), 0.03 + 3.0 * found->sampling_error);
  EXPECT_EQ(found->parameters[2].name, "c");
}

TEST_F(ImportanceOfParameters, IsNothingBeforeTwoTrialsAreOk) {
  EXPECT_FALSE(insight::importance(problem_.session, problem_.candidates, {}, {}));
  const search::History one(history_.begin(), history_.begin() + 1);
  EXPECT_FALSE(insight::importance(problem_.session, problem_.candidates, one, {}));
}

}  // namespace krigtune::importance_test
