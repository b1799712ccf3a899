// Limits of ranks that work together, in plans that one of them dominates, compared with what their exchanges take by
// hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/json.h"
#include "cost/time/expert_overlap.h"
#include "cost/time/step_cost.h"
#include "diagnose/diagnose.h"
#include "diagnose/moves.h"

namespace krigtune::rank_limits_test {
namespace {

using diagnose::Limit;
using diagnose::Reason;

/// Sixteen H200s, eight or one of them in each node, with a network that sends so many bytes in a second, from each
/// GPU, without latency.
std::string cluster_with(double bytes_per_s, int per_node = 8) {
  return R"({"nodes": )" + std::to_string(16 / per_node) + R"(, "gpus_per_node": )" + std::to_string(per_node) +
         R"(, "gpu": "h200-141gb", "network": "test", "hardware": {"links":
             {"test": {"kind": "network", "latency_us": 0.001, "bytes_per_s": )" +
         std::to_string(bytes_per_s) + R"(, "reached": 1.0}}}})";
}

struct Job {
  Job(const std::string& workload, const std::string& cluster, const std::string& space, const std::string& baseline)
      : session(session::read_session(
            parse_json(R"({"workload": )" + workload + R"(, "cluster": )" + cluster + R"(, "space": )" + space +
                           R"(, "baseline": )" + baseline + R"(, "runner": {"kind": "none"}})",
                       "test"),
            "test", ".")),
        filter(session),
        model(session, filter),
        diagnosis(diagnose::diagnose(model, *session.baseline)) {}

  const diagnose::Verdict* find(Limit limit) const {
    const auto at = std::ranges::find(diagnosis.verdicts, limit, &diagnose::Verdict::limit);
    return at == diagnosis.verdicts.end() ? nullptr : &*at;
  }
  double seconds(const diagnose::Verdict& verdict) const { return verdict.share * diagnosis.learned.cost.step_time_s; }

  session::Session session;
  session::MemoryFilter filter;
  diagnose::JobModel model;
  diagnose::Diagnosis diagnosis;
};

/// Returns the advice whose only changes but the accumulation are these: "parameter=value ...".
const diagnose::Advice* advice_to(const diagnose::Verdict& verdict, const std::string& changes) {
  const auto text_of = [](const diagnose::Advice& advice) {
    std::string text;
    for (const diagnose::Change& change : advice.changes) {
      if (change.parameter == "gradient_accumulation_steps") continue;
      text += (text.empty() ? "" : " ") + change.parameter + "=" + space::to_string(change.after);
    }
    return text;
  };
  const auto at = std::ranges::find_if(verdict.advice, [&](const auto& advice) { return text_of(advice) == changes; });
  return at == verdict.advice.end() ? nullptr : &*at;
}

void expect_models_gain(const Job& job, const diagnose::Advice& advice) {
  const cost::StepCostModel model(*job.session.workload, job.session.cluster);
  const double now_s = model(*job.session.baseline).step_time_s;
  EXPECT_NEAR(advice.speedup, now_s / model(advice.configuration).step_time_s, 1e-9) << advice.configuration.text();
}

constexpr const char* kLong = R"({"model": {"preset": "llama-7b", "seq_len": 32768}, "precision": "bf16",
                                  "train_batch_size": 2, "framework": "megatron"})";

// 16 ranks exchange queries, keys, values and output of 2048 tokens each, 4 times 4096 numbers of 2 bytes, half of them
// with the other node: 32 layers, 2 sequences, forward and backward.
TEST(RankLimits, NamesTheExchangeOfASequenceAndWhatShortensIt) {
  constexpr double kBytesPerS = 1e9;
  const Job job(kLong, cluster_with(kBytesPerS),
                R"({"context_parallel": [8, 16], "context_parallel_kind": ["alltoall", "ring"], "micro_batch": [1]})",
                R"({"context_parallel": 16, "context_parallel_kind": "alltoall", "micro_batch": 1})");
  ASSERT_FALSE(job.diagnosis.verdicts.empty());
  const diagnose::Verdict& first = job.diagnosis.verdicts.front();
  ASSERT_EQ(first.limit, Limit::kContextCommunication) << first.sentence;
  EXPECT_EQ(first.reason, Reason::kAcrossNodes);
  const double expected_s = 32.0 * 2.0 * 2.0 * (2048.0 * 4.0 * 4096.0 * 2.0) * (8.0 / 16.0) / kBytesPerS;
  EXPECT_NEAR(job.seconds(first) / expected_s, 1.0, 0.02);
  EXPECT_GE(first.share, 0.5);
  EXPECT_NE(first.sentence.find("16 ranks exchange tokens for heads"), std::string::npos) << first.sentence;
  EXPECT_NE(first.sentence.find("they cross nodes, which have 8 ranks each"), std::string::npos) << first.sentence;

  const diagnose::Advice* within = advice_to(first, "context_parallel=8");
  ASSERT_NE(within, nullptr);
  expect_models_gain(job, *within);
  EXPECT_TRUE(within->in_space);
  EXPECT_GT(within->speedup, 1.5);
  EXPECT_EQ(within->predicted.sequences, 2.0);
}

// Keys and values of 2048 tokens go 15 times round, forward, and with their gradients backward; attention hides some.
TEST(RankLimits, OfARingCountsWhatAttentionDoesNotHide) {
  constexpr double kBytesPerS = 1e9;
  const Job job(kLong, cluster_with(kBytesPerS, 1), R"({"context_parallel": [16], "micro_batch": [1]})",
                R"({"context_parallel": 16, "micro_batch": 1})");
  const diagnose::Verdict* found = job.find(Limit::kContextCommunication);
  ASSERT_NE(found, nullptr);
  const double all_s = 32.0 * 2.0 * 3.0 * 15.0 * (2048.0 * 2.0 * 4096.0 * 2.0) / kBytesPerS;
  EXPECT_LT(job.seconds(*found), all_s);
  EXPECT_GT(job.seconds(*found), all_s - job.diagnosis.learned.cost.products_s);
  EXPECT_NE(found->sentence.find("keys and values go round 16 ranks"), std::string::npos) << found->sentence;
  // A fast network leaves nothing of it.
  const Job fast(kLong, cluster_with(1e12, 1), R"({"context_parallel": [16], "micro_batch": [1]})",
                 R"({"context_parallel": 16, "micro_batch": 1})");
  EXPECT_EQ(fast.find(Limit::kContextCommunication), nullptr);
}

constexpr const char* kExperts = R"({"model": {"preset": "qwen3-30b-a3b", "seq_len": 4096}, "precision": "bf16",
                                     "train_batch_size": 64, "framework": "megatron"})";

// 4096 tokens go to 8 experts each and back, forward and backward, 2048 numbers of 2 bytes: in 48 layers and 4
// micro-steps, half of them to the other node.
TEST(RankLimits, NamesTheJourneyToTheExperts) {
  constexpr double kBytesPerS = 5e9;
  const Job job(kExperts, cluster_with(kBytesPerS),
                R"({"expert_parallel": [8, 16], "zero_stage": [1], "micro_batch": [1]})",
                R"({"expert_parallel": 16, "zero_stage": 1, "micro_batch": 1})");
  ASSERT_FALSE(job.diagnosis.verdicts.empty());
  const diagnose::Verdict& first = job.diagnosis.verdicts.front();
  ASSERT_EQ(first.limit, Limit::kExpertCommunication) << first.sentence;
  EXPECT_EQ(first.reason, Reason::kAcrossNodes);
  const double expected_s = 48.0 * 4.0 * 4.0 * (4096.0 * 8.0 * 2048.0 * 2.0) * (8.0 / 16.0) / kBytesPerS;
  EXPECT_NEAR(job.seconds(first) / expected_s, 1.0, 0.05);
  EXPECT_NE(first.sentence.find("to the experts of 16 ranks and back"), std::string::npos) << first.sentence;
  for (const char* changes : {"expert_parallel=8", "moe_dispatch=flex"}) {
    const diagnose::Advice* advice = advice_to(first, changes);
    ASSERT_NE(advice, nullptr) << changes;
    expect_models_gain(job, *advice);
    EXPECT_GT(advice->speedup, 1.5) << changes;
  }
  EXPECT_TRUE(advice_to(first, "expert_parallel=8")->in_space);
  EXPECT_FALSE(advice_to(first, "moe_dispatch=flex")->in_space);
}

// Beside another micro-batch, which takes longer than the exchanges, jobs hide a known share of them.
TEST(RankLimits, CountsOfExpertsWhatIsNotHidden) {
  diagnose::Thresholds all;
  all.share = 0.001;
  const auto seconds = [&](const char* overlap) {
    Job job(
        kExperts, cluster_with(400e9),
        R"({"expert_parallel": [8], "zero_stage": [1], "micro_batch": [2], "moe_overlap": [false, true]})",
        std::string(R"({"expert_parallel": 8, "zero_stage": 1, "micro_batch": 2, "moe_overlap": )") + overlap + "}");
    job.diagnosis = diagnose::diagnose(job.model, *job.session.baseline, {}, all);
    const diagnose::Verdict* found = job.find(Limit::kExpertCommunication);
    return found == nullptr ? 0.0 : job.seconds(*found);
  };
  ASSERT_GT(seconds("false"), 0.0);
  EXPECT_NEAR(seconds("true") / seconds("false"), 1.0 - cost::kHiddenShare, 0.05);
}

// A framework's rules hold for advice too: Megatron recomputes no whole layers while tokens travel beside others.
TEST(RankLimits, AdvisesOnlyWhatTheFrameworkTakes) {
  const Job job(kExperts, cluster_with(5e9), R"({"expert_parallel": [8, 16], "zero_stage": [1], "micro_batch": [1]})",
                R"({"expert_parallel": 16, "zero_stage": 1, "micro_batch": 1})");
  const space::Configuration full = {{"expert_parallel", std::int64_t{16}},
                                     {"zero_stage", std::int64_t{1}},
                                     {"micro_batch", std::int64_t{1}},
                                     {"activation_checkpointing", "full"}};
  const diagnose::Prediction present = *job.model.predict(full);
  const diagnose::Moves moves(job.model, full, present);
  EXPECT_TRUE(moves.of({"moe_overlap"}).empty());
  EXPECT_FALSE(moves.of({"moe_dispatch"}).empty());
  for (const diagnose::Move& move : moves.of({"moe_overlap", "activation_checkpointing"}))
    EXPECT_NE(space::to_string(*move.configuration.find("activation_checkpointing")), "full");
  // DeepSpeed has none of Megatron's settings.
  const Job other(
      R"({"model": {"preset": "llama-7b", "seq_len": 32768}, "precision": "bf16", "train_batch_size": 4,
                      "framework": "deepspeed"})",
      cluster_with(1e9), R"({"zero_stage": [3], "micro_batch": [1], "context_parallel": [16],
                                         "context_parallel_kind": ["alltoall"]})",
      R"({"zero_stage": 3, "micro_batch": 1, "context_parallel": 16, "context_parallel_kind": "alltoall"})");
  const diagnose::Verdict* found = other.find(Limit::kContextCommunication);
  ASSERT_NE(found, nullptr);
  for (const diagnose::Advice& advice : found->advice) {
    for (const diagnose::Change& change : advice.changes) EXPECT_NE(change.parameter, "context_parallel_kind");
  }
}

// Stages of equal length: 8 of them around 8 micro-steps are idle for 7 of 15 turns. With v stages a rank filling and
// draining takes a v-th, and if gradients of weights wait (Qi et al. 2024, arXiv:2401.10241) a third at most: their
// backward pass of inputs fills it.
TEST(RankLimits, OfABubbleSaysWhatOtherSchedulesLeave) {
  const std::string workload = R"({"model": {"layers": 32, "hidden": 4096, "heads": 32, "vocab": 1024, "seq_len": 2048},
                                   "precision": "bf16", "train_batch_size": 16, "framework": "megatron"})";
  const Job job(workload, cluster_with(400e9),
                R"({"pipeline_parallel": [8], "micro_batch": [1], "virtual_pipeline": [1, 2, 4]})",
                R"({"pipeline_parallel": 8, "micro_batch": 1, "virtual_pipeline": 1})");
  const diagnose::Verdict* found = job.find(Limit::kPipelineBubble);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(&job.diagnosis.verdicts.front(), found);
  EXPECT_NEAR(found->share, 7.0 / 15.0, 0.03);
  EXPECT_NE(found->sentence.find("8 pipeline stages (1F1B) fill and drain around 8 micro-steps"), std::string::npos)
      << found->sentence;
  const diagnose::Advice* interleaved = advice_to(*found, "virtual_pipeline=4");
  ASSERT_NE(interleaved, nullptr);
  EXPECT_NEAR(interleaved->speedup, 15.0 / (8.0 + 7.0 / 4.0), 0.1);
  expect_models_gain(job, *interleaved);

  const Job late(workload, cluster_with(400e9),
                 R"({"pipeline_parallel": [8], "micro_batch": [1], "pipeline_schedule": ["1f1b", "zb-h1"]})",
                 R"({"pipeline_parallel": 8, "micro_batch": 1, "pipeline_schedule": "1f1b"})");
  const diagnose::Verdict* bubble = late.find(Limit::kPipelineBubble);
  ASSERT_NE(bubble, nullptr);
  const diagnose::Advice* split = advice_to(*bubble, "pipeline_schedule=zb-h1");
  ASSERT_NE(split, nullptr);
  expect_models_gain(late, *split);
  EXPECT_GT(split->speedup, 1.2);
  EXPECT_TRUE(split->in_space);
}

}  // namespace
}  // namespace krigtune::rank_limits_test
