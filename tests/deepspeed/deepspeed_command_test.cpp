#include <gtest/gtest.h>

#include "core/text.h"
#include "deepspeed/deepspeed_fixture.h"
#include "deepspeed/job/ds_command.h"
#include "trial/temporary_directory.h"

namespace krigtune::deepspeed_command_test {

// Splits at blanks; no word in these tests contains one.
std::vector<std::string> words(const std::string& line) {
  std::vector<std::string> result;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    if (end > at) result.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return result;
}

deepspeed::DsCommand command(const std::string& line) { return deepspeed::read_ds_command(words(line)); }

std::string error_of(const std::string& line) {
  return user_error_of([&] { command(line); });
}

using ArgMappings = std::vector<std::pair<std::string, std::string>>;

std::string changed(const std::string& line, const space::Configuration& values, const ArgMappings& arg_mappings = {}) {
  const deepspeed::DsCommand read = command(line);
  return join(deepspeed::rewritten(read, "/t/7/ds.json", values, deepspeed::flag_mappings(read, arg_mappings)), " ");
}

TEST(DsCommand, FindsTheConfigurationInEveryForm) {
  const std::pair<const char*, const char*> cases[] = {
      {"deepspeed train.py --deepspeed_config ds.json", "deepspeed train.py --deepspeed_config /t/7/ds.json"},
      {"deepspeed train.py --deepspeed_config=ds.json -x", "deepspeed train.py --deepspeed_config=/t/7/ds.json -x"},
      {"python train.py --deepspeed ds.json", "python train.py --deepspeed /t/7/ds.json"},
      {"python train.py --deepspeed=conf/ds.json y", "python train.py --deepspeed=/t/7/ds.json y"},
      {"deepspeed train.py --deepspeed --deepspeed_config ds.json",
       "deepspeed train.py --deepspeed --deepspeed_config /t/7/ds.json"},
      {"deepspeed train.py --deepspeed data --deepspeed_config ds.json",
       "deepspeed train.py --deepspeed data --deepspeed_config /t/7/ds.json"},
      {"deepspeed train.py --deepspeed_config ds.json --deepspeed",
       "deepspeed train.py --deepspeed_config /t/7/ds.json --deepspeed"},
      {"accelerate launch --use_deepspeed --deepspeed_config_file ds.json train.py --lr 1",
       "accelerate launch --use_deepspeed --deepspeed_config_file /t/7/ds.json train.py --lr 1"},
      {"accelerate launch --deepspeed_config_file=ds.json -m pkg.train",
       "accelerate launch --deepspeed_config_file=/t/7/ds.json -m pkg.train"},
      {"torchrun --nproc_per_node 2 -m pkg.train --deepspeed ds.json",
       "torchrun --nproc_per_node 2 -m pkg.train --deepspeed /t/7/ds.json"},
      {"./train --deepspeed ds.json", "./train --deepspeed /t/7/ds.json"},
      {"python train.py --deepspeed=ds.json --deepspeed=ds.json",
       "python train.py --deepspeed=/t/7/ds.json --deepspeed=/t/7/ds.json"}};
  for (const auto& [line, expected] : cases) EXPECT_EQ(changed(line, {}), expected);
}

// A flag counts more than the file, and trials can change it.
TEST(DsCommand, FindsTheConfigurationInTheFileOfAccelerate) {
  TemporaryDirectory dir;
  const auto file = [&](const std::string& name, const std::string& text) {
    dir.write(name, text);
    return (dir / name).string();
  };
  const std::string yaml = file("z3.yaml",
                                "deepspeed_config:\n  deepspeed_config_file: 'conf/ds.json'  # ours\n"
                                "distributed_type: DEEPSPEED\nnum_processes: 8\n");
  const std::string json = file("z3.json", R"({
    "deepspeed_config": {
      "deepspeed_config_file": "conf/ds.json",
      "zero3_init_flag": true
    }})");
  for (const std::string& config : {yaml, json}) {
    for (const std::string launcher : {"accelerate launch ", "python -m accelerate.commands.launch "}) {
      const deepspeed::DsCommand read = command(launcher + "--config_file " + config + " sft.py --lr 1");
      EXPECT_EQ(read.config, "conf/ds.json");
      EXPECT_TRUE(read.is_accelerates);
      EXPECT_EQ(changed(launcher + "--config_file=" + config + " sft.py --lr 1", {}),
                launcher + "--deepspeed_config_file /t/7/ds.json --config_file=" + config + " sft.py --lr 1");
    }
  }
  EXPECT_EQ(command("accelerate launch --deepspeed_config_file b.json --config_file " + yaml + " t.py").config,
            "b.json");
  const std::string fsdp = file("fsdp.yaml", "distributed_type: FSDP\n");
  for (const std::string& none : {fsdp, std::string("/nowhere.yaml")}) {
    EXPECT_NE(error_of("accelerate launch --config_file " + none + " t.py").find("names no DeepSpeed configuration"),
              std::string::npos);
  }
}

// DeepSpeed-Chat's way.
TEST(DsCommand, SaysSoOfAScriptThatMakesItsConfigurationFromFlags) {
  const std::string error = error_of("deepspeed --num_gpus 8 train.py --deepspeed --zero_stage 3 --output_dir o");
  EXPECT_NE(error.find("makes its DeepSpeed configuration from flags (--zero_stage)"), std::string::npos) << error;
  EXPECT_NE(error.find("--vary 'zero_stage=--zero_stage:2,3'"), std::string::npos) << error;
}

TEST(DsCommand, ChangesNothingElseOfLauncherAndScript) {
  const std::vector<std::string> argv = {"deepspeed",
                                         "--hostfile",
                                         "/etc/hosts.txt",
                                         "--include",
                                         "a:0,1@b:2",
                                         "--launcher",
                                         "slurm",
                                         "--launcher_args",
                                         "-p gpu -x",
                                         "--no_local_rank",
                                         "--master_port=29600",
                                         "train.py",
                                         "--name",
                                         "it's {a} $PATH",
                                         "--deepspeed_config",
                                         "ds.json",
                                         "",
                                         "--empty="};
  const deepspeed::DsCommand read = deepspeed::read_ds_command(argv);
  std::vector<std::string> expected = argv;
  expected[15] = "/t/ds.json";
  EXPECT_EQ(deepspeed::rewritten(read, "/t/ds.json", {{"micro_batch", 4_n}}, deepspeed::flag_mappings(read, {})),
            expected);
  EXPECT_EQ(read.script, 11U);
}

TEST(DsCommand, IsRefusedInOneLineWhereNoTrialCouldBeMadeOfIt) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "there is no command"},
      {"deepspeed train.py", "names no DeepSpeed configuration"},
      {"deepspeed train.py --deepspeed", "names no DeepSpeed configuration"},
      {"deepspeed train.py --deepspeed --lr 1", "names no DeepSpeed configuration"},
      {"python train.py --deepspeed a.json --deepspeed_config b.json", "two DeepSpeed configurations"},
      {"python train.py --deepspeed {\"fp16\":{}}", "the configuration itself"},
      {"python train.py --deepspeed eyJ0cmFpbl9iYXRjaF9zaXplIjogOCwgImZwMTYiOiB7fX0=", "itself"},
      {"python train.py --deepspeed=", "itself"},
      {"deepspeed --autotuning tune --num_gpus 2 train.py --deepspeed ds.json", "--autotuning"}};
  for (const auto& [line, expected] : cases) {
    const std::string error = error_of(line);
    EXPECT_NE(error.find(std::string(expected) == "the configuration itself" ? "itself" : expected), std::string::npos)
        << line << " -> " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

struct Launched {
  const char* line;
  std::vector<jobs::Launcher> launchers;
  std::optional<std::int64_t> ranks;
  std::optional<std::int64_t> nodes;
};

TEST(DsCommand, CountsTheRanksThatItSaysAndNoOthers) {
  using enum jobs::Launcher;
  const std::vector<Launched> cases = {
      {"deepspeed --num_gpus 4 train.py", {kDeepSpeed}, 4, 1},
      {"deepspeed --num_gpus=4 --num_nodes=2 --hostfile h train.py", {kDeepSpeed}, 8, 2},
      {"deepspeed --num_gpus 4 --hostfile h train.py", {kDeepSpeed}, {}, {}},
      {"deepspeed --include localhost:0,2,3 train.py", {kDeepSpeed}, 3, 1},
      {"deepspeed --include a:0,1@b:5 train.py", {kDeepSpeed}, 3, 2},
      {"deepspeed -i a:0,1@b train.py", {kDeepSpeed}, {}, 2},
      {"deepspeed --exclude a:0 train.py", {kDeepSpeed}, {}, {}},
      {"deepspeed train.py --num_gpus 7", {kDeepSpeed}, {}, 1},
      {"/opt/bin/torchrun --nproc-per-node=8 --nnodes 4 train.py", {kTorchrun}, 32, 4},
      {"torchrun train.py", {kTorchrun}, 1, 1},
      {"torchrun --nproc_per_node gpu train.py", {kTorchrun}, {}, 1},
      {"torchrun --nnodes 1:4 --nproc_per_node 2 train.py", {kTorchrun}, {}, {}},
      {"python3.11 -m torch.distributed.run --nproc_per_node 2 train.py", {kTorchrun}, 2, 1},
      {"accelerate launch --num_processes 6 --num_machines 2 train.py", {kAccelerate}, 6, 2},
      {"accelerate launch --config_file a.yaml train.py", {kAccelerate}, {}, {}},
      {"srun -n 16 python -u train.py", {kSrun, kPython}, 16, {}},
      {"srun -N2 --ntasks-per-node=8 -m block python train.py", {kSrun, kPython}, 16, 2},
      {"srun -N 2 torchrun --nnodes 2 --nproc_per_node 8 train.py", {kSrun, kTorchrun}, 16, 2},
      {"srun --exclusive python train.py", {kSrun, kPython}, {}, {}},
      {"mpirun -np 4 -x PATH python train.py", {kMpirun, kPython}, 4, {}},
      {"python train.py", {kPython}, 1, 1},
      {"conda run -n deepspeed python train.py", {kPython}, 1, 1},
      {"litgpt finetune_lora m --devices 2 --out_dir out/litgpt", {kLitgpt}, 2, 1},
      {"trl sft --output_dir runs/deepspeed --run_name torchrun", {}, {}, {}},
      {"env A=b deepspeed --num_gpus 2 train.py", {kDeepSpeed}, 2, 1},
      {"./train.sh", {}, {}, {}}};
  for (const Launched& one : cases) {
    const deepspeed::DsCommand read = command(std::string(one.line) + " --deepspeed ds.json");
    std::vector<jobs::Launcher> launchers;
    for (const jobs::Stage& stage : read.stages) launchers.push_back(stage.launcher);
    EXPECT_EQ(launchers, one.launchers) << one.line;
    EXPECT_EQ(read.ranks, one.ranks) << one.line;
    EXPECT_EQ(read.nodes, one.nodes) << one.line;
  }
}

TEST(DsFlags, OfATrainerScriptAgreeWithTheFile) {
  const space::Configuration values = {{"zero_stage", 2_n}, {"micro_batch", 8_n}, {"gradient_accumulation_steps", 2_n}};
  EXPECT_EQ(changed("torchrun run_clm.py --deepspeed ds.json --per_device_train_batch_size 2 --bf16", values),
            "torchrun run_clm.py --deepspeed /t/7/ds.json --per_device_train_batch_size 8 --bf16 "
            "--gradient_accumulation_steps 2");
  EXPECT_EQ(changed("torchrun run_clm.py --gradient-accumulation-steps=4 --deepspeed=ds.json --output_dir o "
                    "--per_device_train_batch_size=1",
                    values),
            "torchrun run_clm.py --gradient-accumulation-steps=2 --deepspeed=/t/7/ds.json --output_dir o "
            "--per_device_train_batch_size=8");
}

TEST(DsFlags, AreRewrittenButNotAddedWhereTheScriptIsNotKnownToTakeThem) {
  const space::Configuration values = {{"micro_batch", 8_n}, {"gradient_accumulation_steps", 2_n}};
  EXPECT_EQ(
      changed("deepspeed train.py --deepspeed --deepspeed_config ds.json --per_device_train_batch_size 2", values),
      "deepspeed train.py --deepspeed --deepspeed_config /t/7/ds.json --per_device_train_batch_size 8");
  EXPECT_EQ(changed("deepspeed train.py --deepspeed ds.json --epochs 2", values),
            "deepspeed train.py --deepspeed /t/7/ds.json --epochs 2");
  // An option of the launcher with the same name does not belong to the script.
  EXPECT_EQ(changed("accelerate launch --gradient_accumulation_steps 4 --deepspeed_config_file d.json t.py", values),
            "accelerate launch --gradient_accumulation_steps 4 --deepspeed_config_file /t/7/ds.json t.py");
}

TEST(DsFlags, OfTheUsersArgMappingsAreAddedWhereAbsent) {
  const space::Configuration values = {
      {"micro_batch", 8_n}, {"zero_stage", 3_n}, {"overlap_comm", true}, {"zero_optimization.sub_group_size", 1000_n}};
  const ArgMappings mappings = {{"train_micro_batch_size_per_gpu ", " --bs"},
                                {"zero_optimization.stage", "--zero"},
                                {"overlap_comm", "--overlap"},
                                {"sub_group_size", "--tile"}};
  EXPECT_EQ(changed("python t.py --deepspeed ds.json --bs 1 --bs 2 --zero=1", values, mappings),
            "python t.py --deepspeed /t/7/ds.json --bs 8 --bs 8 --zero=3 --overlap True --tile 1000");
  const deepspeed::DsCommand read = command("python t.py --deepspeed ds.json");
  EXPECT_NE(user_error_of([&] {
              deepspeed::flag_mappings(read, {{"stage", "zero"}});
            }).find("'zero' is not a flag"),
            std::string::npos);
  EXPECT_NE(user_error_of([&] {
              deepspeed::flag_mappings(read, {{"stage", "--a"}, {"zero_stage", "--b"}});
            }).find("twice"),
            std::string::npos);
}

TEST(DsFlags, SwitchCheckpointingByBeingThereOrNot) {
  const space::Configuration on = {{"activation_checkpointing", "full"}};
  const space::Configuration off = {{"activation_checkpointing", "none"}};
  const std::string trainer = "python t.py --deepspeed ds.json --output_dir o";
  const std::string written = "python t.py --deepspeed /t/7/ds.json --output_dir o";
  EXPECT_EQ(changed(trainer, on), written + " --gradient_checkpointing");
  EXPECT_EQ(changed(trainer, off), written);
  for (const char* flag : {" --gradient_checkpointing", " --gradient_checkpointing True",
                           " --gradient_checkpointing=true", " --gradient-checkpointing"}) {
    EXPECT_EQ(changed(trainer + flag + " --bf16", off), written + " --bf16") << flag;
    EXPECT_EQ(changed(trainer + flag + " --bf16", on), written + flag + " --bf16");
  }
  EXPECT_EQ(changed(trainer + " --gradient_checkpointing True --gradient_checkpointing x y", off), written + " x y");
  EXPECT_EQ(changed(trainer + " --gradient_checkpointing False", on), written + " --gradient_checkpointing True");
  EXPECT_EQ(changed(trainer + " --gradient_checkpointing=0", on), written + " --gradient_checkpointing=True");
  EXPECT_NE(user_error_of([&] {
              changed(trainer, {{"activation_checkpointing", "selective"}});
            }).find("selective"),
            std::string::npos);
}

TEST(DsFlags, SayTheUsersOwnConfiguration) {
  const auto said = [](const std::string& line) {
    const deepspeed::DsCommand read = command(line);
    return deepspeed::values_of_flags(read, deepspeed::flag_mappings(read, {{"learning_rate", "--lr"}}));
  };
  EXPECT_EQ(
      said("python t.py --deepspeed d.json --per_device_train_batch_size 2 --lr=1e-3 --lr 2e-3 --bf16"),
      (space::Configuration{{"learning_rate", 2e-3}, {"micro_batch", 2_n}, {"activation_checkpointing", "none"}}));
  EXPECT_EQ(said("python t.py --deepspeed d.json --gradient_checkpointing"),
            (space::Configuration{{"activation_checkpointing", "full"}}));
  EXPECT_EQ(said("python t.py --deepspeed d.json"), space::Configuration());
  EXPECT_NE(user_error_of([&] { said("python t.py --deepspeed d.json --lr --bf16"); }).find("--lr has no value"),
            std::string::npos);
}

TEST(DeepSpeedCommand, IsStartedAtAPlace) {
  const auto placed = [](const std::vector<std::string>& argv, const std::vector<int>& gpus) {
    const deepspeed::DsCommand read = deepspeed::read_ds_command(argv);
    return join(deepspeed::started_at(read.argv, read, {.slot = 1, .gpus = gpus, .port = 29555}), " ");
  };
  const std::vector<std::string> script = {"train.py", "--deepspeed_config", "ds.json", "--num_gpus", "9"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), script.begin(), script.end());
    return words;
  };
  const std::string rest = " train.py --deepspeed_config ds.json --num_gpus 9";  // the script's own option stays
  EXPECT_EQ(placed(with({"deepspeed", "--num_gpus", "2", "--master_port=29500"}), {2, 3}),
            "deepspeed --include localhost:2,3 --master_port 29555" + rest);
  EXPECT_EQ(placed(with({"deepspeed", "--include", "localhost:0,1", "--force_multi"}), {4}),
            "deepspeed --include localhost:4 --master_port 29555 --force_multi" + rest);
  EXPECT_EQ(placed(with({"deepspeed", "--num_gpus", "2"}), {}), "deepspeed --master_port 29555 --num_gpus 2" + rest);
  EXPECT_EQ(placed(with({"torchrun", "--nproc_per_node", "2", "--master-port", "1"}), {2}),
            "torchrun --master_port 29555 --nproc_per_node 2" + rest);
  EXPECT_EQ(placed(with({"torchrun", "--standalone"}), {2}), "torchrun --standalone" + rest);
  EXPECT_EQ(placed(with({"accelerate", "launch"}), {}), "accelerate launch --main_process_port 29555" + rest);
  EXPECT_EQ(placed(with({"python"}), {2}), "python" + rest);
  const deepspeed::DsCommand read = deepspeed::read_ds_command(with({"deepspeed"}));
  EXPECT_EQ(deepspeed::started_at(read.argv, read, {}), read.argv);
}

}  // namespace krigtune::deepspeed_command_test
