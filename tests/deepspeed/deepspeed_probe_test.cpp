// What krigtune finds out about a job's environment: the installed DeepSpeed, and where its ranks come from.
#include <gtest/gtest.h>

#include <map>

#include "deepspeed/job/ds_command.h"
#include "deepspeed/job/ds_probe.h"
#include "jobs/command/ranks.h"
#include "trial/event_clock.h"
#include "trial/temporary_directory.h"
#include "user_error.h"

namespace krigtune::deepspeed_probe_test {

using Words = std::vector<std::string>;

// Answers like an interpreter that is asked for a version. As any other program it fails.
constexpr const char* kPython = "[ \"$1\" = -c ] && echo 0.16.9+cu121\n";

class DeepSpeedProbe : public ::testing::Test {
 protected:
  std::optional<deepspeed::DsVersion> version_of_command(const Words& argv) const {
    return deepspeed::installed_version(deepspeed::read_ds_command(argv), dir_.path(), still_);
  }
  std::string path(const std::string& name) const { return (dir_ / name).string(); }

  TemporaryDirectory dir_;
  ManualClock still_;
};

TEST_F(DeepSpeedProbe, AsksTheInterpreterOfTheLauncher) {
  dir_.write_program("python3", kPython);
  dir_.write("deepspeed", "#!" + path("python3") + "\nimport deepspeed\n");
  std::filesystem::permissions(dir_ / "deepspeed", std::filesystem::perms::owner_all);
  const deepspeed::DsVersion expected{0, 16, 9};
  EXPECT_EQ(version_of_command({"./deepspeed", "train.py", "--deepspeed_config", "ds.json"}), expected);
  EXPECT_EQ(version_of_command({path("python3"), "-m", "torch.distributed.run", "train.py", "--deepspeed=ds.json"}),
            expected);
  EXPECT_EQ(version_of_command({"env", "A=1", "PATH=" + dir_.path().string(), "deepspeed", "train.py",
                                "--deepspeed_config", "ds.json"}),
            expected);
}

TEST_F(DeepSpeedProbe, AVersionThatNobodyKnowsIsNoError) {
  dir_.write_program("python3", "exit 1\n");  // PackageNotFoundError
  dir_.write_program("deepspeed", "exec other\n");
  const Words job = {"train.py", "--deepspeed_config", "ds.json"};
  const auto unknown = [&](Words argv) {
    argv.insert(argv.end(), job.begin(), job.end());
    return !version_of_command(argv).has_value();
  };
  EXPECT_TRUE(unknown({path("python3")}));
  EXPECT_TRUE(unknown({path("deepspeed")}));
  EXPECT_TRUE(unknown({path("no_such_python3")}));
  EXPECT_TRUE(unknown({"apptainer", "exec", "image.sif", path("python3")}));
  EXPECT_TRUE(unknown({"./run.sh"}));
}

TEST_F(DeepSpeedProbe, ASilentInterpreterIsGivenUp) {
  dir_.write_program("python3", "sleep 600\n");
  double now = 0.0;
  const EventClock clock([&] { return now += 1.0; });
  const deepspeed::DsCommand command =
      deepspeed::read_ds_command({path("python3"), "train.py", "--deepspeed_config", "ds.json"});
  EXPECT_EQ(deepspeed::installed_version(command, dir_.path(), clock), std::nullopt);
}

Words blank_separated(const std::string& line) {
  Words words;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    if (end > at) words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

using Variables = std::map<std::string, std::string>;

class DeepSpeedRanks : public ::testing::Test {
 protected:
  DeepSpeedRanks() {
    dir_.write("hosts", "# two of eight\nnode1.cluster slots=8\n\nnode2 slots=8 # the other\n");
    dir_.write("uneven", "node1 slots=8\nnode2 slots=4\n");
    dir_.write("alone", "localhost slots=3\n");
    dir_.write("acc.yaml", "compute_environment: LOCAL_MACHINE\nnum_machines: 2\nnum_processes: 16 # all\n");
    std::filesystem::create_directories(dir_ / "hf/accelerate");
    dir_.write("hf/accelerate/default_config.json", "{\n  \"num_machines\": 1,\n  \"num_processes\": 6\n}\n");
  }

  jobs::JobRanks found(const std::string& launcher, std::int64_t gpus = 0, const Variables& variables = {}) const {
    return found_of(deepspeed::read_ds_command(blank_separated(launcher + " train.py --deepspeed_config ds.json")),
                    gpus, variables);
  }

  jobs::JobRanks found_of(const jobs::Command& command, std::int64_t gpus, const Variables& variables = {}) const {
    jobs::Surroundings around;
    around.variable = [&](const char* name) {
      const auto at = variables.find(name);
      return at == variables.end() ? std::string() : at->second;
    };
    around.directory = dir_.path();
    around.hostname = "node1";
    around.gpus = gpus;
    around.cpus = 12;
    return jobs::ranks_around(command, around);
  }

  // Returns "RANKS/NODES": "-" means unknown, "+" that other nodes take part.
  std::string text(const std::string& launcher, std::int64_t gpus = 0, const Variables& variables = {}) const {
    return text_of(found(launcher, gpus, variables));
  }

  static std::string text_of(const jobs::JobRanks& ranks) {
    const auto number = [](const auto& count) { return count ? std::to_string(*count) : "-"; };
    EXPECT_EQ(ranks.missing.empty(), ranks.ranks.has_value()) << ranks.missing;
    return number(ranks.ranks) + "/" + number(ranks.nodes) + (ranks.is_elsewhere ? "+" : "");
  }

  TemporaryDirectory dir_;
};

// deepspeed/launcher/runner.py, DeepSpeed 0.19.6.
TEST_F(DeepSpeedRanks, OfDeepSpeedComeFromTheHostfileOrTheGpus) {
  EXPECT_EQ(text("deepspeed", 4), "4/1");
  EXPECT_EQ(text("deepspeed --exclude localhost:0", 4), "3/1");
  EXPECT_EQ(text("deepspeed"), "-/1");
  EXPECT_EQ(text("deepspeed", 0, {{"LOCAL_SIZE", "2"}}), "2/1");
  EXPECT_EQ(text("deepspeed --num_gpus 2"), "2/1");
  EXPECT_EQ(text("deepspeed --hostfile hosts"), "16/2+");
  EXPECT_EQ(text("deepspeed -H hosts --num_nodes 1", 4), "8/1");
  EXPECT_EQ(text("deepspeed -H hosts --num_gpus=4"), "8/2+");
  EXPECT_EQ(text("deepspeed -H hosts --include node2"), "8/1+");
  EXPECT_EQ(text("deepspeed -H hosts -i node1.cluster:0,1@node2:3,4"), "4/2+");
  EXPECT_EQ(text("deepspeed -H hosts --exclude node2@node1.cluster:0,1"), "6/1");
  EXPECT_EQ(text("deepspeed -H alone", 8), "3/1");
  EXPECT_EQ(text("deepspeed -H no_such_file --num_gpus 2", 8), "2/1");
}

TEST_F(DeepSpeedRanks, OfTorchrunFollowTheDevices) {
  EXPECT_EQ(text("torchrun --nproc_per_node gpu", 4), "4/1");
  EXPECT_EQ(text("torchrun --nproc-per-node=auto", 4), "4/1");
  EXPECT_EQ(text("torchrun --nproc_per_node auto"), "12/1");
  EXPECT_EQ(text("torchrun --nproc_per_node cpu", 4), "12/1");
  EXPECT_EQ(text("torchrun --nproc_per_node gpu"), "-/1");
  EXPECT_EQ(text("torchrun", 4), "1/1");
  EXPECT_EQ(text("torchrun --nnodes 2", 4, {{"PET_NPROC_PER_NODE", "gpu"}}), "8/2+");
  EXPECT_EQ(text("torchrun --nnodes some --nproc_per_node 2"), "-/-");
  EXPECT_EQ(found("torchrun --nnodes some --nproc_per_node 2").missing, "--nnodes N, one number");
  EXPECT_EQ(text("torchrun --nnodes=1:4 --nproc_per_node=8"), "8/1") << "a trial starts no other nodes";
  EXPECT_EQ(found("torchrun --nnodes=1:4 --nproc_per_node=8").assumption,
            "--nnodes 1:4: taken for 1, the fewest; sequences of a step are kept on each rank, however many join");
  EXPECT_EQ(text("torchrun --nnodes=2:2 --nproc_per_node=8"), "16/2+");
  EXPECT_EQ(found("torchrun --nnodes=2:2 --nproc_per_node=8").assumption, "");
}

TEST_F(DeepSpeedRanks, OfProgramsThatStartTorchrunThemselvesStandInVariables) {
  EXPECT_EQ(text("llamafactory-cli train", 2, {{"NPROC_PER_NODE", "8"}}), "8/1");
  EXPECT_EQ(text("env NPROC_PER_NODE=8 NNODES=2 llamafactory-cli train", 2), "16/2+");
  EXPECT_EQ(text("llamafactory-cli train", 2), "2/1");
  EXPECT_EQ(text("torchrun --nproc_per_node 4", 2, {{"NPROC_PER_NODE", "8"}}), "4/1");
}

// swift/cli/main.py of 4.6: without these variables it starts one process.
TEST_F(DeepSpeedRanks, OfSwiftStandInVariablesOrAreOne) {
  EXPECT_EQ(text("swift sft", 4), "1/-");
  EXPECT_EQ(text("swift sft", 4, {{"NPROC_PER_NODE", "8"}}), "8/1");
  EXPECT_EQ(text("env NPROC_PER_NODE=8 NNODES=2 swift pt", 4), "16/2+");
}

// megatron/neox_arguments/arguments.py of May 2026, calculate_derived.
TEST_F(DeepSpeedRanks, OfDeepyStandInItsFiles) {
  std::filesystem::create_directories(dir_ / "conf");
  dir_.write("conf/model.yml", "{\n  \"num_layers\": 2,\n  # \"num_gpus\": 7,\n}\n");
  dir_.write("conf/cluster.yml", "{\n  \"hostfile\": \"hosts\",\n  \"num_nodes\": -1,\n}\n");
  dir_.write("conf/two.yml", "num_gpus: 2\n");
  dir_.write("conf/lost.yml", "hostfile: no_such_file\n");
  const auto text_of_files = [&](const std::string& words, std::int64_t gpus = 4) {
    return text_of(found_of(jobs::read_command(blank_separated("python ./deepy.py train.py " + words)), gpus));
  };
  EXPECT_EQ(text_of_files("-d conf model.yml"), "4/1");
  EXPECT_EQ(text_of_files("-d conf model.yml", 0), "-/1");
  EXPECT_EQ(text_of_files("-d conf model cluster"), "16/2+");
  EXPECT_EQ(text_of_files("conf/model.yml conf/two.yml"), "2/1");
  EXPECT_EQ(text_of_files("conf/model.yml conf/cluster.yml conf/two.yml"), "4/2+");
  EXPECT_EQ(text_of_files("conf/model.yml -H alone"), "3/1");
  EXPECT_EQ(text_of_files("conf/lost.yml"), "-/-");
}

TEST_F(DeepSpeedRanks, OfLaunchersOfFrameworksAreThoseOfTheirOptions) {
  EXPECT_EQ(text("tune run --nnodes 2 --nproc_per_node 4"), "8/2+");
  EXPECT_EQ(text("tune run --standalone --nproc_per_node=4 full_finetune_distributed"), "4/1");
  EXPECT_EQ(text("tune run lora_finetune_single_device --nproc_per_node 4", 8), "1/1") << "an option of the recipe";
  EXPECT_EQ(text("composer -n 4", 8), "4/1");
  EXPECT_EQ(text("composer", 8), "8/1");
  EXPECT_EQ(text("composer"), "-/-");
  EXPECT_EQ(text("composer --world_size 16 -n 8"), "16/2+");
  EXPECT_EQ(text("composer --world_size 16", 8), "16/2+");
  EXPECT_EQ(text("composer", 8, {{"WORLD_SIZE", "16"}}), "16/2+");
  EXPECT_EQ(text("composer -n 4", 8, {{"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "4"}}), "4/1");
  EXPECT_EQ(text("litgpt finetune_full x --devices 4", 8), "4/1");
  EXPECT_EQ(text("litgpt finetune_full x", 8), "1/1");
  EXPECT_EQ(text("python -m litgpt pretrain x", 8), "8/1");
  EXPECT_EQ(text("litgpt finetune x --devices=auto", 8), "8/1");
  EXPECT_EQ(text("litgpt pretrain x --devices 8 --num_nodes 2"), "16/2+");
  EXPECT_EQ(text("litgpt finetune --config https://host/x.yaml"), "-/1") << "the file is not read";
  dir_.write("lit.yaml", "devices: 4\nnum_nodes: 2\n");
  EXPECT_EQ(text("litgpt finetune --config lit.yaml"), "8/2+");
  EXPECT_EQ(text("litgpt finetune --config lit.yaml --devices 2"), "4/2+");
}

TEST_F(DeepSpeedRanks, OfTrlAreThoseOfItsOptionOrFile) {
  dir_.write("trl.yaml", "model_name_or_path: m\nnum_processes: 8\n");
  EXPECT_EQ(text("trl sft --config trl.yaml", 2), "8/-");
  EXPECT_EQ(text("trl sft --config trl.yaml --num_processes 4", 2), "4/-");
  EXPECT_EQ(text("trl sft --config none.yaml", 2), "2/1");
}

TEST_F(DeepSpeedRanks, FollowTheVariablesBeforeTheCommand) {
  EXPECT_EQ(text("env CUDA_VISIBLE_DEVICES=0,1,2,3 deepspeed", 8), "4/1");
  EXPECT_EQ(text("env NCCL_DEBUG=INFO CUDA_VISIBLE_DEVICES=5 torchrun --nproc_per_node gpu", 8), "1/1");
  EXPECT_EQ(text("env PET_NPROC_PER_NODE=3 torchrun --nnodes 2", 8, {{"PET_NPROC_PER_NODE", "4"}}), "6/2+");
  EXPECT_EQ(text("deepspeed --x CUDA_VISIBLE_DEVICES=0,1", 8), "8/1") << "a word of the launcher";
}

TEST_F(DeepSpeedRanks, OfAccelerateStandInItsConfiguration) {
  EXPECT_EQ(text("accelerate launch --config_file acc.yaml"), "16/2+");
  EXPECT_EQ(text("accelerate launch --config_file acc.yaml --num_processes 4 --num_machines 1"), "4/1");
  EXPECT_EQ(text("accelerate launch", 4, {{"HF_HOME", (dir_ / "hf").string()}}), "6/1");
  EXPECT_EQ(text("accelerate launch", 4, {{"HF_HOME", "/nowhere"}}), "4/1");
  EXPECT_EQ(text("accelerate launch", 0, {{"HF_HOME", "/nowhere"}}), "-/1");
}

TEST_F(DeepSpeedRanks, OfSlurmStandInItsVariables) {
  const Variables job = {{"SLURM_JOB_ID", "1"}, {"SLURM_NNODES", "2"}, {"SLURM_NTASKS", "16"}};
  EXPECT_EQ(text("srun python", 8, job), "16/2+");
  EXPECT_EQ(text("srun --ntasks-per-node 4 python", 8, job), "8/2+");
  EXPECT_EQ(text("srun -n 4 python", 8, {{"SLURM_JOB_ID", "1"}, {"SLURM_NNODES", "1"}}), "4/1");
  EXPECT_EQ(text("srun -N 2 python", 0, {}), "2/2+");
  EXPECT_EQ(text("srun -N2 -n8 python"), "8/2+");
  EXPECT_EQ(text("srun --exclusive python"), "-/-+");
  EXPECT_EQ(text("srun torchrun --nnodes 2 --nproc_per_node 8", 0, job), "16/2+");
  EXPECT_EQ(text("mpirun python", 0, job), "16/2+");
  EXPECT_EQ(text("mpirun --hostfile hosts python"), "16/2+");
  EXPECT_EQ(text("mpirun -np 8 --hostfile hosts python"), "8/1");
  EXPECT_EQ(text("mpirun python"), "-/-");
  EXPECT_EQ(text("mpirun -np 16 -H node1:8,node2:8 python"), "16/2+");
  EXPECT_EQ(text("mpirun -H node1:8,node2:8 python"), "16/2+");
  EXPECT_EQ(text("mpirun -np 16 --host node1,node2 python"), "16/2+");
  EXPECT_EQ(text("mpirun -np 8 -host node1:8,node2:8 python"), "8/1");
  EXPECT_EQ(text("./run.sh", 4), "4/1");
}

TEST_F(DeepSpeedRanks, ReadsNoHostfileThatDeepSpeedRefuses) {
  const auto error = [&](const std::string& launcher) { return user_error_of([&] { found(launcher); }); };
  dir_.write("torn", "node1 slots=8\nnode2 eight\n");
  dir_.write("twice", "node1 slots=8\nnode1 slots=8\n");
  dir_.write("empty", "# nobody\n");
  EXPECT_NE(error("deepspeed -H torn").find("torn:2: 'node2 eight'"), std::string::npos);
  EXPECT_NE(error("deepspeed -H twice").find("twice:2"), std::string::npos);
  EXPECT_NE(error("deepspeed -H empty").find("names no host"), std::string::npos);
  EXPECT_NE(error("deepspeed -H hosts --include node7").find("'node7'"), std::string::npos);
  EXPECT_NE(error("deepspeed -H uneven").find("differ"), std::string::npos);
}

}  // namespace krigtune::deepspeed_probe_test
