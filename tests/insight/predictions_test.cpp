#include "insight/predictions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/error.h"
#include "search/fixtures.h"
#include "search/model/best.h"
#include "search/trials/objective_scale.h"

namespace krigtune::predictions_test {

// E[max(0, improvement)] by the trapezium rule over +-12 standard deviations. Errors are below 1e-9 for smooth
// integrands, and the kink adds only the square of the step.
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
      const session::Objective objective{"m", maximize, "m"};
      search::History history(1);
      trial::Measured measured;
      measured.metrics["m"] = logarithmic ? 5.0 : -5.0;
      history[0].outcome = measured;
      const search::ObjectiveScale scale(objective, history);
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
  const search::ObjectiveScale scale({"m", true, "m"}, {});
  // Far below the incumbent, the two terms cancel; log EI must still decrease smoothly.
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
    const search::ObjectiveScale scale({"m", maximize, "m"}, {});
    EXPECT_NEAR(scale.from_latent(scale.to_latent(123.0)), 123.0, 1e-10);
    EXPECT_EQ(scale.to_latent(2.0) > scale.to_latent(1.0), maximize);
    EXPECT_NEAR(scale.latent_variance(50.0, 1.0), 4e-4, 1e-15);
  }
}

double cost(const space::Configuration& c) {
  const double a = space::as_number(*c.find("a"));
  return 5.0 + (a - 6.0) * (a - 6.0);
}

class Predictions : public testing::Test {
 protected:
  Predictions() : problem_(plain_session(R"({"a": {"min": 0, "max": 9}, "b": ["x", "y"]})", false)) {
    history_ = problem_.drive(search::StrategyKind::kBayes, 1, 8, [&](const space::Configuration& c) -> trial::Outcome {
      if (space::as_number(*c.find("a")) == 0) return trial::OutOfMemory{};
      return measured(problem_.session, cost(c));
    });
  }
  std::vector<insight::PredictionRow> rows(const insight::PredictOptions& options = {},
                                           const search::History* history = nullptr) const {
    std::vector<insight::PredictionRow> result;
    insight::for_each_prediction(problem_.session, problem_.filter, problem_.candidates,
                                 history == nullptr ? history_ : *history, options,
                                 [&](const insight::PredictionRow& row) { result.push_back(row); });
    return result;
  }
  Problem problem_;
  search::History history_;
};

TEST_F(Predictions, HoldTheWholeSpaceInTheObjectivesUnits) {
  const std::vector<insight::PredictionRow> all = rows();
  ASSERT_EQ(all.size(), 20u);
  int observed = 0;
  for (const insight::PredictionRow& row : all) {
    ASSERT_TRUE(row.median && row.stddev && row.lower_95 && row.upper_95 && row.expected_improvement);
    EXPECT_GT(*row.median, 0.0);
    EXPECT_LT(*row.lower_95, *row.median);
    EXPECT_GT(*row.upper_95, *row.median);
    // For a log-normal distribution, the median is the geometric mean of the interval's ends.
    EXPECT_LE(std::abs(std::sqrt(*row.lower_95 * *row.upper_95) / *row.median - 1.0), 1e-9);
    if (*row.log_expected_improvement > -700.0) {  // exp underflows below
      EXPECT_NEAR(std::log(*row.expected_improvement), *row.log_expected_improvement, 1e-9);
    }
    EXPECT_TRUE(row.probability_feasible > 0.0 && row.probability_feasible < 1.0);
    EXPECT_FALSE(row.memory_feasible);
    if (row.observed) {
      ++observed;
      EXPECT_EQ(row.status, "ok");
      EXPECT_EQ(*row.observed, cost(row.configuration));
      EXPECT_LE(std::abs(*row.median / *row.observed - 1.0), 0.1);
    }
  }
  const auto ok = std::count_if(history_.begin(), history_.end(), [&](const journal::Trial& t) {
    return search::value_of(t, problem_.session.objective).has_value();
  });
  EXPECT_EQ(observed, ok);
}

TEST_F(Predictions, SayWhatFailedAndThatItIsLessLikely) {
  double failed = 1.0;
  double worked = 0.0;
  for (const insight::PredictionRow& row : rows()) {
    if (row.status == "oom") failed = std::min(failed, row.probability_feasible);
    if (row.status == "ok") worked = std::max(worked, row.probability_feasible);
  }
  EXPECT_LT(failed, worked);
}

TEST_F(Predictions, AreEmptyBeforeAnythingWasMeasured) {
  const search::History nothing;
  for (const insight::PredictionRow& row : rows({}, &nothing)) {
    EXPECT_FALSE(row.median || row.expected_improvement || row.observed);
    EXPECT_EQ(row.status, "");
  }
}

TEST_F(Predictions, AreChosenByAPredicateAndSampled) {
  insight::PredictOptions options;
  options.where = [](const space::Configuration& c) { return space::as_number(*c.find("a")) >= 5; };
  EXPECT_EQ(rows(options).size(), 10u);
  options.sample = 4;
  const std::vector<insight::PredictionRow> some = rows(options);
  ASSERT_EQ(some.size(), 4u);
  std::set<std::string> distinct;
  for (const insight::PredictionRow& row : some) distinct.insert(row.configuration.text());
  EXPECT_EQ(distinct.size(), 4u);
  options.sample = 100;
  EXPECT_EQ(rows(options).size(), 10u);
}

TEST(MemoryPredictions, HoldWhatIsTooLargeAndSayThatItDoesNotFit) {
  session::Session session = session::read_session(parse_json(R"({
      "workload": {"model": {"layers": 2, "hidden": 32, "heads": 2, "vocab": 64, "seq_len": 16}, "precision": "fp32"},
      "cluster": {"nodes": 1, "gpus_per_node": 2, "gpu": "local"}, "memory": {"limit_gib": 1},
      "space": {"zero_stage": [0, 3], "micro_batch": [1, 2, 64]}, "baseline": null})",
                                                              "s"),
                                                   "s", ".");
  const session::MemoryFilter all(session);
  const space::Configuration small{{"zero_stage", std::int64_t{0}}, {"micro_batch", std::int64_t{2}}};
  session.usable_per_rank = Bytes{all.planned(small)->predicted.count};
  const Problem problem(session);
  int too_large = 0;
  int count = 0;
  insight::for_each_prediction(
      problem.session, problem.filter, problem.candidates, {}, {}, [&](const insight::PredictionRow& row) {
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
  session::Session session = plain_session(R"({"a": {"min": 0, "max": 9}})", false);
  session.baseline = space::Configuration{{"a", std::int64_t{0}}};
  const Problem problem(session);
  const search::History history = problem.drive(search::StrategyKind::kBayes, 1, 9, [&](const space::Configuration& c) {
    return measured(problem.session, cost(c));
  });
  const std::optional<search::Recommendation> best = search::recommend(problem.session, problem.candidates, history, 1);
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
  search::History history;
  for (int a = 0; a <= 20; a += 2) {
    journal::Trial trial;
    trial.number = static_cast<int>(history.size());
    trial.proposal.configuration = space::Configuration{{"a", std::int64_t{a}}};
    trial::Measured result;
    const double smooth = 100.0 * std::exp(-0.01 * (a - 14) * (a - 14));
    // One trial far out was lucky by 25 %, and says itself that it is that uncertain.
    const bool lucky = a == 6;
    result.metrics["speed"] = lucky ? 110.0 : smooth;
    result.value_sem = lucky ? 40.0 : 0.5;
    trial.outcome = result;
    history.push_back(trial);
  }
  const std::optional<search::Recommendation> best = search::recommend(problem.session, problem.candidates, history, 1);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->configuration.text(), "a=14");
  EXPECT_EQ(search::best_value(problem.session.objective, history), 110.0);
}

TEST(Recommendation, IsRelativeToTheFirstOkTrialWhereTheBaselineFailed) {
  session::Session session = plain_session(R"({"a": {"min": 0, "max": 9}})");
  session.baseline = space::Configuration{{"a", std::int64_t{0}}};
  const Problem problem(session);
  const search::History history =
      problem.drive(search::StrategyKind::kRandom, 1, 4, [&](const space::Configuration& c) -> trial::Outcome {
        if (space::as_number(*c.find("a")) == 0) return trial::OutOfMemory{};
        return measured(problem.session, 1.0 + space::as_number(*c.find("a")));
      });
  const std::optional<search::Recommendation> best = search::recommend(problem.session, problem.candidates, history, 1);
  ASSERT_TRUE(best);
  EXPECT_EQ(best->reference_trial, 1);
  EXPECT_FALSE(search::recommend(problem.session, problem.candidates, {}, 1));
}

}  // namespace krigtune::predictions_test
