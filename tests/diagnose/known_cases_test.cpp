// Twelve clusters, each with one deliberate bottleneck. The truth is the simulator. Its machine differs from the
// session's by hidden factors for every class of operations, by ripples over the space and by noise, and in three cases
// by a fault (a slow network, throttled products, a slow rank). The diagnosis sees only the session and the simulator's
// trials.
#include <gtest/gtest.h>

#include <cmath>

#include "core/json.h"
#include "diagnose/diagnose.h"
#include "diagnose/observations.h"
#include "runner/simulate.h"

namespace krigtune::known_cases_test {

struct KnownCase {
  const char* name;
  const char* workload;
  const char* cluster;
  const char* space;  ///< single values belong to the diagnosed configuration
  const char* diagnosed;
  diagnose::Limit limit;
  diagnose::Reason reason = diagnose::Reason::kNone;
  const char* true_cluster = nullptr;  ///< the real cluster, if it is not as stated
  double straggler_slowdown = 1.0;
};

constexpr const char* kEightGpus = R"({"gpus_per_node": 8, "gpu": "a100-80gb"})";
constexpr const char* kTwoNodes = R"({"nodes": 2, "gpus_per_node": 8, "gpu": "a100-80gb", "network": "ib-hdr-200"})";
constexpr const char* kLarge = R"({"model": {"preset": "gpt2-1.5b"}, "precision": "bf16", "train_batch_size": 128})";

const KnownCase kCases[] = {
    {.name = "small buckets",
     .workload = R"({"model": {"preset": "gpt2-1.5b"}, "precision": "bf16", "train_batch_size": 64})",
     .cluster = R"({"nodes": 2, "gpus_per_node": 8, "gpu": "a100-80gb", "network": "far",
                    "hardware": {"links": {"far": {"kind": "network", "latency_us": 300, "bytes_per_s": 25e9,
                                                   "reached": 0.9}}}})",
     .space = R"({"zero_stage": [1, 2], "micro_batch": [1, 2, 4], "overlap_comm": [true],
                  "reduce_bucket_size": [1e5, 1e6, 1e7, 1e8]})",
     .diagnosed = R"({"zero_stage": 1, "micro_batch": 4, "overlap_comm": true, "reduce_bucket_size": 100000})",
     .limit = diagnose::Limit::kDataCommunication,
     .reason = diagnose::Reason::kSmallBuckets},
    {.name = "a slow network",
     .workload = kLarge,
     .cluster = kTwoNodes,
     .space = R"({"zero_stage": [1, 2], "micro_batch": [2, 4, 8], "overlap_comm": [true, false]})",
     .diagnosed = R"({"zero_stage": 2, "micro_batch": 4, "overlap_comm": true})",
     .limit = diagnose::Limit::kDataCommunication,
     .reason = diagnose::Reason::kSlowNetwork,
     .true_cluster = R"({"nodes": 2, "gpus_per_node": 8, "gpu": "a100-80gb", "network": "slow",
                         "hardware": {"links": {"slow": {"kind": "network", "latency_us": 5, "bytes_per_s": 25e9,
                                                         "reached": 0.1}}}})"},
    {.name = "tensor parallelism across nodes",
     .workload = R"({"model": {"preset": "llama-7b"}, "precision": "bf16", "train_batch_size": 64})",
     .cluster = kTwoNodes,
     .space = R"({"zero_stage": [1], "tensor_parallel": [1, 2, 4, 8, 16], "micro_batch": [1, 2, 4],
                  "overlap_comm": [true]})",
     .diagnosed = R"({"zero_stage": 1, "tensor_parallel": 16, "micro_batch": 4, "overlap_comm": true})",
     .limit = diagnose::Limit::kTensorCommunication,
     .reason = diagnose::Reason::kAcrossNodes},
    {.name = "a tiny micro-batch",
     .workload = R"({"model": {"preset": "gpt2-1.5b"}, "precision": "bf16", "train_batch_size": 256,
                     "framework": "krigtune"})",
     .cluster = R"({"gpus_per_node": 8, "gpu": "b200-180gb"})",
     .space = R"({"zero_stage": [1], "micro_batch": [1, 2, 4, 8, 16, 32], "overlap_comm": [true]})",
     .diagnosed = R"({"zero_stage": 1, "micro_batch": 1, "overlap_comm": true})",
     .limit = diagnose::Limit::kSmallKernels},
    {.name = "unnecessary recomputation",
     .workload = kLarge,
     .cluster = kEightGpus,
     .space = R"({"zero_stage": [2], "micro_batch": [2, 4, 8], "activation_checkpointing": ["none", "full"],
                  "overlap_comm": [true]})",
     .diagnosed = R"({"zero_stage": 2, "micro_batch": 4, "activation_checkpointing": "full", "overlap_comm": true})",
     .limit = diagnose::Limit::kRecomputation},
    {.name = "unnecessary offload",
     .workload = kLarge,
     .cluster = kEightGpus,
     .space = R"({"zero_stage": [2], "micro_batch": [2, 4, 8], "offload_optimizer": ["none", "cpu"],
                  "overlap_comm": [true]})",
     .diagnosed = R"({"zero_stage": 2, "micro_batch": 4, "offload_optimizer": "cpu", "overlap_comm": true})",
     .limit = diagnose::Limit::kOffload},
    {.name = "a slow rank",
     .workload = kLarge,
     .cluster = kEightGpus,
     .space = R"({"zero_stage": [1, 2, 3], "micro_batch": [2, 4, 8], "overlap_comm": [true, false]})",
     .diagnosed = R"({"zero_stage": 2, "micro_batch": 8, "overlap_comm": true})",
     .limit = diagnose::Limit::kStraggler,
     .straggler_slowdown = 1.5},
    {.name = "a host that issues kernels slowly",
     .workload = R"({"model": {"preset": "gpt2-124m", "seq_len": 256}, "precision": "bf16", "train_batch_size": 256,
                     "framework": "deepspeed"})",
     .cluster = kEightGpus,
     .space = R"({"zero_stage": [1, 2], "micro_batch": [1, 2, 4, 8, 16], "overlap_comm": [true]})",
     .diagnosed = R"({"zero_stage": 1, "micro_batch": 4, "overlap_comm": true})",
     .limit = diagnose::Limit::kHost},
    {.name = "a pipeline bubble",
     .workload = R"({"model": {"preset": "llama-7b"}, "precision": "bf16", "train_batch_size": 64,
                     "framework": "megatron"})",
     .cluster = kTwoNodes,
     .space = R"({"pipeline_parallel": [1, 2, 4, 8], "tensor_parallel": [1, 2], "micro_batch": [1, 2, 4, 8]})",
     .diagnosed = R"({"pipeline_parallel": 8, "tensor_parallel": 2, "micro_batch": 8})",
     .limit = diagnose::Limit::kPipelineBubble},
    {.name = "a sequence on two nodes",
     .workload = R"({"model": {"preset": "llama-7b", "seq_len": 32768}, "precision": "bf16", "train_batch_size": 4,
                     "framework": "megatron"})",
     .cluster = R"({"nodes": 2, "gpus_per_node": 8, "gpu": "h100-80gb", "network": "ib-hdr-200"})",
     .space = R"({"context_parallel": [4, 8, 16], "context_parallel_kind": ["alltoall"], "micro_batch": [1],
                  "activation_checkpointing": ["none", "full"]})",
     .diagnosed = R"({"context_parallel": 16, "context_parallel_kind": "alltoall", "micro_batch": 1,
                      "activation_checkpointing": "full"})",
     .limit = diagnose::Limit::kContextCommunication,
     .reason = diagnose::Reason::kAcrossNodes},
    {.name = "experts on two nodes",
     .workload = R"({"model": {"preset": "qwen3-30b-a3b", "seq_len": 4096}, "precision": "bf16",
                     "train_batch_size": 64, "framework": "megatron"})",
     .cluster = R"({"nodes": 2, "gpus_per_node": 8, "gpu": "h200-141gb", "network": "ib-hdr-200"})",
     .space = R"({"expert_parallel": [4, 8, 16], "zero_stage": [1], "micro_batch": [1, 2]})",
     .diagnosed = R"({"expert_parallel": 16, "zero_stage": 1, "micro_batch": 2})",
     .limit = diagnose::Limit::kExpertCommunication,
     .reason = diagnose::Reason::kAcrossNodes},
    {.name = "throttled products",
     .workload = kLarge,
     .cluster = kEightGpus,
     .space = R"({"zero_stage": [1, 2, 3], "micro_batch": [2, 4, 8], "activation_checkpointing": ["none", "full"],
                  "overlap_comm": [true]})",
     .diagnosed = R"({"zero_stage": 2, "micro_batch": 8, "activation_checkpointing": "none", "overlap_comm": true})",
     .limit = diagnose::Limit::kSlowDevice,
     .true_cluster = R"({"gpus_per_node": 8, "gpu": "hot",
                         "hardware": {"gpus": {"hot": {"like": "a100-80gb", "gemm_fraction": 0.38,
                                                       "attention_fraction": 0.29}}}})"},
};

session::Session session_of(const KnownCase& known) {
  const std::string text = std::string(R"({"workload": )") + known.workload + R"(, "cluster": )" + known.cluster +
                           R"(, "space": )" + known.space + R"(, "baseline": )" + known.diagnosed +
                           R"(, "runner": {"kind": "simulate"}})";
  return session::read_session(parse_json(text, known.name), known.name, ".");
}

/// The real machine.
class Truth {
 public:
  Truth(const session::Session& session, const KnownCase& known, std::int64_t seed, bool fixed) : session_(session) {
    runner::SimulateSpec spec;
    spec.systematic_error = 0.08;
    spec.noise = 0.01;
    spec.seed = seed;
    spec.unforeseen_fraction = spec.crash_probability = spec.straggler_probability = 0.0;
    if (known.straggler_slowdown > 1.0 && !fixed) {
      spec.straggler_probability = 0.9;
      spec.straggler_slowdown = known.straggler_slowdown;
    }
    workload::ClusterSpec cluster = session.cluster;
    if (known.true_cluster != nullptr && !fixed) {
      cluster = workload::read_cluster(parse_json(known.true_cluster, known.name), known.name, "/cluster");
    }
    runner_ = runner::make_simulate_runner({*session.workload, cluster, session.memory, session.space, spec});
  }

  std::optional<diagnose::Observation> run(const space::Configuration& configuration) {
    const trial::Outcome outcome = runner_->run(configuration, "");
    const auto* measured = std::get_if<trial::Measured>(&outcome);
    return measured == nullptr ? std::nullopt : diagnose::observation_of(session_, configuration, *measured);
  }

 private:
  const session::Session& session_;
  std::unique_ptr<trial::Runner> runner_;
};

constexpr int kSeeds = 10;
constexpr int kOtherTrials = 6;

struct Answer {
  diagnose::Diagnosis diagnosis;
  double simulated_speedup = 0.0;  ///< for the first advice
};

Answer answer_of(const KnownCase& known, std::int64_t seed) {
  const session::Session session = session_of(known);
  const session::MemoryFilter filter(session);
  Truth truth(session, known, seed, false);
  diagnose::Seen seen;
  diagnose::Observation own = truth.run(*session.baseline).value();
  // Nine of ten trials have a slow rank.
  while (known.straggler_slowdown > 1.0 && own.straggling_s() == 0.0) own = truth.run(*session.baseline).value();
  seen.observations.push_back(own);
  Rng rng(static_cast<std::uint64_t>(seed), 0);
  for (int i = 0; i < kOtherTrials; ++i) {
    if (const auto other = truth.run(session.space.sample(rng))) seen.observations.push_back(*other);
  }
  diagnose::JobModel model(session, filter);
  Answer answer{diagnose::diagnose(model, *session.baseline, seen)};
  if (answer.diagnosis.verdicts.empty() || answer.diagnosis.verdicts.front().advice.empty()) return answer;
  const diagnose::Advice& advice = answer.diagnosis.verdicts.front().advice.front();
  Truth then(session, known, seed, advice.changes.empty());
  const std::optional<diagnose::Observation> after = then.run(advice.configuration);
  if (!after) return answer;
  answer.simulated_speedup = seen.observations.front().step_time_s / answer.diagnosis.learned.sequences /
                             (after->step_time_s / advice.predicted.sequences);
  return answer;
}

class KnownCases : public testing::TestWithParam<KnownCase> {};

TEST_P(KnownCases, HaveTheirLimitNamedFirstAndTheEffectOfItsAdviceForetold) {
  for (std::int64_t seed = 1; seed <= kSeeds; ++seed) {
    const Answer answer = answer_of(GetParam(), seed);
    std::string all;
    for (const diagnose::Verdict& verdict : answer.diagnosis.verdicts) {
      all += std::string(diagnose::to_string(verdict.limit)) + " " + std::to_string(verdict.share) + ": " +
             verdict.sentence + "\n";
    }
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + all);
    ASSERT_FALSE(answer.diagnosis.verdicts.empty());
    const diagnose::Verdict& first = answer.diagnosis.verdicts.front();
    EXPECT_EQ(first.limit, GetParam().limit);
    EXPECT_STREQ(diagnose::to_string(first.reason), diagnose::to_string(GetParam().reason));
    ASSERT_FALSE(first.advice.empty());
    const double foretold = first.advice.front().speedup;
    EXPECT_GT(answer.simulated_speedup, 1.05);
    EXPECT_LE(std::abs(foretold / answer.simulated_speedup - 1.0), 0.2)
        << first.advice.front().configuration.text() << ": " << foretold << " foretold, " << answer.simulated_speedup
        << " simulated";
  }
}

INSTANTIATE_TEST_SUITE_P(Simulated, KnownCases, testing::ValuesIn(kCases), [](const auto& of) {
  std::string name = of.param.name;
  for (char& c : name) {
    if (c == ' ' || c == '-') c = '_';
  }
  return name;
});

}  // namespace krigtune::known_cases_test
