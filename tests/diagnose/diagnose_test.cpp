#include "diagnose/diagnose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/json.h"
#include "diagnose/moves.h"
#include "diagnose/observations.h"
#include "forecast/forecast.h"
#include "user_error.h"

namespace krigtune::diagnose_test {

using diagnose::Limit;

session::Session session_of(const std::string& space, const std::string& baseline, const std::string& batch = "64",
                            const std::string& model = "gpt2-1.5b") {
  return session::read_session(parse_json(R"({"workload": {"model": {"preset": ")" + model +
                                              R"("}, "precision": "bf16", "train_batch_size": )" + batch +
                                              R"(}, "cluster": {"gpus_per_node": 8, "gpu": "a100-80gb"},
                                                 "runner": {"kind": "none"}, "space": )" +
                                              space + R"(, "baseline": )" + baseline + "}",
                                          "test"),
                               "test", ".");
}

/// A session with its models.
struct Job {
  explicit Job(session::Session of) : session(std::move(of)), filter(session), model(session, filter) {}
  diagnose::Diagnosis plan() { return diagnose::diagnose(model, *session.baseline); }

  session::Session session;
  session::MemoryFilter filter;
  diagnose::JobModel model;
};

constexpr const char* kSpace = R"({"zero_stage": [1, 2, 3], "micro_batch": [1, 2, 4],
                                   "activation_checkpointing": ["none", "full"], "overlap_comm": [true, false]})";

const diagnose::Verdict* find(const diagnose::Diagnosis& diagnosis, Limit limit) {
  const auto at = std::find_if(diagnosis.verdicts.begin(), diagnosis.verdicts.end(),
                               [&](const diagnose::Verdict& verdict) { return verdict.limit == limit; });
  return at == diagnosis.verdicts.end() ? nullptr : &*at;
}

TEST(Diagnose, OfAPlanSaysNothingOfTheMachine) {
  Job job(session_of(kSpace, R"({"zero_stage": 2, "micro_batch": 1, "overlap_comm": false})"));
  const diagnose::Diagnosis diagnosis = job.plan();
  EXPECT_FALSE(diagnosis.factors);
  ASSERT_FALSE(diagnosis.verdicts.empty());
  for (const diagnose::Verdict& verdict : diagnosis.verdicts) {
    EXPECT_FALSE(verdict.measured) << verdict.sentence;
    EXPECT_TRUE(verdict.limit != Limit::kSlowDevice && verdict.limit != Limit::kStraggler) << verdict.sentence;
    EXPECT_GE(verdict.number, verdict.threshold) << verdict.sentence;
  }
}

TEST(Diagnose, AdviceIsWhatTheModelsSayOfTheChangedConfiguration) {
  Job job(session_of(kSpace, R"({"zero_stage": 2, "micro_batch": 1, "activation_checkpointing": "full",
                                 "overlap_comm": false})"));
  const diagnose::Diagnosis diagnosis = job.plan();
  const forecast::Forecaster forecaster(job.session, job.filter);
  const double present = forecaster(*job.session.baseline).samples_per_s;
  int checked = 0;
  for (const diagnose::Verdict& verdict : diagnosis.verdicts) {
    for (const diagnose::Advice& advice : verdict.advice) {
      const forecast::Forecast forecast = forecaster(advice.configuration);
      EXPECT_NEAR(advice.speedup, forecast.samples_per_s / present, 1e-12);
      EXPECT_EQ(advice.predicted.memory->predicted, forecast.memory->predicted);
      EXPECT_GE(forecast.memory->probability_fits, 0.5);
      EXPECT_GE(advice.speedup, diagnose::kLeastSpeedup);
      // A step trains on as many sequences as before.
      EXPECT_EQ(advice.predicted.sequences, 64.0);
      for (const diagnose::Change& change : advice.changes) {
        EXPECT_EQ(*advice.configuration.find(change.parameter), change.after);
        EXPECT_FALSE(space::same_value(change.before, change.after)) << change.parameter;
      }
      ++checked;
    }
  }
  EXPECT_GT(checked, 2);
}

TEST(Diagnose, SaysWhetherTheSpaceHoldsWhatItAdvises) {
  Job job(session_of(R"({"zero_stage": [2], "micro_batch": [1, 2], "overlap_comm": [true]})",
                     R"({"zero_stage": 2, "micro_batch": 1, "overlap_comm": true})"));
  const diagnose::Prediction present = *job.model.predict(*job.session.baseline);
  const diagnose::Moves moves(job.model, *job.session.baseline, present);
  std::set<std::int64_t> inside;
  std::set<std::int64_t> outside;
  for (const diagnose::Move& move : moves.of({"micro_batch"})) {
    const std::int64_t size = move.configuration.integer("micro_batch", 0);
    (diagnose::advice_of(job.model, present, move).in_space ? inside : outside).insert(size);
  }
  EXPECT_EQ(inside, (std::set<std::int64_t>{2}));
  EXPECT_EQ(outside, (std::set<std::int64_t>{4, 8}));  // 64 sequences on 8 ranks: no larger value divides them
}

TEST(Diagnose, OffersOnlyWhatTheJobCanDo) {
  Job job(session_of(R"({"micro_batch": [1, 2]})", R"({"micro_batch": 1})"));
  const diagnose::Prediction present = *job.model.predict(*job.session.baseline);
  const diagnose::Moves moves(job.model, *job.session.baseline, present);
  EXPECT_TRUE(moves.of({"tensor_parallel"}).empty());              // nothing says that the job supports it
  EXPECT_TRUE(moves.of({"gradient_accumulation_steps"}).empty());  // the batch stays the same
  EXPECT_FALSE(moves.of({"zero_stage"}).empty());
}

TEST(Diagnose, OfWhatDoesNotFitNamesWhatMakesItFit) {
  Job job(session_of(R"({"zero_stage": [0, 3], "micro_batch": [1, 2, 4]})", R"({"zero_stage": 0, "micro_batch": 4})",
                     "64", "llama-7b"));
  const diagnose::Diagnosis diagnosis = job.plan();
  ASSERT_FALSE(diagnosis.verdicts.empty());
  const diagnose::Verdict& first = diagnosis.verdicts.front();
  EXPECT_EQ(first.limit, Limit::kMissingMemory);
  EXPECT_GT(first.number, 1.0);
  ASSERT_FALSE(first.advice.empty());
  for (const diagnose::Advice& advice : first.advice) EXPECT_GE(advice.predicted.memory->probability_fits, 0.5);
}

TEST(Diagnose, OfWhatRanOutOfMemoryAgainstTheModelsAdvisesClearlyLess) {
  Job job(session_of(kSpace, R"({"zero_stage": 2, "micro_batch": 4, "overlap_comm": true})"));
  const diagnose::Diagnosis diagnosis = diagnose::diagnose(job.model, *job.session.baseline, {{}, true});
  ASSERT_FALSE(diagnosis.verdicts.empty());
  const diagnose::Verdict& first = diagnosis.verdicts.front();
  EXPECT_EQ(first.limit, Limit::kMissingMemory);
  EXPECT_TRUE(first.measured);
  ASSERT_FALSE(first.advice.empty());
  const auto needed = static_cast<double>(diagnosis.stated.memory->predicted.count);
  for (const diagnose::Advice& advice : first.advice) {
    EXPECT_LE(static_cast<double>(advice.predicted.memory->predicted.count), 0.9 * needed);
  }
}

TEST(Diagnose, AMeasurementThatAgreesWithTheModelsCorrectsNothing) {
  Job job(session_of(kSpace, R"({"zero_stage": 2, "micro_batch": 4, "overlap_comm": true})"));
  const diagnose::Prediction stated = *job.model.stated(*job.session.baseline);
  diagnose::Observation seen;
  seen.configuration = *job.session.baseline;
  seen.step_time_s = stated.cost.step_time_s;
  seen.exposed_comm_s = stated.cost.exposed_comm_s;
  const diagnose::Diagnosis diagnosis = diagnose::diagnose(job.model, *job.session.baseline, {{seen}, false});
  EXPECT_NEAR(diagnosis.factors->kernels, 1.0, 1e-3);
  EXPECT_NEAR(diagnosis.factors->collectives, 1.0, 1e-3);
  EXPECT_NEAR(diagnosis.learned.cost.step_time_s, stated.cost.step_time_s, 1e-3 * stated.cost.step_time_s);
}

TEST(Diagnose, SaysWhereNoFactorExplainsTheMeasurement) {
  Job job(session_of(kSpace, R"({"zero_stage": 2, "micro_batch": 4, "overlap_comm": true})"));
  const diagnose::Prediction stated = *job.model.stated(*job.session.baseline);
  diagnose::Diagnosis diagnosis;
  diagnosis.learned = stated;
  EXPECT_FALSE(diagnosis.is_unexplained());  // nothing was measured
  diagnosis.measured_step_s = 1.05 * stated.cost.step_time_s;
  EXPECT_FALSE(diagnosis.is_unexplained());
  diagnosis.measured_step_s = 1.5 * stated.cost.step_time_s;
  EXPECT_TRUE(diagnosis.is_unexplained());
  diagnosis.straggling_s = 0.5 * stated.cost.step_time_s;
  EXPECT_FALSE(diagnosis.is_unexplained());
}

// A rank that shares its core (measured: rank 1 at nice 19 beside a busy program) computes longer and arrives late.
TEST(Diagnose, ASlowRankCostsWhatOthersWaitForIt) {
  diagnose::Observation seen;
  seen.step_time_s = 32.2e-3;
  EXPECT_EQ(seen.straggling_s(), 0.0);
  seen.median_rank_kernels_s = 13.2e-3;
  seen.slowest_rank_kernels_s = 18.6e-3;
  EXPECT_NEAR(seen.straggling_s(), 5.4e-3, 1e-9);
  seen.waiting_s = 14.9e-3;
  EXPECT_NEAR(seen.straggling_s(), 14.9e-3, 1e-9);
  seen.waiting_s = 1e-3;
  EXPECT_NEAR(seen.straggling_s(), 5.4e-3, 1e-9);
  seen.slowest_rank_kernels_s = 13.3e-3;  // no rank is slow, so it waits for the network
  seen.waiting_s = 14.9e-3;
  EXPECT_NEAR(seen.straggling_s(), 0.1e-3, 1e-9);
}

// One trial is enough, because exposed communication was measured.
TEST(Diagnose, ASlowNetworkAndSlowKernelsAreToldApartByOneTrial) {
  for (const bool is_network : {true, false}) {
    Job job(session_of(kSpace, R"({"zero_stage": 2, "micro_batch": 4, "overlap_comm": false})"));
    cost::TimeCalibration truth;
    (is_network ? truth.collectives : truth.products) = 2.5;
    if (!is_network) truth.memory = 2.5;
    const diagnose::Prediction there = *job.model.with(*job.session.baseline, truth);
    diagnose::Observation seen;
    seen.configuration = *job.session.baseline;
    seen.step_time_s = there.cost.step_time_s;
    seen.exposed_comm_s = there.cost.exposed_comm_s;
    const diagnose::Diagnosis diagnosis = diagnose::diagnose(job.model, *job.session.baseline, {{seen}, false});
    EXPECT_NEAR(diagnosis.learned.cost.step_time_s, seen.step_time_s, 0.01 * seen.step_time_s);
    EXPECT_NEAR(diagnosis.learned.cost.exposed_comm_s, *seen.exposed_comm_s, 0.02 * seen.step_time_s);
    EXPECT_EQ(find(diagnosis, Limit::kSlowDevice) == nullptr, is_network);
    EXPECT_EQ(diagnosis.factors->collectives > 2.0 * diagnosis.factors->kernels, is_network);
  }
}

TEST(Diagnose, TimeBetweenStepsIsTheInputs) {
  Job job(session_of(kSpace, R"({"zero_stage": 2, "micro_batch": 4, "overlap_comm": true})"));
  trial::Measured measured;
  const double step_s = job.model.stated(*job.session.baseline)->cost.step_time_s;
  measured.metrics = {{"step_time_s", step_s}, {"data_loading_s", step_s}};
  const auto seen = diagnose::observation_of(job.session, *job.session.baseline, measured);
  ASSERT_TRUE(seen);
  const diagnose::Diagnosis diagnosis = diagnose::diagnose(job.model, *job.session.baseline, {{*seen}, false});
  EXPECT_EQ(diagnosis.verdicts.front().limit, Limit::kInput);
  EXPECT_DOUBLE_EQ(diagnosis.verdicts.front().share, 0.5);
  EXPECT_DOUBLE_EQ(diagnosis.verdicts.front().advice.front().speedup, 2.0);
}

TEST(Diagnose, RatesAreTurnedIntoTimes) {
  Job job(session_of(kSpace, R"({"zero_stage": 2, "micro_batch": 4, "overlap_comm": true})"));
  const auto time_of = [&](const char* metric, double value) {
    trial::Measured measured;
    measured.metrics = {{metric, value}};
    const auto seen = diagnose::observation_of(job.session, *job.session.baseline, measured);
    return seen ? seen->step_time_s : 0.0;
  };
  EXPECT_DOUBLE_EQ(time_of("samples_per_s", 32.0), 2.0);
  EXPECT_DOUBLE_EQ(time_of("tokens_per_s", 32.0 * 1024.0), 2.0);
  EXPECT_EQ(time_of("loss", 3.0), 0.0);
}

TEST(Diagnose, EveryLimitHasAWordAndATitleOfItsOwn) {
  std::set<std::string> words;
  std::set<std::string> titles;
  for (int i = 0; i < diagnose::kLimitCount; ++i) {
    words.insert(diagnose::to_string(static_cast<Limit>(i)));
    titles.insert(diagnose::title_of(static_cast<Limit>(i)));
  }
  EXPECT_EQ(words.size(), static_cast<std::size_t>(diagnose::kLimitCount));
  EXPECT_EQ(titles.size(), static_cast<std::size_t>(diagnose::kLimitCount));
  EXPECT_STREQ(diagnose::to_string(Limit::kCompute), "compute");
}

TEST(Diagnose, NeedsModelsAndSaysWhichBlockIsMissing) {
  const session::Session session = session::read_session(
      parse_json(R"({"space": {"lr": [1, 2]}, "objective": {"metric": "loss", "direction": "minimize"}})", "test"),
      "test", ".");
  const session::MemoryFilter filter(session);
  EXPECT_EQ(user_error_of([&] { diagnose::JobModel(session, filter); }),
            "nothing can be said of what limits it: no workload is given; the models need the blocks "
            "\"workload\" and \"cluster\" (docs/session.md)");
}

}  // namespace krigtune::diagnose_test
