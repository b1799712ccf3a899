#include "forecast/plan_study.h"

#include <gtest/gtest.h>

#include "core/json.h"
#include "forecast/plan_study.h"

namespace krigtune::plan_study_test {

// 16 ranks. GiB_LIMIT and MORE are placeholders.
session::Session session_of(const std::string& space, const std::string& more = "", const std::string& batch = "128") {
  const std::string text = R"({
    "workload": {"model": {"preset": "llama-3-8b"}, "precision": "bf16", "train_batch_size": )" +
                           batch + R"(},
    "cluster": {"nodes": 2, "gpus_per_node": 8, "gpu": "h100-80gb", "network": "ib-ndr-400"},
    "baseline": null, "space": )" +
                           space + (more.find("runner") == std::string::npos ? R"(, "runner": {"kind": "none"})" : "") +
                           more + "}";
  return session::read_session(parse_json(text, "test"), "test", ".");
}

constexpr const char* kSpace = R"({"zero_stage": [1, 2, 3], "micro_batch": [1, 2, 4, 8], "tensor_parallel": [1, 2],
  "activation_checkpointing": ["none", "full"], "overlap_comm": [true, false]})";

/// A session and all the answers about it.
struct Studied {
  explicit Studied(session::Session of, forecast::StudyOptions options = {})
      : session(std::move(of)),
        filter(session),
        forecaster(session, filter),
        study(forecast::study_plan(session, forecaster, options)),
        answers(forecast::answers_of(session, filter, forecaster, study)) {}

  session::Session session;
  session::MemoryFilter filter;
  forecast::Forecaster forecaster;
  forecast::PlanStudy study;
  forecast::PlanAnswers answers;
};

TEST(PlanStudy, SaysWhereNothingFitsAndNamesTheLikeliest) {
  const std::string space =
      R"({"zero_stage": [1], "micro_batch": [1, 2, 4], "activation_checkpointing": ["none", "full"]})";
  const auto study_with = [&](const std::string& gib) {
    return Studied(session_of(space, R"(, "memory": {"limit_gib": )" + gib + "}")).study;
  };
  int without_any = 0;
  for (int gib = 20; gib <= 80; ++gib) {
    const forecast::PlanStudy study = study_with(std::to_string(gib));
    const forecast::VerdictCounts& counts = study.counts;
    EXPECT_EQ(study.nothing_fits(), counts.fit == 0 && counts.expected_to_run < 0.5) << gib;
    const auto chance = [](const forecast::Candidate& one) { return one.forecast.memory->probability_fits; };
    for (const forecast::Candidate& one : study.best) {
      EXPECT_EQ(chance(one) >= 0.5, study.best_probably_fit()) << gib;
      if (!study.best_probably_fit()) {
        EXPECT_LE(chance(one), chance(study.best.front())) << gib;
      }
    }
    if (study.nothing_fits() && !study.best.empty()) ++without_any;
  }
  EXPECT_GT(without_any, 0) << "none of the limits shows the case";
}

TEST(PlanStudy, CountsPointsOfValuesThatThisJobCannotUse) {
  const std::string usable = R"({"zero_stage": [1, 2], "micro_batch": [1, 2], "tensor_parallel": [1, 2]})";
  const std::string listed = R"({"zero_stage": [1, 2], "micro_batch": [1, 2], "tensor_parallel": [1, 2, 16, 32]})";
  const std::string simulated = R"(, "runner": {"kind": "simulate"})";
  const auto study_of = [&](const std::string& space) {
    session::Session session = session_of(space, simulated);
    return Studied(std::move(session)).study;
  };
  const forecast::PlanStudy few = study_of(usable);
  const forecast::PlanStudy many = study_of(listed);
  EXPECT_EQ(few.lattice, 8);
  EXPECT_EQ(many.lattice, 16);
  EXPECT_EQ(many.configurations, few.configurations);
  ASSERT_FALSE(many.excluded.empty());
  EXPECT_EQ(many.excluded.front(),
            (std::pair<std::string, std::int64_t>("tensor_parallel = 16 or 32 cannot be used by this job", 8)));
}

TEST(PlanStudy, CountsEveryConfigurationOnceAndByItsVerdict) {
  const Studied studied(session_of(kSpace));
  EXPECT_EQ(studied.study.looked_at(), studied.session.space.count());
  EXPECT_FALSE(studied.study.is_sample());
  forecast::VerdictCounts counts;
  forecast::VerdictCounts by_stage;
  studied.session.space.for_each([&](const space::Configuration& configuration) {
    counts.add(studied.filter.check(configuration));
    return true;
  });
  for (const auto& [stage, memory] : studied.study.stages) {
    by_stage.fit += memory.counts.fit;
    by_stage.uncertain += memory.counts.uncertain;
    by_stage.too_large += memory.counts.too_large;
    EXPECT_LE(memory.smallest, memory.largest) << stage;
  }
  for (const forecast::VerdictCounts& of : {counts, by_stage}) {
    EXPECT_EQ(studied.study.counts.fit, of.fit);
    EXPECT_EQ(studied.study.counts.uncertain, of.uncertain);
    EXPECT_EQ(studied.study.counts.too_large, of.too_large);
  }
  EXPECT_GT(counts.fit, 0);
  EXPECT_GT(counts.too_large, 0);
}

TEST(PlanStudy, ItsBestAreThoseThatASearchByHandFinds) {
  const Studied studied(session_of(kSpace));
  double best = 0.0;
  double limitless = 0.0;
  studied.session.space.for_each([&](const space::Configuration& configuration) {
    const forecast::Forecast forecast = studied.forecaster(configuration);
    limitless = std::max(limitless, forecast.samples_per_s);
    if (forecast.memory->probability_fits >= 0.5) best = std::max(best, forecast.samples_per_s);
    return true;
  });
  ASSERT_FALSE(studied.study.best.empty());
  EXPECT_EQ(studied.study.best.front().forecast.samples_per_s, best);
  EXPECT_EQ(studied.study.best_without_limit->forecast.samples_per_s, limitless);
  EXPECT_LE(studied.study.best.size(), 10U);
  for (std::size_t i = 1; i < studied.study.best.size(); ++i) {
    EXPECT_GE(*studied.study.best[i - 1].forecast.value, *studied.study.best[i].forecast.value);
    EXPECT_GE(studied.study.best[i].forecast.memory->probability_fits, 0.5);
  }
}

// The fastest of the best only fits more likely than not. The answers are about the fastest one that surely fits.
TEST(PlanAnswers, AreAboutTheFastestThatSurelyFits) {
  const Studied studied(session_of(kSpace));
  const std::vector<forecast::Candidate>& best = studied.study.best;
  const auto surely_fits = [](const forecast::Candidate& one) {
    return one.forecast.memory->verdict == plan::Verdict::kFits;
  };
  ASSERT_FALSE(surely_fits(best.front()));
  const auto first = std::find_if(best.begin(), best.end(), surely_fits);
  ASSERT_NE(first, best.end());
  EXPECT_EQ(studied.study.analysed_candidate().configuration, first->configuration);
  EXPECT_FALSE(studied.answers.by_zero_stage.empty());
  for (const forecast::Variant& variant : studied.answers.by_zero_stage) {
    space::Configuration other = variant.candidate.configuration;
    other.set("zero_stage", *first->configuration.find("zero_stage"));
    EXPECT_EQ(other, first->configuration);
  }
}

TEST(PlanStudy, DoesNotDependOnTheNumberOfThreads) {
  std::vector<std::string> one;
  std::vector<std::string> four;
  const auto collect = [](std::vector<std::string>& texts) {
    return [&texts](const forecast::Candidate& candidate) {
      texts.push_back(candidate.configuration.text() + std::to_string(candidate.forecast.cost->step_time_s));
    };
  };
  const Studied slow(session_of(kSpace), {collect(one), {}, 1});
  const Studied fast(session_of(kSpace), {collect(four), {}, 4});
  EXPECT_EQ(one, four);
  EXPECT_EQ(slow.study.best.front().configuration, fast.study.best.front().configuration);
}

TEST(PlanStudy, TheObjectiveSaysWhatIsBestAndItsUnit) {
  const std::string open = R"({"zero_stage": [3], "micro_batch": [1, 2], "gradient_accumulation_steps": [1, 8],
                               "activation_checkpointing": ["full"]})";
  const Studied fast(session_of(open, R"(, "objective": {"metric": "latency"})", "null"));
  const forecast::Candidate& shortest = fast.study.best.front();
  EXPECT_EQ(shortest.configuration.integer("gradient_accumulation_steps", 0), 1);
  EXPECT_EQ(*shortest.forecast.value, shortest.forecast.cost->step_time_s);
  const Studied busy(session_of(open, R"(, "objective": {"metric": "flops"})", "null"));
  const forecast::Candidate& busiest = busy.study.best.front();
  EXPECT_EQ(busiest.configuration.integer("gradient_accumulation_steps", 0), 8);
  const double flops =
      workload::model_flops(busy.session.workload->model, 16 * 8 * busiest.configuration.integer("micro_batch", 0));
  EXPECT_DOUBLE_EQ(*busiest.forecast.value, flops / busiest.forecast.cost->step_time_s / 16.0);
  const Studied own(session_of(open, R"(, "objective": {"metric": "loss", "direction": "minimize"})", "null"));
  EXPECT_FALSE(own.study.best.front().forecast.value);
}

// docs/training_step.md, dialect deepspeed: Psi (N - 1) / N bytes, times 2 all-reduced once + 1 gathered (stage 1), 2 k
// + 1 (stage 2), k + k (1 to 2) (stage 3).
TEST(PlanAnswers, VolumesOfZeroAreThoseOfTheClosedForms) {
  const Studied studied(session_of(R"({"zero_stage": [1, 2, 3], "micro_batch": [1], "tensor_parallel": [1],
                                       "activation_checkpointing": ["full"]})"));
  ASSERT_EQ(studied.answers.by_zero_stage.size(), 3U);
  const double psi =
      2.0 * static_cast<double>(workload::parameter_count(studied.session.workload->model)) * 15.0 / 16.0;
  const double k = 8.0;
  const auto volume = [&](std::size_t i) {
    return studied.answers.by_zero_stage[i].candidate.forecast.cost->data_wire_bytes / psi;
  };
  EXPECT_LE(std::abs(volume(0) - 3.0), 0.01);
  EXPECT_LE(std::abs(volume(1) - (2.0 * k + 1.0)), 0.01);
  EXPECT_GE(volume(2), 2.0 * k - 0.2);
  EXPECT_LE(volume(2), 3.0 * k + 0.2);
}

// Four all-reduces of batch * seq * hidden elements per layer and micro-step, three of which send 2 (t - 1) / t.
TEST(PlanAnswers, VolumesOfTensorParallelismAreThoseOfTheClosedForms) {
  const Studied studied(session_of(R"({"zero_stage": [1], "micro_batch": [1], "tensor_parallel": [1, 2, 4],
                                       "activation_checkpointing": ["none"]})"));
  ASSERT_EQ(studied.answers.by_tensor_parallel.size(), 3U);
  EXPECT_EQ(studied.answers.by_tensor_parallel[0].candidate.forecast.cost->tensor_wire_bytes, 0.0);
  for (const std::size_t i : {1U, 2U}) {
    const double t = i == 1 ? 2.0 : 4.0;
    const double micro_steps = 128.0 / (16.0 / t);
    const double elems = 8192.0 * 4096.0;
    const double layers = micro_steps * 32.0 * 4.0 * 2.0 * elems * 2.0 * (t - 1.0) / t;
    const double sent = studied.answers.by_tensor_parallel[i].candidate.forecast.cost->tensor_wire_bytes;
    EXPECT_GE(sent, layers);
    EXPECT_LE(sent, 1.03 * layers);  // the embedding, the head and the loss
  }
}

TEST(PlanAnswers, WhatIfsNeverSlowDownAndAFasterKernelHelpsWhatComputes) {
  const Studied studied(session_of(kSpace));
  ASSERT_EQ(studied.answers.what_ifs.size(), 5U);
  for (std::size_t i = 0; i < studied.answers.what_ifs.size(); ++i) {
    EXPECT_GE(studied.answers.what_ifs[i].gain, 1.0 - 1e-9) << studied.answers.what_ifs[i].change;
    EXPECT_LE(studied.answers.what_ifs[i].gain, 2.0 + 1e-9);
    if (i > 0) {
      EXPECT_LE(studied.answers.what_ifs[i].gain, studied.answers.what_ifs[i - 1].gain);
    }
  }
  EXPECT_EQ(studied.study.best.front().forecast.cost->bottleneck(), cost::Bottleneck::kCompute);
  EXPECT_EQ(studied.answers.what_ifs.front().change, "matrix products twice as fast");
}

TEST(PlanAnswers, TheBatchGrowsAndThePlateauIsTheFirstWithinFivePerCent) {
  const Studied studied(session_of(R"({"zero_stage": [3], "micro_batch": [1, 2, 4, 8],
                                       "activation_checkpointing": ["full"]})",
                                   "", "null"));
  const std::vector<forecast::BatchRow>& rows = studied.answers.batch.by_micro_batch;
  ASSERT_EQ(rows.size(), 4U);
  double most = 0.0;
  for (const forecast::BatchRow& row : rows) {
    EXPECT_EQ(row.sequences, 16 * row.micro_batch);
    if (row.forecast.memory->verdict != plan::Verdict::kTooLarge) most = std::max(most, row.forecast.samples_per_s);
  }
  int marked = 0;
  for (const forecast::BatchRow& row : rows) {
    marked += row.plateau ? 1 : 0;
    if (marked == 0) {
      EXPECT_LT(row.forecast.samples_per_s, 0.95 * most);
    }
    if (row.plateau) {
      EXPECT_GE(row.forecast.samples_per_s, 0.95 * most);
    }
  }
  EXPECT_EQ(marked, 1);
  EXPECT_EQ(studied.answers.batch.by_accumulation.size(), 6U);
  EXPECT_TRUE(Studied(session_of(kSpace)).answers.batch.by_accumulation.empty());
}

TEST(PlanAnswers, TermsAddUpToThePeak) {
  const Studied studied(session_of(kSpace));
  ASSERT_EQ(studied.answers.terms.size(), 3U);
  for (const auto& [stage, terms] : studied.answers.terms) {
    std::int64_t sum = terms.other_bytes;
    for (const std::int64_t bytes : terms.term_bytes) sum += bytes;
    EXPECT_EQ(sum, terms.peak.count) << stage;
  }
}

TEST(PlanAnswers, ParametersOfTheUsersOwnAreLeftOutOfPredictions) {
  const Studied plain(session_of(R"({"zero_stage": [3], "micro_batch": [1]})"));
  const Studied own(session_of(R"({"zero_stage": [3], "micro_batch": [1], "num_workers": [1, 2]})"));
  ASSERT_EQ(own.session.warnings.size(), 1U);
  EXPECT_EQ(own.session.warnings.front(), "predictions of memory and time leave out num_workers");
  EXPECT_EQ(own.study.looked_at(), 2);
  EXPECT_EQ(own.study.best.front().forecast.samples_per_s, plain.study.best.front().forecast.samples_per_s);
}

TEST(PlanAnswers, GpuHoursAreTheTrialsTimesTheRanks) {
  const Studied studied(session_of(kSpace, R"(, "budget": {"trials": 10})"));
  EXPECT_EQ(studied.answers.time.trials, 10);
  EXPECT_FALSE(studied.answers.time.trials_s);
  session::Session program = session_of(kSpace, R"(, "budget": {"trials": 10, "hours": 2})");
  program.runner = runner::CommandSpec();
  std::get<runner::CommandSpec>(program.runner).timeout_s = 600.0;
  EXPECT_EQ(*forecast::expected_time(program, studied.study).most_trials_s, 6000.0);
  std::get<runner::CommandSpec>(program.runner).timeout_s = 3600.0;
  EXPECT_EQ(*forecast::expected_time(program, studied.study).most_trials_s, 7200.0);
}

}  // namespace krigtune::plan_study_test
