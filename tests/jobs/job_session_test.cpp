// The session that is made from a command and from the parameters that may vary in it.
#include "jobs/session/job_session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/text.h"
#include "jobs/session/job_advice.h"
#include "jobs/session/job_paths.h"
#include "trial/temporary_directory.h"
#include "user_error.h"
#include "words.h"

namespace krigtune::job_session_test {

class JobSession : public testing::Test {
 protected:
  JobSession() { request_.directory = "/job"; }

  jobs::WrittenSession made(const std::string& line, const std::vector<std::string>& vary,
                            const std::string& metric = "tok/s ([0-9.]+)") {
    request_.command = words_of(line);
    request_.vary = vary;
    request_.metric = metric.empty() ? std::nullopt : std::optional(metric);
    return jobs::written_session(request_);
  }
  std::string refusal(const std::string& line, const std::vector<std::string>& vary, const std::string& metric = "") {
    return user_error_of([&] { made(line, vary, metric); });
  }

  TemporaryDirectory directory_;
  jobs::JobRequest request_;
};

bool says(const jobs::WrittenSession& made, const std::string& text) {
  return std::any_of(made.remarks.begin(), made.remarks.end(),
                     [&](const std::string& remark) { return remark.find(text) != std::string::npos; });
}

TEST_F(JobSession, TwoOptionsMakeAnyScriptTunable) {
  request_.minimize = true;
  request_.last_line = true;
  const Json json =
      made("python train.py --lr 3e-4 --amp", {"lr=--lr:1e-5..1e-2:log", "amp=--amp:true,false"}, "val_loss ([0-9.]+)")
          .json;
  const Json wanted = parse_json(R"json({
    "space": {"lr": {"type": "real", "min": 1e-05, "max": 0.01, "scale": "log"}, "amp": [true, false]},
    "baseline": {"lr": 0.0003, "amp": true},
    "runner": {"kind": "command", "argv": ["python", "train.py", "--lr", "{lr}", "{flags}"], "cwd": "/job",
               "flags": {"amp": {"true": ["--amp"], "false": []}},
               "measure": {"value": {"regex": "val_loss ([0-9.]+)", "kind": "final"}}},
    "objective": {"metric": "value", "direction": "minimize"},
    "cluster": {"gpus_per_node": 1}})json",
                                 "wanted");
  EXPECT_EQ(json.dump(2), wanted.dump(2));
}

TEST_F(JobSession, WhatTheProgramReportsIsMeasuredWithoutARegularExpression) {
  request_.measure = {"loss=my loss ([0-9.]+)"};
  const Json json = made("python train.py --mbs 4", {"micro_batch=--mbs:1,2,4"}, "throughput").json;
  EXPECT_EQ(json["objective"].dump(), R"({"metric":"throughput"})");
  const Json wanted = parse_json(R"json({
    "iteration": {"key": "iteration", "from": "{dir}/steps.jsonl"},
    "step_time_s": {"key": "step_time_s", "from": "{dir}/steps.jsonl"},
    "samples": {"key": "samples", "from": "{dir}/steps.jsonl"},
    "tokens": {"key": "tokens", "from": "{dir}/steps.jsonl"},
    "peak_memory_bytes": {"key": "peak_memory_bytes", "from": "{dir}/steps.jsonl"},
    "loss": {"regex": "my loss ([0-9.]+)"}})json",
                                 "wanted");
  EXPECT_EQ(json["runner"]["measure"].dump(2), wanted.dump(2));
  EXPECT_EQ(refusal("python t.py", {"x=--x:1,2"}, "throughputs").rfind("--metric 'throughputs': has no group", 0), 0U);
  request_.last_line = true;
  EXPECT_EQ(refusal("python t.py", {"x=--x:1,2"}, "latency"),
            "--final cannot be combined with --metric latency; leave it out, or give a regular expression for the "
            "printed number");
}

TEST_F(JobSession, KeepsTheSequencesOfAStep) {
  const auto kept = made("torchrun --nproc_per_node 2 t.py --mbs 4 --ga 2",
                         {"micro_batch=--mbs:1,2,4,8", "gradient_accumulation_steps=--ga:1,2,4,8"});
  EXPECT_EQ(kept.json["constraints"].dump(), R"(["micro_batch * gradient_accumulation_steps * dp == 16"])");
  EXPECT_EQ(kept.json["cluster"].dump(), R"({"gpus_per_node":2})");
  EXPECT_TRUE(says(kept, "the 16 sequences of a step are kept"));
  const auto impossible =
      made("python t.py --mbs 3 --ga 2", {"micro_batch=--mbs:1,2,4", "gradient_accumulation_steps=--ga:1,2"});
  EXPECT_FALSE(impossible.json.contains("constraints"));
  EXPECT_TRUE(says(impossible, "no two pairs of the same product 6"));
  const auto guessed =
      made("python t.py --mbs 4", {"micro_batch=--mbs:1,2,4", "gradient_accumulation_steps=--ga:1,2,4"});
  EXPECT_FALSE(guessed.json.contains("constraints"));
  EXPECT_TRUE(says(made("python t.py --mbs 4", {"micro_batch=--mbs:1,2,4"}), "the sequences of a step vary"));
}

TEST_F(JobSession, NamesTheGpusOfThisNode) {
  request_.find_gpus = [] { return workload::NodeGpus{4, "NVIDIA H100 80GB HBM3", 85029158912}; };
  EXPECT_EQ(made("torchrun --nproc_per_node gpu t.py", {"x=--x:1,2"}).json["cluster"].dump(),
            R"({"gpus_per_node":4,"gpu":"h100-80gb"})");
  EXPECT_EQ(made("srun -N 2 -n 8 python t.py", {"x=--x:1,2"}).json["cluster"].dump(),
            R"({"nodes":2,"gpus_per_node":4})");
}

// A job whose model nobody knows: what is around it is known all the same.
class UnknownModel : public JobSession {
 protected:
  UnknownModel() {
    request_.directory = directory_.path();
    request_.variable = [this](const std::string& name) {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional(found->second);
    };
  }
  void see(const char* gpu, std::int64_t memory_bytes) {
    request_.find_gpus = [=] { return workload::NodeGpus{8, gpu, memory_bytes}; };
  }
  // Returns the sentence about what was seen; "": there is none.
  std::string sentence(const std::string& line) {
    made(line, {"tp=--tp:1,2,4", "mbs=--mbs:1,2"}, "tokens/s ([0-9.]+)");
    const jobs::JobSession job = jobs::session_of_job(request_);
    return job.remarks.back().find("inferred from the trials") == std::string::npos ? "" : job.remarks.back();
  }
  Json json(const std::string& line) {
    return made(line, {"tp=--tp:1,2,4", "mbs=--mbs:1,2"}, "tokens/s ([0-9.]+)").json;
  }

  static constexpr std::int64_t kH100Bytes = 85029158912;
  std::map<std::string, std::string> variables_;
};

TEST_F(UnknownModel, IsTrainedOnWhatIsSeen) {
  see("NVIDIA H100 80GB HBM3", kH100Bytes);
  const std::string line = "deepspeed --num_gpus 4 t.py --tp 2 --mbs 1";
  EXPECT_EQ(json(line)["cluster"].dump(), R"({"gpus_per_node":4,"gpu":"h100-80gb"})");
  EXPECT_EQ(json(line)["framework"], "deepspeed");
  EXPECT_FALSE(json(line).contains("memory")) << "the table has it";
  EXPECT_EQ(sentence(line),
            "seen: 4 ranks on one node, the GPU h100-80gb with 79.2 GiB and the framework deepspeed; inferred from the "
            "trials: the model");
  const session::Session session = jobs::session_of_job(request_).session;
  EXPECT_FALSE(session.workload.has_value());
  EXPECT_EQ(session.framework, workload::Framework::kDeepSpeed);
  EXPECT_EQ(session.cluster.ranks(), 4);
  EXPECT_EQ(session.cluster.device->id, "h100-80gb");
  EXPECT_FALSE(session.cluster.assumes_ranks);
}

TEST_F(UnknownModel, WithoutAGpuHasNone) {
  const std::string line = "torchrun --nproc_per_node 8 t.py --tp 2 --mbs 1";
  EXPECT_EQ(json(line)["cluster"].dump(), R"({"gpus_per_node":8})");
  EXPECT_FALSE(json(line).contains("memory"));
  EXPECT_FALSE(json(line).contains("framework"));
  EXPECT_EQ(sentence(line),
            "seen: 8 ranks on one node; not seen: the GPU, which is taken for an H100; inferred from the trials: the "
            "framework and the model");
  EXPECT_FALSE(jobs::session_of_job(request_).session.cluster.device.has_value());
}

TEST_F(UnknownModel, OfAGpuThatIsNotInTheTableKnowsTheMemory) {
  see("NVIDIA RTX A5500", 51033931776);
  const std::string line = "torchrun --nproc_per_node gpu t.py --tp 2 --mbs 1";
  EXPECT_EQ(json(line)["cluster"].dump(), R"({"gpus_per_node":8})");
  EXPECT_NEAR(json(line)["memory"]["limit_gib"].get<double>(), 47.529, 0.001);
  EXPECT_EQ(sentence(line),
            "seen: 8 ranks on one node and the GPU NVIDIA RTX A5500 with 47.5 GiB; not known: the speed of this GPU, "
            "which is taken for an H100's; inferred from the trials: the framework and the model");
}

TEST_F(UnknownModel, DoesNotGuessRanks) {
  const Json unknown = json("accelerate launch t.py --tp 2 --mbs 1");
  EXPECT_EQ(unknown["cluster"].dump(), R"({"gpus_per_node":1,"ranks_assumed":true})");
  EXPECT_TRUE(jobs::session_of_job(request_).session.cluster.assumes_ranks);
  EXPECT_EQ(sentence("accelerate launch t.py --tp 2 --mbs 1"),
            "not seen: the GPU, which is taken for an H100; inferred from the trials: the number of ranks (say it: "
            "--num_processes N), the framework and the model");
  // A script that splits its model over four ranks must start them itself.
  EXPECT_EQ(json("python t.py --tp 2 --mbs 1")["cluster"]["ranks_assumed"], true);
  const Json alone = made("python t.py --mbs 1", {"mbs=--mbs:1,2"}, "tokens/s ([0-9.]+)").json;
  EXPECT_EQ(alone["cluster"].dump(), R"({"gpus_per_node":1})");
  EXPECT_FALSE(json("torchrun --nproc_per_node 2 t.py --tp 2 --mbs 1")["cluster"].contains("ranks_assumed"));
}

TEST_F(UnknownModel, OnSeveralNodesIsOnNodesLikeThisOne) {
  see("NVIDIA H100 80GB HBM3", kH100Bytes);
  const std::string line = "torchrun --nnodes 2 --nproc_per_node 8 t.py --tp 2 --mbs 1";
  EXPECT_EQ(json(line)["cluster"].dump(), R"({"nodes":2,"gpus_per_node":8})") << "no network is seen";
  EXPECT_NEAR(json(line)["memory"]["limit_gib"].get<double>(), 79.19, 0.01);
  EXPECT_TRUE(says(made(line, {"tp=--tp:1,2", "mbs=--mbs:1,2"}), R"(for its speed write "gpu": "h100-80gb" and)"));
  request_.find_network = [] { return std::optional<std::string>("ib-ndr-400"); };
  EXPECT_EQ(json(line)["cluster"].dump(), R"({"nodes":2,"gpus_per_node":8,"gpu":"h100-80gb","network":"ib-ndr-400"})");
  EXPECT_TRUE(says(made(line, {"tp=--tp:1,2", "mbs=--mbs:1,2"}), "nodes are taken for nodes like this one"));
  EXPECT_EQ(sentence(line),
            "seen: 16 ranks on 2 nodes, the GPU h100-80gb with 79.2 GiB and the network ib-ndr-400; inferred from the "
            "trials: the framework and the model");
}

TEST_F(UnknownModel, OnOtherMachinesHasNotTheGpusOfThisOne) {
  see("NVIDIA H100 80GB HBM3", kH100Bytes);
  request_.find_network = [] { return std::optional<std::string>("ib-ndr-400"); };
  const std::string elsewhere = "srun -N 2 -n 16 python t.py --tp 2 --mbs 1";
  EXPECT_EQ(json(elsewhere)["cluster"].dump(), R"({"nodes":2,"gpus_per_node":8})");
  EXPECT_FALSE(json(elsewhere).contains("memory"));
  variables_ = {{"SLURM_JOB_ID", "7"}};
  EXPECT_FALSE(json(elsewhere)["cluster"].contains("gpu")) << "the login node of an allocation";
  variables_["SLURMD_NODENAME"] = "n1";
  EXPECT_EQ(json(elsewhere)["cluster"]["gpu"], "h100-80gb");
  variables_.clear();
  const std::string here = "torchrun --nproc_per_node 8 t.py --tp 2 --mbs 1";
  EXPECT_EQ(json(here)["cluster"]["gpu"], "h100-80gb");
  directory_.write("hosts", "other-1 slots=8\n");
  EXPECT_FALSE(json("deepspeed --hostfile hosts t.py --tp 2 --mbs 1")["cluster"].contains("gpu"));
  request_.session = directory_.write("own.json", R"({"executor": {"kind": "slurm"}})");
  EXPECT_FALSE(json(here)["cluster"].contains("gpu"));
  request_.executor = "local";
  EXPECT_EQ(json(here)["cluster"]["gpu"], "h100-80gb");
  request_.session.clear();
  request_.executor = "slurm";
  EXPECT_FALSE(json(here)["cluster"].contains("gpu"));
}

TEST_F(UnknownModel, HasTheFrameworkOfItsCommand) {
  const auto framework = [&](const std::string& line) { return json(line).value("framework", ""); };
  EXPECT_EQ(framework("accelerate launch --num_processes 8 --use_fsdp t.py --tp 2 --mbs 1"), "fsdp");
  EXPECT_EQ(framework("accelerate launch --num_processes 8 --use_megatron_lm t.py --tp 2 --mbs 1"), "megatron");
  EXPECT_EQ(framework("accelerate launch --num_processes 8 t.py --tp 2 --mbs 1"), "");
  EXPECT_EQ(framework("torchrun --nproc_per_node 8 t.py --deepspeed_config ds.json --tp 2 --mbs 1"), "deepspeed");
  const Json megatron =
      made("torchrun --nproc_per_node 8 pretrain_gpt.py --micro-batch-size 2 --global-batch-size 64", {}, "").json;
  EXPECT_EQ(megatron["framework"], "megatron");
  EXPECT_FALSE(megatron.contains("workload"));
  const Json known = made(
                         "torchrun --nproc_per_node 8 pretrain_gpt.py --micro-batch-size 2 --global-batch-size 64 "
                         "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64",
                         {}, "")
                         .json;
  EXPECT_TRUE(known.contains("workload"));
  EXPECT_FALSE(known.contains("framework")) << "the workload has it";
}

TEST_F(UnknownModel, LeavesWhatTheUserSays) {
  see("NVIDIA H100 80GB HBM3", kH100Bytes);
  request_.session =
      directory_.write("own.json", R"({"framework": "megatron", "cluster": {"gpus_per_node": 8, "gpu": "a100-40gb"}})");
  const Json own = json("deepspeed --num_gpus 8 t.py --tp 2 --mbs 1");
  EXPECT_EQ(own["framework"], "megatron");
  EXPECT_EQ(own["cluster"].dump(), R"({"gpus_per_node":8,"gpu":"a100-40gb"})");
  EXPECT_FALSE(own.contains("memory"));
}

// A session's own command says as much as one after "--".
TEST_F(UnknownModel, OfASessionIsSeenToo) {
  see("NVIDIA H100 80GB HBM3", kH100Bytes);
  const auto seen = [&](const std::string& runner, const std::string& more = "") {
    Json session =
        parse_json(R"({"space": {"tp": [1, 2, 4]}, "runner": {"kind": "command", )" + runner + "}" + more + "}", "s");
    std::vector<std::string> lines;
    const Json before = session;
    const bool adds = jobs::add_seen_facts(session, request_, lines);
    EXPECT_EQ(adds, session != before);
    EXPECT_EQ(adds, !lines.empty());
    return session;
  };
  const Json own = seen(R"("argv": ["deepspeed", "--num_gpus", "4", "t.py", "--tp", "{tp}"])");
  EXPECT_EQ(own["cluster"].dump(), R"({"gpus_per_node":4,"gpu":"h100-80gb"})");
  EXPECT_EQ(own["framework"], "deepspeed");
  EXPECT_EQ(seen(R"("argv": ["bash", "run.sh"], "env": {"NPROC_PER_NODE": "2"})")["cluster"]["gpus_per_node"], 2);
  std::filesystem::create_directory(directory_ / "sub");
  directory_.write("sub/hosts", "localhost slots=2\n");
  const std::string with_hosts = R"("argv": ["deepspeed", "--hostfile", "hosts", "t.py"])";
  EXPECT_EQ(seen(R"("cwd": "sub", )" + with_hosts)["cluster"]["gpus_per_node"], 2);
  const std::string four = R"("argv": ["torchrun", "--nproc_per_node", "4", "t.py"])";
  EXPECT_FALSE(seen(four, R"(, "executor": {"kind": "slurm"})")["cluster"].contains("gpu"));
  EXPECT_EQ(seen(four, R"(, "cluster": {"gpus_per_node": 2})")["cluster"].dump(), R"({"gpus_per_node":2})");
  EXPECT_FALSE(seen(four, R"(, "workload": {"model": {"preset": "gpt2-350m"}})").contains("cluster"));
  // What is wrong is for the reader of the session to say.
  for (const char* wrong : {R"("argv": 7)", R"("argv": ["torchrun", 7])", R"("argv": [])", R"("argv": ["x"], "cwd": 7)",
                            R"("argv": ["x"], "env": {"A": 7})"}) {
    EXPECT_NO_THROW(seen(wrong, R"(, "executor": {"kind": 7}, "framework": 7)")) << wrong;
  }
  directory_.write("hosts", "a slots=2\nb slots=3\n");
  EXPECT_FALSE(seen(with_hosts).contains("cluster"));
}

TEST_F(UnknownModel, IsNotInferredFromALoss) {
  see("NVIDIA H100 80GB HBM3", kH100Bytes);
  request_.minimize = true;
  made("torchrun --nproc_per_node 8 t.py --mbs 1", {"mbs=--mbs:1,2"}, "loss ([0-9.]+)");
  for (const std::string& remark : jobs::session_of_job(request_).remarks) {
    EXPECT_EQ(remark.find("inferred"), std::string::npos) << remark;
  }
}

TEST_F(JobSession, TakesTheRestFromTheUsersSession) {
  request_.session = directory_.write("own.json", R"({
    "cluster": {"gpus_per_node": 4}, "budget": {"trials": 7}, "space": {"x": [1, 2], "y": [1, 2, 3]},
    "constraints": ["x < y"], "baseline": {"y": 3},
    "runner": {"kind": "command", "argv": ["old"], "timeout_s": 60, "env": {"A": "1"}}})");
  const auto own = made("bash run.sh --x 5 --y {y}", {"x=--x", "z=$Z:1,2"});
  const Json wanted = parse_json(R"json({
    "cluster": {"gpus_per_node": 4}, "budget": {"trials": 7}, "space": {"x": [1, 2], "y": [1, 2, 3], "z": [1, 2]},
    "constraints": ["x < y"], "baseline": {"y": 3, "x": 5, "z": 1},
    "runner": {"kind": "command", "argv": ["bash", "run.sh", "--x", "{x}", "--y", "{y}"], "timeout_s": 60,
               "env": {"A": "1", "Z": "{z}"}, "cwd": "/job", "measure": {"value": {"regex": "tok/s ([0-9.]+)"}}},
    "objective": {"metric": "value", "direction": "maximize", "unit": "tok/s"}})json",
                                 "wanted");
  EXPECT_EQ(own.json.dump(2), wanted.dump(2));
  EXPECT_TRUE(says(own, "own.json: /runner/argv is not used: trials run the command after --"));
  EXPECT_NE(refusal("bash run.sh --w 5", {"w=--w"}, "x ([0-9]+)").find("VALUES are missing; write 'w=--w:1,2,4'"),
            std::string::npos);
}

TEST_F(JobSession, SaysThatAnotherRunnerIsNotUsed) {
  for (const char* runner : {R"({"kind": "simulat"})", R"({"kind": "replay", "table": "t.csv"})", "7"}) {
    request_.session = directory_.write("own.json", std::string(R"({"runner": )") + runner + "}");
    const auto own = made("python t.py --x 1", {"x=--x:1,2"});
    EXPECT_TRUE(says(own, "own.json: /runner is not used: trials run the command after --")) << runner;
    EXPECT_EQ(own.json["runner"]["kind"], "command");
  }
  request_.session = directory_.write("own.json", R"({"runner": {"kind": "command", "timeout_s": 60}})");
  EXPECT_FALSE(says(made("python t.py --x 1", {"x=--x:1,2"}), "is not used"));
}

TEST_F(JobSession, ReadsFurtherNumbersInTheUnitThatIsPrinted) {
  request_.measure = {"peak_memory_bytes=max mem ([0-9.]+) GiB", "loss=loss ([^ ]+)"};
  const auto own = made("python t.py --x 1", {"x=--x:1,2"});
  const Json& measure = own.json["runner"]["measure"];
  EXPECT_EQ(measure["peak_memory_bytes"].dump(), R"json({"regex":"max mem ([0-9.]+) GiB","times":"GiB"})json");
  EXPECT_EQ(measure["loss"].dump(), R"json({"regex":"loss ([^ ]+)"})json");
  EXPECT_TRUE(measure.contains("value"));
  EXPECT_FALSE(says(own, "taken for bytes"));
  request_.measure = {"peak_memory_bytes=max mem ([0-9.]+)"};
  EXPECT_TRUE(says(made("python t.py --x 1", {"x=--x:1,2"}), "the number is taken for bytes"));
  request_.measure = {"loss"};
  EXPECT_EQ(refusal("python t.py --x 1", {"x=--x:1,2"}).rfind("--measure: 'loss' has no name", 0), 0U);
}

TEST_F(JobSession, SaysWhatToAdd) {
  EXPECT_EQ(refusal("python pretrain.py --mbs 4 --ga 2 --lr 3e-4", {}),
            "pretrain: no recipe knows this job; --mbs looks like micro_batch, --ga looks like "
            "gradient_accumulation_steps; say what may vary and which printed number counts: krigtune tune --vary "
            "micro_batch=--mbs:1,2,4,8 --vary gradient_accumulation_steps=--ga:1,2,4,8 --metric 'tokens/s ([0-9.]+)' "
            "-- python pretrain.py --mbs 4 --ga 2 --lr 3e-4");
  EXPECT_EQ(refusal("python t.py --lr 3e-4", {}, "loss ([0-9.]+)"),
            "t: no recipe knows this job; say what may vary: krigtune tune --vary lr=--lr:3e-05..3e-03:log --metric "
            "'loss ([0-9.]+)' -- python t.py --lr 3e-4");
  EXPECT_EQ(refusal("python t.py", {"x=--x:1,2"}),
            "t: which printed number counts is not known; add --metric with the text before it: krigtune tune "
            "--vary x=--x:1,2 --metric 'tokens/s ([0-9.]+)' -- python t.py");
  const std::vector<std::pair<const char*, const char*>> metrics = {
      {"tokens/s", "--metric 'tokens/s': has no group for the number; put it in brackets: 'tokens/s ([0-9.]+)'"},
      {"(a) (b)", "--metric '(a) (b)': has 2 groups; keep the number's; of the others make (?:...)"},
      {"x ([0-9", "--metric 'x ([0-9': is not a regular expression"},
  };
  for (const auto& [metric, said] : metrics) {
    EXPECT_EQ(refusal("python t.py", {"x=--x:1,2"}, metric).rfind(said, 0), 0U) << refusal("t.py", {}, metric);
  }
  request_.minimize = true;
  EXPECT_EQ(refusal("python t.py", {"x=--x:1,2"}).rfind("--minimize needs --metric", 0), 0U);
  request_.minimize = false;
  request_.last_line = true;
  EXPECT_EQ(refusal("python t.py", {"x=--x:1,2"}).rfind("--final needs --metric", 0), 0U);
  request_.warmup_steps = 1;
  EXPECT_EQ(refusal("python t.py", {"x=--x:1,2"}, "loss ([0-9.]+)"),
            "--final cannot be combined with --warmup-steps or --measure-steps; leave one of them out: with --final "
            "the last line counts, and every trial runs to its end");
}

TEST_F(JobSession, StepsAreTheUsersOrTheRecipes) {
  EXPECT_FALSE(made("python t.py", {"x=--x:1,2"}).json["runner"].contains("warmup_steps"));
  request_.warmup_steps = 0;
  request_.measure_steps = 3;
  const Json own = made("python t.py", {"x=--x:1,2"}).json["runner"];
  EXPECT_EQ(own["warmup_steps"], 0);
  EXPECT_EQ(own["measure_steps"], 3);
  const Json recipe = made(
                          "torchrun --nproc_per_node 8 pretrain_gpt.py --micro-batch-size 2 --global-batch-size 64 "
                          "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --train-iters 900",
                          {}, "")
                          .json["runner"];
  EXPECT_EQ(recipe["warmup_steps"], 0);
  EXPECT_EQ(recipe["measure_steps"], 3);
  const auto ended_after = [](const Json& runner) {
    const auto& argv = runner["argv"];
    return *std::next(std::find(argv.begin(), argv.end(), "--exit-interval"));
  };
  request_.warmup_steps = 2;
  const Json longer = made(join(request_.command, " "), {}, "").json["runner"];
  EXPECT_EQ(std::stoi(ended_after(longer).get<std::string>()), std::stoi(ended_after(recipe).get<std::string>()) + 2)
      << "a trial lasts until its steps are measured";
}

TEST_F(JobSession, OfARecipeNeedsNoOptions) {
  const std::string command =
      "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 12 --hidden-size 1024 --num-attention-heads 16 "
      "--seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 2 --global-batch-size 64 --vocab-size 32000 "
      "--tensor-model-parallel-size 2 --bf16 --save checkpoints";
  const jobs::WrittenSession written = made(command, {}, "");
  const Json& json = written.json;
  EXPECT_EQ(json["space"]["micro_batch"].dump(), "[1,2,4,8,16,32,64]");
  EXPECT_EQ(json["space"]["tensor_parallel"].dump(), "[1,2,4,8]");
  EXPECT_FALSE(json["space"].contains("gradient_accumulation_steps"));  // Megatron and the session derive it
  EXPECT_EQ(json["workload"]["train_batch_size"], 64);
  EXPECT_EQ(json["baseline"]["micro_batch"], 2);
  EXPECT_EQ(json["baseline"]["tensor_parallel"], 2);
  EXPECT_EQ(json["runner"]["recipe"], "megatron");
  EXPECT_EQ(json["runner"]["command"].get<std::vector<std::string>>(), words_of(command));
  EXPECT_EQ(json["runner"]["argv"].dump().find("--save"), std::string::npos);
  EXPECT_FALSE(json.contains("objective"));
  EXPECT_FALSE(written.notes.empty());
  request_.directory = directory_.path();
  EXPECT_EQ(jobs::session_of_job(request_).session.file, "pretrain_gpt.py");
}

// 8 ranks, of which 2 share a sequence: a batch of 16 is one micro-batch of 4 on each of 4 replicas. With 8 replicas it
// would not be divisible.
TEST_F(JobSession, KeepsTheBatchOfRanksThatShareASequence) {
  const std::string megatron =
      "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 "
      "--seq-length 1024 --vocab-size 50304 --micro-batch-size 4 --global-batch-size 16 --context-parallel-size 2 "
      "--bf16";
  const jobs::WrittenSession written = made(megatron, {}, "");
  const std::vector<std::string> constraints = written.json["constraints"];
  EXPECT_EQ(std::count(constraints.begin(), constraints.end(),
                       "ranks % (tensor_parallel * pipeline_parallel * context_parallel) == 0"),
            1);
  request_.directory = directory_.path();
  const session::Session session = jobs::session_of_job(request_).session;  // it was refused: batch not divisible
  EXPECT_EQ(session.cluster.ranks(), 8);
  EXPECT_TRUE(session.workload->caveats.not_modelled.empty());
  const auto assumes_a_ring = [](const session::Session& one) {
    return std::ranges::count_if(one.workload->caveats.assumed, [](const std::string& caveat) {
      return caveat.starts_with("context parallelism is a ring");
    });
  };
  EXPECT_EQ(assumes_a_ring(session), 1);
  EXPECT_EQ(assumes_a_ring(session::read_session(session::resolved(session), "the record", directory_.path())), 1);
}

// 24 layers on 2, 4 or 8 ranks; a step has 32 sequences on 8 ranks.
TEST_F(JobSession, VariesTheStagesOfPipelineRanksWithinWhatMegatronTakes) {
  request_.directory = directory_.path();
  const std::string megatron =
      "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 "
      "--seq-length 1024 --vocab-size 50304 --micro-batch-size 1 --global-batch-size 32 "
      "--pipeline-model-parallel-size 4 --bf16 ";
  const std::string stages = "virtual_pipeline=--num-virtual-stages-per-pipeline-rank:1,2,3,4";
  const Json json = made(megatron + "--num-layers-per-virtual-pipeline-stage 3", {stages}, "").json;
  EXPECT_EQ(json["baseline"]["virtual_pipeline"], 2) << "24 layers in threes, on 4 ranks";
  const std::string argv = json["runner"]["argv"].dump();
  EXPECT_NE(argv.find(R"("--num-virtual-stages-per-pipeline-rank","{virtual_pipeline}")"), std::string::npos) << argv;
  EXPECT_EQ(argv.find("--num-layers-per-virtual-pipeline-stage"), std::string::npos) << "Megatron takes one of them";
  made(megatron,
       {stages, "micro_batch=--micro-batch-size:1,2,4", "pipeline_parallel=--pipeline-model-parallel-size:1,2,4,8"},
       "");
  const session::Session session = jobs::session_of_job(request_).session;
  int interleaved = 0;
  session.space.for_each([&](const space::Configuration& one) {
    const std::int64_t ranks = one.integer("pipeline_parallel", 1);
    const std::int64_t stages_of_rank = one.integer("virtual_pipeline", 1);
    if (stages_of_rank == 1) return true;
    ++interleaved;
    EXPECT_GT(ranks, 1) << one.text();
    EXPECT_EQ(24 % (ranks * stages_of_rank), 0) << one.text();
    EXPECT_EQ(32 * ranks / (one.integer("micro_batch", 1) * 8) % ranks, 0) << one.text();
    return true;
  });
  EXPECT_EQ(interleaved, 3 * (3 + 2 + 1)) << "2 ranks of 2, 3 or 4 stages, 4 of 2 or 3, 8 of 3, for each micro-batch";
}

// micro-batch 2 x 2 replicas x 8 micro-steps; trials once trained with 4 micro-steps.
TEST_F(JobSession, KeepsTheMicroStepsWhereRanksShareASequence) {
  request_.directory = directory_.path();
  directory_.write("llama.yaml",
                   "model:\n  model_config:\n    num_hidden_layers: 16\n    hidden_size: 2048\n"
                   "    num_attention_heads: 32\n    vocab_size: 128256\n"
                   "parallelism:\n  dp: 2\n  tp: 2\n  pp: 1\n  context_parallel_size: 2\n"
                   "tokens:\n  sequence_length: 2048\n  micro_batch_size: 2\n  batch_accumulation_per_replica: 8\n"
                   "  train_steps: 100\n");
  made("torchrun --nproc_per_node=8 run_train.py --config-file llama.yaml", {}, "");
  const session::Session session = jobs::session_of_job(request_).session;
  EXPECT_EQ(session.workload->train_batch_size, 32);
  EXPECT_EQ(session.baseline->integer("gradient_accumulation_steps", 0), 8);
}

// A job of a model that nobody knows: without a workload the session does not know the batch. It was refused.
TEST_F(JobSession, KeepsTheBatchOfAnUnknownModelWhereOnlyTheMicroBatchIsAskedFor) {
  request_.directory = directory_.path();
  const jobs::WrittenSession written = made(
      "torchrun --nproc_per_node 2 train.py --per_device_train_batch_size 2 --gradient_accumulation_steps 4 "
      "--output_dir o --model_name_or_path ./nowhere",
      {"micro_batch=--per_device_train_batch_size:1,2,3"}, "");
  EXPECT_EQ(written.json["space"]["gradient_accumulation_steps"].dump(), "[4,8]");
  EXPECT_TRUE(says(written, "gradient_accumulation_steps varies too, so that a step keeps its 16 sequences"));
  int count = 0;
  jobs::session_of_job(request_).session.space.for_each([&](const space::Configuration& one) {
    EXPECT_EQ(one.integer("micro_batch", 0) * one.integer("gradient_accumulation_steps", 0) * 2, 16);
    return ++count < 10;
  });
  EXPECT_EQ(count, 2);
}

// A session once named the file of the command as if both lay in one folder, and could not be read.
TEST_F(JobSession, NamesFilesThatLieInAnotherFolderThanItself) {
  std::filesystem::create_directories(directory_.path() / "job");
  std::filesystem::create_directories(directory_.path() / "sessions");
  directory_.write("job/x.yml", "base_model: m\nmicro_batch_size: 2\ngradient_accumulation_steps: 4\n");
  directory_.write("sessions/own.json", R"({"budget": {"trials": 3}})");
  request_.directory = directory_.path() / "job";
  const std::string there = (request_.directory / "x.yml").string();
  const auto file_of = [&] {
    const Json set = made("axolotl train x.yml", {}, "").json["runner"]["set"];
    EXPECT_NO_THROW(jobs::session_of_job(request_));
    return set.begin().key();
  };
  EXPECT_EQ(file_of(), "x.yml");
  request_.written_in = directory_.path() / "sessions";
  EXPECT_EQ(file_of(), there);
  request_.written_in.clear();
  request_.session = directory_.path() / "sessions/own.json";
  EXPECT_EQ(file_of(), there);
}

// nanotron asserts that dp is what the others leave. Only tensor and pipeline parallelism once changed it.
TEST_F(JobSession, WritesTheDataRanksThatEveryKindOfParallelismLeaves) {
  directory_.write("llama.yaml",
                   "parallelism:\n  dp: 8\n  tp: 1\n  pp: 1\n"
                   "tokens:\n  micro_batch_size: 2\n  batch_accumulation_per_replica: 8\n");
  request_.directory = directory_.path();
  for (const std::string vary : {"tensor_parallel=llama.yaml#parallelism.tp:1,2",
                                 "context_parallel=llama.yaml#parallelism.context_parallel_size:1,2"}) {
    const Json json = made("torchrun --nproc_per_node=8 run_train.py --config-file llama.yaml", {vary}, "").json;
    EXPECT_EQ(json["runner"]["set"]["llama.yaml"].value("parallelism.dp", ""), "{dp}") << vary;
  }
}

// Without a model the session has no name for the batch that stays: micro_batch * dp would be taken for it.
TEST_F(JobSession, OfAnUnknownModelComparesStepsIfTheBatchStays) {
  const auto objective = [&](const std::string& flags) {
    const auto session = made("torchrun --nproc_per_node 8 pretrain_gpt.py --micro-batch-size 2 " + flags, {}, "").json;
    return session.contains("objective") ? session.at("objective").dump() : "";
  };
  EXPECT_EQ(objective("--global-batch-size 64"), R"({"metric":"latency","direction":"minimize"})");
  EXPECT_EQ(
      objective("--global-batch-size 64 --num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 512"),
      "")
      << "the workload has the batch";
  const auto titan =
      made("torchrun --nproc_per_node 8 -m torchtitan.train --module x --training.local_batch_size 2", {}, "");
  EXPECT_FALSE(titan.json.contains("objective")) << "tokens a second are printed";
}

TEST_F(JobSession, OfARecipeVariesWhatIsAskedForInTheRecipesPlaces) {
  const Json json = made(
                        "torchrun --nproc_per_node 8 pretrain_gpt.py --micro-batch-size 2 --global-batch-size 64 "
                        "--clip-grad 1.0",
                        {"micro_batch=--mbs:1,2,4", "clip=--clip-grad:0.5,1"}, "")
                        .json;
  EXPECT_EQ(json["space"].dump(), R"({"micro_batch":[1,2,4],"clip":[0.5,1]})");
  const std::string argv = json["runner"]["argv"].dump();
  EXPECT_NE(argv.find(R"("--micro-batch-size","{micro_batch}")"), std::string::npos) << argv;
  EXPECT_NE(argv.find(R"("--clip-grad","{clip}")"), std::string::npos) << argv;
  const std::string own = json["runner"]["command"].dump();
  EXPECT_NE(own.find(R"("--micro-batch-size","2")"), std::string::npos) << own;
  EXPECT_NE(own.find(R"("--clip-grad","{clip}")"), std::string::npos) << own;
}

TEST_F(JobSession, IsNamedForTheScript) {
  EXPECT_EQ(jobs::job_name(words_of("torchrun --nproc_per_node 2 conf/train.v2.py --x train.py")), "train.v2");
  EXPECT_EQ(jobs::job_name(words_of("python -m trl.scripts.sft --x 1")), "sft");
  EXPECT_EQ(jobs::job_name(words_of("A=1 bash ./run.sh 4")), "run");
  EXPECT_EQ(jobs::job_name(words_of("./simulate --n 4")), "simulate");
}

TEST_F(JobSession, KnowsWordsOfOtherNames) {
  std::vector<std::string> options;
  const auto command = words_of(
      "TP=2 torchrun t.py --micro-batch-size=16 trainer.accumulate_grad_batches=4 --gradient_checkpointing --seed -1");
  for (const jobs::LooksLike& word : jobs::known_words(command)) options.push_back(word.option);
  const std::vector<std::string> wanted = {"tensor_parallel=$TP:1,2,4,8", "micro_batch=--micro-batch-size:4,8,16,32",
                                           "gradient_accumulation_steps=trainer.accumulate_grad_batches=:1,2,4,8",
                                           "activation_checkpointing=--gradient_checkpointing:true,false"};
  EXPECT_EQ(options, wanted);
}

}  // namespace krigtune::job_session_test
