#include "cost/memory/memory_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "cost/cost_fixtures.h"
#include "krigtune/rng.h"
#include "plan/random_plans.h"
#include "schedule/knobs.h"

namespace krigtune::memory_model_test {

constexpr Bytes kEnough{std::numeric_limits<std::int64_t>::max()};

double ratio(std::int64_t bytes, std::int64_t of) { return static_cast<double>(bytes) / static_cast<double>(of); }

workload::ModelSpec gpt_7b() {
  workload::ModelSpec model;
  model.layers = 32;
  model.hidden = 4096;
  model.heads = model.kv_heads = 32;
  model.ffn_hidden = 4 * model.hidden;
  model.vocab = 51200;
  model.seq_len = 2048;
  return model;
}

workload::Workload training(workload::Framework framework, workload::Precision precision = workload::Precision::kFp16) {
  workload::Workload workload;
  workload.model = gpt_7b();
  workload.precision = precision;
  workload.framework = framework;
  return workload;
}

cost::MemoryEstimate estimate_of(workload::Framework framework, const space::Configuration& configuration,
                                 std::int64_t nodes = 1) {
  return cost::MemoryModel(training(framework), gpus(nodes), {}).estimate(configuration);
}

std::int64_t allocated(const cost::MemoryEstimate& estimate) {
  std::int64_t bytes = 0;
  for (const std::int64_t term : estimate.term_bytes) bytes += term;
  return bytes;
}

// The estimate of a configuration beside its plan.
struct Compared {
  explicit Compared(const PlanCase& drawn)
      : planned(plan::explain(drawn.plan())),
        estimate(cost::MemoryModel(drawn.workload, drawn.cluster, {}).estimate(drawn.configuration)),
        error(std::abs(ratio(estimate.expected.count, planned.lower_bound_bytes) - 1.0)),
        from_host(schedule::read_knobs(drawn.workload, drawn.cluster, drawn.configuration).offload_parameters) {}

  plan::MemoryReport planned;
  cost::MemoryEstimate estimate;
  double error;
  bool from_host;  ///< its parameters live on the host
};

// Measured over 6000 plans: 99 % are exact to the byte, and all are within 3.5 %. If parameters live on the host: 93 %
// to the byte, 99 % within 3.7 %, all within 23 %. With other norms than a Llama's, of 1000 plans all are within 4.1 %.
// Other parameters need a workspace that the model does not know, of their own size.
TEST(MemoryModel, FollowsThePlanOfRandomConfigurations) {
  RandomPlans plans(7);
  std::vector<double> errors;
  for (int i = 0; i < sweep(1000); ++i) {
    const PlanCase drawn = plans.next();
    const Compared both(drawn);
    EXPECT_TRUE(both.error <= (both.from_host ? 0.25 : 0.045)) << both.error << " " << drawn.text();
    EXPECT_EQ(allocated(both.estimate), both.estimate.expected.count);
    if (both.error == 0.0) {
      EXPECT_EQ(both.estimate.term_bytes[static_cast<std::size_t>(schedule::Term::kParameters)],
                both.planned.term_bytes[static_cast<std::size_t>(schedule::Term::kParameters)])
          << drawn.text();
    }
    if (drawn.workload.model.others == workload::OtherParameters{}) errors.push_back(both.error);
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_EQ(errors[errors.size() * 95 / 100], 0.0);
  EXPECT_TRUE(errors[errors.size() * 99 / 100] <= 0.01) << errors[errors.size() * 99 / 100];
}

workload::TrainingSpec adapters(Rng& rng) {
  workload::TrainingSpec training;
  training.lora.rank = static_cast<std::int64_t>(1 + rng.below(8));
  for (bool& target : training.lora.targets) target = rng.below(2) == 1;
  training.lora.targets.front() = true;
  training.lora.dropout = rng.below(2) == 1 ? 0.1 : 0.0;
  training.base = rng.below(2) == 1 ? workload::BaseFormat::kNf4 : workload::BaseFormat::kAsModel;
  return training;
}

// Of the plans of drawn cases 90 % agree to the byte, 98 % within 6 % and all within 15 % (25 % with parameters on the
// host). Farthest off are models of which no layer has experts that others could have, and modules that are computed
// again in models of two layers.
template <class Draw>
void expect_as_planned(const Draw& draw) {
  std::vector<double> errors;
  for (int i = 0; i < sweep(400); ++i) {
    const PlanCase drawn = draw();
    const Compared both(drawn);
    EXPECT_TRUE(both.error <= (both.from_host ? 0.25 : 0.15)) << both.error << " " << drawn.text();
    if (!both.from_host) errors.push_back(both.error);
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_EQ(errors[errors.size() * 9 / 10], 0.0);
  EXPECT_LE(errors[errors.size() * 98 / 100], 0.06);
}

TEST(MemoryModel, FollowsThePlanOfAdapters) {
  RandomPlans plans(13);
  Rng rng(13, 0);
  expect_as_planned([&] {
    PlanCase drawn = plans.next();
    drawn.workload.training = adapters(rng);
    if (drawn.workload.model.has_latents()) {  // whose queries have no adapters
      drawn.workload.training.lora.targets[static_cast<std::size_t>(workload::AdaptedLayer::kOutput)] = true;
    }
    return drawn;
  });
}

TEST(MemoryModel, FollowsThePlanOfOtherOptimizersKernelsAndLosses) {
  RandomPlans plans(14);
  expect_as_planned([&] { return plans.next_predicted(); });
}

// Plans with more micro-steps than the distinct ones need the same arena, except for the losses.
TEST(MemoryModel, DecidesForKrigtuneBenchAsThePlanDoes) {
  RandomPlans plans(11);
  Rng rng(11, 0);
  int near = 0;
  for (int i = 0; i < sweep(400); ++i) {
    PlanCase drawn = plans.next();
    if (i % 3 == 0 && !drawn.workload.train_batch_size) {
      drawn.configuration.set("gradient_accumulation_steps", static_cast<std::int64_t>(4 + rng.below(4)));
    }
    const std::int64_t arena = drawn.plan().arena_bytes;
    const cost::MemoryModel model(drawn.workload, drawn.cluster, {});
    for (const double factor : {0.5, 0.97, 1.0, 1.03, 1.5}) {
      const Bytes usable{static_cast<std::int64_t>(factor * static_cast<double>(arena)) - (factor == 1.0 ? 1 : 0)};
      const plan::MemoryVerdict verdict = model.verdict(drawn.configuration, usable, kEnough);
      EXPECT_EQ(verdict.verdict, plan::exact_verdict({arena}, usable).verdict) << factor << " " << drawn.text();
      near += verdict.predicted.count == arena ? 1 : 0;
    }
    EXPECT_EQ(model.verdict(drawn.configuration, {arena}, kEnough).verdict, plan::Verdict::kFits) << drawn.text();
  }
  EXPECT_GT(near, 0);
}

TEST(MemoryModel, EstimatesLargeModelsAsTheirPlanIs) {
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    for (const workload::Dialect dialect : {workload::Dialect::kCanonical, workload::Dialect::kDeepSpeed}) {
      workload::Workload workload = training(workload::Framework::kKrigtune, workload::Precision::kBf16);
      workload.dialect = dialect;
      const space::Configuration configuration{{"zero_stage", stage},
                                               {"micro_batch", std::int64_t{2}},
                                               {"overlap_comm", true},
                                               {"gradient_accumulation_steps", std::int64_t{2}}};
      const plan::MemoryReport report = plan::explain(plan::build_plan(workload, gpus(1), configuration));
      const cost::MemoryEstimate estimate = cost::MemoryModel(workload, gpus(1), {}).estimate(configuration);
      EXPECT_TRUE(std::abs(ratio(estimate.expected.count, report.lower_bound_bytes) - 1.0) <= 1e-3)
          << stage << " " << estimate.expected.count << " of " << report.lower_bound_bytes;
      EXPECT_EQ(estimate.peak_at.substr(0, 8), report.peak_at.substr(0, 8));
    }
  }
}

// Rajbhandari et al. 2020, and Megatron-LM's docs/user-guide/features/dist_optimizer.md.
TEST(MemoryModel, KnowsTheStatesOfFrameworks) {
  const auto p = static_cast<double>(workload::parameter_count(gpt_7b()));
  const auto states = [&](workload::Framework framework, std::int64_t stage,
                          workload::Precision precision = workload::Precision::kFp16) {
    const cost::MemoryEstimate estimate =
        cost::MemoryModel(training(framework, precision), gpus(1), {}).estimate({{"zero_stage", stage}});
    double bytes = 0.0;
    for (const schedule::Term term :
         {schedule::Term::kParameters, schedule::Term::kGradients, schedule::Term::kOptimizerState}) {
      bytes += static_cast<double>(estimate.term_bytes[static_cast<std::size_t>(term)]);
    }
    return bytes / p;
  };
  EXPECT_NEAR(states(workload::Framework::kMegatron, 0, workload::Precision::kBf16), 18.0, 0.01);
  EXPECT_NEAR(states(workload::Framework::kMegatron, 1, workload::Precision::kBf16), 6.0 + 12.0 / 8.0, 0.01);
  EXPECT_NEAR(states(workload::Framework::kMegatron, 0), 20.0, 0.01) << "in the step: gradients are cast to fp32";
  EXPECT_NEAR(states(workload::Framework::kMegatron, 1), 4.0 + 12.0 / 8.0, 0.01)
      << "in the backward pass: a shard's gradients take less in fp32 than the activations";
  EXPECT_NEAR(states(workload::Framework::kNanotron, 1), 6.0 + 12.0 / 8.0, 0.01);
  EXPECT_NEAR(states(workload::Framework::kFsdp, 3), 16.0 / 8.0, 0.01);
  EXPECT_NEAR(states(workload::Framework::kFsdp, 2), 4.0 + 2.0 + 12.0 / 8.0, 0.01);
  EXPECT_NEAR(states(workload::Framework::kDeepSpeed, 0), 14.0 + 6.0, 0.01)
      << "in the step: gradients, and cast to fp32";
  EXPECT_NEAR(states(workload::Framework::kDeepSpeed, 1), 4.0 + 12.0 / 8.0, 0.01)
      << "all gradients, at the end of backward";
}

// Of a frozen weight only its 16 bits, which stage 3 shards.
TEST(MemoryModel, KnowsTheStatesOfAdaptersInFrameworks) {
  workload::Workload workload = training(workload::Framework::kFsdp);
  workload.training.lora.rank = 16;
  const auto p = static_cast<double>(workload::parameter_count(workload.model));
  const auto a = static_cast<double>(workload::adapter_parameter_count(workload));
  const auto states = [&](workload::Framework framework, std::int64_t stage) {
    workload.framework = framework;
    const cost::MemoryEstimate estimate = cost::MemoryModel(workload, gpus(1), {}).estimate({{"zero_stage", stage}});
    double bytes = 0.0;
    for (const schedule::Term term :
         {schedule::Term::kParameters, schedule::Term::kGradients, schedule::Term::kOptimizerState}) {
      bytes += static_cast<double>(estimate.term_bytes[static_cast<std::size_t>(term)]);
    }
    return bytes;
  };
  EXPECT_NEAR(states(workload::Framework::kFsdp, 0) / (2.0 * p + 18.0 * a), 1.0, 1e-3);
  EXPECT_NEAR(states(workload::Framework::kFsdp, 3) / ((2.0 * p + 16.0 * a) / 8.0), 1.0, 1e-3);
  EXPECT_NEAR(states(workload::Framework::kMegatron, 1) / (2.0 * p + (4.0 + 12.0 / 8.0) * a), 1.0, 1e-3);
  // Matrices below DeepSpeed's stage3_param_persistence_threshold of 100,000 stay whole: all but those on the side of
  // the MLP's width, which are 8 of a layer's 18 parts of 65,536.
  const double on_a_rank = 10.0 / 18.0 + 8.0 / 18.0 / 8.0;
  EXPECT_NEAR(states(workload::Framework::kDeepSpeed, 3) / (2.0 * p / 8.0 + (2.0 * on_a_rank + 14.0 / 8.0) * a), 1.0,
              0.005);
}

// Issue 1302 of microsoft/DeepSpeed (ds_issue1302_zero2_memory.csv, rows 0, 2, 3 and 4): the differences between
// buckets that nvidia-smi showed with stage 2, for a model whose peak is in backward.
TEST(MemoryModel, CountsDeepSpeedsBucketsTwiceWithOverlap) {
  workload::Workload workload = training(workload::Framework::kDeepSpeed);
  workload.model.vocab = 512;
  const cost::MemoryModel model(workload, gpus(1), {});
  const auto mib = [&](std::int64_t bucket_elems, bool overlap) {
    const cost::MemoryEstimate estimate = model.estimate({{"zero_stage", std::int64_t{2}},
                                                          {"micro_batch", std::int64_t{4}},
                                                          {"reduce_bucket_size", bucket_elems},
                                                          {"overlap_comm", overlap}});
    return static_cast<double>(allocated(estimate)) / 1024.0 / 1024.0;
  };
  EXPECT_NEAR(mib(500'000'000, true) - mib(500'000'000, false), 954.0, 1.0);
  EXPECT_NEAR(mib(500'000'000, true) - mib(100'000'000, true), 1527.0, 2.0);
  EXPECT_NEAR(mib(500'000'000, true) - mib(10'000'000, true), 1527.0 + 341.0, 2.0);
}

TEST(MemoryModel, CountsTheMicroBatchesInFlightOfTheFirstStage) {
  const auto activations = [](std::int64_t stages, std::int64_t micro_steps) {
    const cost::MemoryEstimate estimate =
        estimate_of(workload::Framework::kMegatron,
                    {{"pipeline_parallel", stages}, {"gradient_accumulation_steps", micro_steps}}, 2);
    return static_cast<double>(estimate.term_bytes[static_cast<std::size_t>(schedule::Term::kActivations)]);
  };
  EXPECT_NEAR(activations(4, 8) / activations(4, 1), 4.0, 0.4) << "as many as stages";
  EXPECT_NEAR(activations(4, 2) / activations(4, 1), 2.0, 0.2) << "no more than there are";
  EXPECT_NEAR(activations(4, 8) / activations(1, 8), 1.0, 0.1) << "a stage keeps what a model keeps of one";
}

// krigtune-bench does not execute them, but the memory that they would need is estimated.
TEST(MemoryModel, EstimatesPipelineStagesOfKrigtuneBench) {
  const auto bytes = [](std::int64_t stages) {
    const cost::MemoryEstimate estimate =
        estimate_of(workload::Framework::kKrigtune, {{"pipeline_parallel", stages}}, 2);
    EXPECT_EQ(allocated(estimate), estimate.expected.count) << "no overhead";
    return static_cast<double>(estimate.expected.count);
  };
  EXPECT_NEAR(bytes(4) / bytes(1), 0.25, 0.05);
}

// nanotron counts the head as a number of layers. With a large vocabulary the last stage has no other layer.
TEST(MemoryModel, KnowsAStageOfTheHeadAlone) {
  workload::Workload workload = training(workload::Framework::kNanotron);
  workload.model.vocab = 10'000'000;
  const space::Configuration configuration{{"pipeline_parallel", std::int64_t{8}},
                                           {"activation_checkpointing", "full"}};
  EXPECT_GT(cost::MemoryModel(workload, gpus(1), {}).estimate(configuration).expected.count, 0);
}

TEST(MemoryModel, SaysHowProbablyAConfigurationFits) {
  const cost::MemoryModel model(training(workload::Framework::kFsdp), gpus(1), {});
  const space::Configuration configuration{{"zero_stage", std::int64_t{3}}, {"micro_batch", std::int64_t{4}}};
  const cost::MemoryEstimate estimate = model.estimate(configuration);
  EXPECT_LT(estimate.optimistic, estimate.expected);
  EXPECT_LT(estimate.expected, estimate.conservative);
  // The factors on its parts are also unknown, so the spread is larger than that of one peak.
  const double log_stddev = model.verdict(configuration, estimate.expected, kEnough).spread->log_stddev;
  EXPECT_GT(log_stddev, estimate.log_stddev);
  const auto at = [&](double deviations) {
    const double usable = static_cast<double>(estimate.expected.count) * std::exp(deviations * log_stddev);
    return model.verdict(configuration, {static_cast<std::int64_t>(usable)}, kEnough);
  };
  EXPECT_NEAR(at(0.0).probability_fits, 0.5, 1e-6);
  EXPECT_NEAR(at(0.5).probability_fits, 0.691462461274013, 1e-6) << "Phi(0.5), mpmath";
  EXPECT_EQ(at(0.0).verdict, plan::Verdict::kUncertain);
  EXPECT_EQ(model.verdict(configuration, estimate.conservative, kEnough).verdict, plan::Verdict::kFits);
  EXPECT_EQ(model.verdict(configuration, estimate.optimistic, kEnough).verdict, plan::Verdict::kUncertain);
  EXPECT_EQ(model.verdict(configuration, estimate.optimistic - Bytes{1}, kEnough).verdict, plan::Verdict::kTooLarge);
}

TEST(MemoryModel, SaysTheSameToSeveralThreads) {
  RandomPlans plans(3);
  PlanCase drawn = plans.next();
  drawn.workload.model.layers = 3;
  std::vector<space::Configuration> configurations;
  for (const std::int64_t stage : {0, 1, 2, 3}) {
    for (const std::int64_t micro_batch : {1, 2}) {
      configurations.push_back({{"zero_stage", stage}, {"micro_batch", micro_batch}});
    }
  }
  drawn.workload.train_batch_size.reset();
  const auto answers = [&](const cost::MemoryModel& model) {
    std::vector<std::int64_t> bytes;
    for (const space::Configuration& configuration : configurations) {
      const Bytes expected = model.estimate(configuration).expected;
      bytes.push_back(model.verdict(configuration, expected, kEnough).predicted.count);
    }
    return bytes;
  };
  const std::vector<std::int64_t> alone = answers(cost::MemoryModel(drawn.workload, drawn.cluster, {}));
  const cost::MemoryModel shared(drawn.workload, drawn.cluster, {});
  std::vector<std::vector<std::int64_t>> together(4);
  std::vector<std::thread> threads;
  for (auto& bytes : together) threads.emplace_back([&] { bytes = answers(shared); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& bytes : together) EXPECT_EQ(bytes, alone);
}

// 16 bytes of fp32 states, 2 of a pinned copy, and 2 of gradients that accumulate.
TEST(MemoryModel, CountsHostMemoryAsASecondLimit) {
  const space::Configuration configuration{{"zero_stage", std::int64_t{2}},
                                           {"offload_optimizer", std::string("cpu")},
                                           {"gradient_accumulation_steps", std::int64_t{4}}};
  const cost::MemoryModel model(training(workload::Framework::kDeepSpeed), gpus(1), {});
  const cost::MemoryEstimate estimate = model.estimate(configuration);
  EXPECT_NEAR(static_cast<double>(estimate.host.count) / static_cast<double>(workload::parameter_count(gpt_7b())), 20.0,
              0.01);
  EXPECT_NE(model.verdict(configuration, kEnough, estimate.host).verdict, plan::Verdict::kTooLarge);
  EXPECT_EQ(model.verdict(configuration, kEnough, estimate.host - Bytes{1}).verdict, plan::Verdict::kTooLarge);
}

TEST(MemoryModel, TakesTheHostsShareOfThePlanForKrigtuneBench) {
  RandomPlans plans(5);
  int offloaded = 0;
  for (int i = 0; i < sweep(300); ++i) {
    const PlanCase drawn = plans.next();
    const plan::MemoryReport report = plan::explain(drawn.plan());
    const cost::MemoryEstimate estimate =
        cost::MemoryModel(drawn.workload, drawn.cluster, {}).estimate(drawn.configuration);
    const std::int64_t planned = report.host.peak_bytes * drawn.cluster.gpus_per_node;
    if (planned == 0) {
      EXPECT_EQ(estimate.host.count, 0) << drawn.text();
      continue;
    }
    ++offloaded;
    EXPECT_TRUE(std::abs(ratio(estimate.host.count, planned) - 1.0) <= 0.25)
        << estimate.host.count << " of " << planned << " " << drawn.text();
  }
  EXPECT_GT(offloaded, sweep(300) / 10);
}

// autotuner.py: 2 + 2 + 16 in fp16, 4 + 4 + 8 otherwise; parts are divided by all ranks, and once more by the tensor
// ranks.
TEST(MemoryModel, RepeatsTheFormulaOfDeepSpeedsAutotuner) {
  const auto p = static_cast<double>(workload::parameter_count(gpt_7b()));
  workload::MemorySpec memory;
  memory.model = workload::MemoryModelKind::kDeepSpeedAutotuner;
  const auto states = [&](workload::Precision precision, std::int64_t stage, std::int64_t tensor) {
    const cost::MemoryModel model(training(workload::Framework::kDeepSpeed, precision), gpus(1), memory);
    const cost::MemoryEstimate estimate = model.estimate({{"zero_stage", stage}, {"tensor_parallel", tensor}});
    double bytes = 0.0;
    for (const schedule::Term term :
         {schedule::Term::kParameters, schedule::Term::kGradients, schedule::Term::kOptimizerState}) {
      bytes += static_cast<double>(estimate.term_bytes[static_cast<std::size_t>(term)]);
    }
    return bytes / p;
  };
  EXPECT_NEAR(states(workload::Precision::kFp16, 0, 1), 20.0, 1e-6);
  EXPECT_NEAR(states(workload::Precision::kFp16, 1, 1), 4.0 + 16.0 / 8.0, 1e-6);
  EXPECT_NEAR(states(workload::Precision::kFp16, 2, 1), 2.0 + 18.0 / 8.0, 1e-6);
  EXPECT_NEAR(states(workload::Precision::kFp16, 3, 1), 20.0 / 8.0, 1e-6);
  EXPECT_NEAR(states(workload::Precision::kBf16, 2, 1), 4.0 + 12.0 / 8.0, 1e-6);
  EXPECT_NEAR(states(workload::Precision::kFp16, 3, 2), 20.0 / 8.0 / 2.0, 1e-6);
  const cost::MemoryModel model(training(workload::Framework::kDeepSpeed), gpus(1), memory);
  const Bytes needed = model.estimate({}).expected;
  EXPECT_EQ(model.verdict({}, needed, kEnough).verdict, plan::Verdict::kFits);
  EXPECT_EQ(model.verdict({}, needed - Bytes{1}, kEnough).verdict, plan::Verdict::kTooLarge);
}

}  // namespace krigtune::memory_model_test
