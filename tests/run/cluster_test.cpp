// Thousands of trials on a thousand nodes that fail, with preemption, requeued jobs, late results and a tuner that is
// killed in the middle: nothing is lost or repeated, and little memory is used. The cluster is simulated (virtual
// time); the loop and its journal are real.
#include <gtest/gtest.h>

#include "core/json.h"
#include "run/run_directory.h"
#include "session/session.h"
#include "trial/temporary_directory.h"
#include "virtual_cluster.h"

namespace krigtune::cluster_test {
namespace {

using namespace scale_out;

// 6,318 configurations, all of which fit. Each trial takes four nodes.
constexpr const char* kSession = R"({
  "workload": {"model": {"preset": "llama-2-7b"}, "precision": "bf16", "framework": "deepspeed", "train_batch_size": 256},
  "cluster": {"nodes": 4, "gpus_per_node": 8, "gpu": "a100-80gb", "interconnect": "nvlink3", "network": "ib-hdr-200"},
  "space": {"zero_stage": [1, 2, 3], "tensor_parallel": [1, 2, 4], "micro_batch": [1, 2, 4],
            "reduce_bucket_size": {"min": 1e6, "max": 1e9, "scale": "log", "steps": 13},
            "allgather_bucket_size": {"min": 1e6, "max": 1e9, "scale": "log", "steps": 13},
            "overlap_comm": [false, true], "activation_checkpointing": ["full"]},
  "baseline": null, "objective": {"metric": "tokens_per_second"}, "runner": {"kind": "simulate", "seed": 3},
  "budget": {"trials": 5000, "regret": 0, "least_gain": 0}})";

class Cluster : public testing::Test {
 protected:
  // Uses a file system in memory if possible, because ten thousand fsyncs are not what is tested.
  static std::filesystem::path scratch() {
    const std::filesystem::path in_memory = "/dev/shm";
    std::error_code error;
    return std::filesystem::is_directory(in_memory, error) ? in_memory : std::filesystem::temp_directory_path();
  }

  run::RunResult tune(search::StrategyKind strategy, int trials, int jobs, VirtualCluster& cluster) {
    run::RunOptions options;
    options.loop.strategy = strategy;
    prepared_.session.budget.trials = trials;
    const auto runner = runner::make_runner(prepared_.session.runner, {prepared_.session.workload,
                                                                       prepared_.session.cluster,
                                                                       prepared_.session.memory,
                                                                       prepared_.session.space,
                                                                       nullptr,
                                                                       prepared_.session.objective.field,
                                                                       {},
                                                                       nullptr,
                                                                       clock_});
    Watcher watcher(cluster, trials / 2);
    const run::RunResult result =
        tune_with_a_death(prepared_, *runner, directory_ / "run", options, cluster, clock_, watcher);
    EXPECT_EQ(cluster.counts().most_pending, jobs);
    EXPECT_EQ(what_is_wrong(prepared_.candidates, result.history, cluster), std::vector<std::string>());
    EXPECT_EQ(texts_of(journal::read_journal(run::journal_path(directory_ / "run"))), texts_of(result.history));
    return result;
  }

  static std::vector<std::string> texts_of(const search::History& history) {
    std::vector<std::string> texts;
    for (const journal::Trial& trial : history) texts.push_back(trial.proposal.configuration.text());
    return texts;
  }

  TemporaryDirectory directory_{scratch()};
  run::Prepared prepared_{session::read_session(parse_json(kSession, "session"), "session", directory_ / "")};
  VirtualClock clock_;
};

TEST_F(Cluster, OfAThousandNodesAndAThousandTrialsLosesNothing) {
  constexpr int kTrials = 1000;
  constexpr int kJobs = 300;
  // The trials take what the step model predicts. Ten times as many failures of nodes as in a rough life occur however
  // fast it makes them.
  Faults faults = kRoughLife;
  faults.node_hours /= 10.0;
  VirtualCluster cluster(clock_, {.nodes = 1000, .most_jobs = kJobs, .seed = 5, .faults = faults});
  const run::RunResult result = tune(search::StrategyKind::kRandom, kTrials, kJobs, cluster);
  EXPECT_EQ(result.reason, run::EndReason::kTrials);
  EXPECT_EQ(search::closed_trials(result.history), kTrials);
  // All of these events really occurred.
  const ClusterCounts counts = cluster.counts();
  EXPECT_GT(counts.nodes_failed, 1);
  EXPECT_GT(counts.preempted, 30);
  EXPECT_GT(counts.requeued, 10);
  EXPECT_GT(counts.lost, 5);
  EXPECT_GT(counts.late, 50);
  EXPECT_GT(counts.most_waiting, 0);
  EXPECT_GT(counts.ended_unseen, 3);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // they need several times as much
  EXPECT_LE(peak_memory_mb(), 500.0);
#endif
}

TEST_F(Cluster, IsAskedByTheModelWithManyTrialsPending) {
  constexpr int kTrials = 130;
  constexpr int kJobs = 50;
  VirtualCluster cluster(clock_, {.nodes = 180, .most_jobs = kJobs, .seed = 6, .faults = kRoughLife});
  const run::RunResult result = tune(search::StrategyKind::kBayes, kTrials, kJobs, cluster);
  EXPECT_EQ(search::closed_trials(result.history), kTrials);
  EXPECT_GT(cluster.counts().most_waiting, 0);  // 45 run at a time
}

}  // namespace
}  // namespace krigtune::cluster_test
