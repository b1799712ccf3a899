#include "runner/job_files.h"

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json.h"
#include "runner/job_command.h"
#include "runner/runner.h"
#include "space/spaces.h"
#include "trial/temporary_directory.h"
#include "user_error.h"

namespace krigtune::job_files_test {

using Files = std::vector<std::pair<std::string, std::string>>;
using Words = std::vector<std::string>;

constexpr const char* kSpace = R"({"micro_batch": [1, 2, 4], "recompute": ["none", "full"], "overlap": [true, false]})";

class JobFilesTest : public testing::Test {
 protected:
  JobFilesTest() {
    directory_.write("train.template.yaml", "mbs: {micro_batch}\nmap: {a: 1}\nout: \"{dir}/out\"\n");
    std::filesystem::create_directory(directory_ / "conf");
    directory_.write("conf/train.yaml", "training:\r\n  batch: 8  # a rank\r\n  mode: none\r\n");
    directory_.write("job.toml", "[parallel]\ntp = 1 # ways\n");
    directory_.write("ds.json", "{\"micro\": \"auto\"}\n");
    directory_.write("broken.yaml", "a: [1\n");
    directory_.write("notes.txt", "a = 1\n");
  }

  runner::CommandSpec spec(const std::string& keys) const {
    const Json json = parse_json(R"({"kind": "command", )" + keys + "}", "s.json");
    return std::get<runner::CommandSpec>(runner::read_runner(json, "s.json", "/runner", directory_.path()));
  }
  static space::Space space(const std::string& json = kSpace) {
    return space_from(json, {.ranks = 4, .well_known = false});
  }

  static space::Configuration configuration() {
    return {{"micro_batch", std::int64_t{2}}, {"recompute", std::string("full")}, {"overlap", true}};
  }
  runner::JobCommand::Start start(const std::string& keys) const {
    return runner::JobCommand(spec(keys), space())
        .start(configuration(), {.dir = "/t", .config = "/t/config.json", .trial = 7, .port = 4242});
  }

  // Returns the error for a session's block that is read and checked against the space.
  std::string error_of(const std::string& keys, const std::string& space_json = kSpace,
                       const std::optional<space::Configuration>& baseline = std::nullopt) const {
    const Json json = parse_json(R"({"kind": "command", )" + keys + "}", "s.json");
    return user_error_of([&] {
      const runner::RunnerSpec read = runner::read_runner(json, "s.json", "/runner", directory_.path());
      runner::check_runner(read, space(space_json), baseline, JsonObject(json, "s.json", "/runner"));
    });
  }

  const TemporaryDirectory directory_;
};

TEST_F(JobFilesTest, FillsWordsAndEnvironment) {
  const auto started = start(R"("argv": ["torchrun", "--nproc_per_node={ranks}", "--master_port", "{port}", "train.py",
      "{micro_batch * 1024:.0f}", "{overlap:d}"], "env": {"MBS": "{micro_batch}", "N": 4, "WHERE": "{dir}/x"})");
  EXPECT_EQ(started.argv, (Words{"torchrun", "--nproc_per_node=4", "--master_port", "4242", "train.py", "2048", "1"}));
  EXPECT_EQ(started.environment, (Files{{"MBS", "2"}, {"N", "4"}, {"WHERE", "/t/x"}}));
  EXPECT_TRUE(started.files.empty());
}

TEST_F(JobFilesTest, PutsTheWordsOfAValueWhereFlagsStands) {
  const std::string flags = R"("flags": {"recompute": {"none": [], "full": ["--recompute", "full-{micro_batch}"]},
                                         "overlap": {"true": ["--overlap"], "false": []}})";
  EXPECT_EQ(start(R"("argv": ["t", "{flags}", "-m", "{micro_batch}"], )" + flags).argv,
            (Words{"t", "--recompute", "full-2", "--overlap", "-m", "2"}));
  EXPECT_EQ(start(R"("argv": ["t", "-m"], )" + flags).argv, (Words{"t", "-m", "--recompute", "full-2", "--overlap"}));
  EXPECT_EQ(start(R"("argv": ["t", "{flags}", "x"])").argv, (Words{"t", "x"}));
  EXPECT_EQ(start(R"("argv": ["t"], "flags": {"micro_batch": {"1": ["a"], "2.0": ["b"], "4": ["c"]}})").argv,
            (Words{"t", "b"}));
}

TEST_F(JobFilesTest, AListOfFlagsIsForEveryValueThatExists) {
  const runner::JobCommand command(spec(R"("argv": ["t"], "flags": {"depth": ["--depth", "{depth}"]})"),
                                   space(R"({"a": [1, 2], "depth": {"values": [3, 5], "when": "a == 2"}})"));
  EXPECT_EQ(command.start({{"a", std::int64_t{2}}, {"depth", std::int64_t{5}}}, {}).argv, (Words{"t", "--depth", "5"}));
  EXPECT_EQ(command.start({{"a", std::int64_t{1}}}, {}).argv, (Words{"t"}));
}

TEST_F(JobFilesTest, WritesTemplatesAndChangedFiles) {
  const auto started = start(R"("argv": ["t", "{dir}/train.yaml"], "templates": {"made.yaml": "train.template.yaml"},
      "set": {"conf/train.yaml": {"training.batch": "{micro_batch}", "training.mode": "{recompute}",
                                  "+checkpoint.enable": "false"},
              "job.toml": {"parallel.tp": "{ranks/2}", "+parallel.name": "mb{micro_batch}"},
              "ds.json": {"micro": "{micro_batch}", "+steps": 20, "+fast": true}})");
  EXPECT_EQ(
      started.files,
      (Files{{"made.yaml", "mbs: 2\nmap: {a: 1}\nout: \"/t/out\"\n"},
             {"train.yaml", "training:\r\n  batch: 2  # a rank\r\n  mode: full\r\ncheckpoint:\r\n  enable: false\r\n"},
             {"job.toml", "[parallel]\ntp = 2 # ways\nname = \"mb2\"\n"},
             {"ds.json", "{\"micro\": 2,\"steps\": 20,\"fast\": true}\n"}}));
  const TemporaryDirectory trial;
  runner::write_job_files(started, trial.path());
  EXPECT_EQ(read_text(trial / "made.yaml"), started.files.front().second);
}

TEST_F(JobFilesTest, ATextParameterIsATextInFilesAlso) {
  directory_.write("t.yaml", "a: x\n");
  const runner::JobCommand command(spec(R"("argv": ["t"], "set": {"t.yaml": {"a": "{mode}"}})"),
                                   space(R"({"mode": ["on", "8", "plain"]})"));
  const auto file = [&](const char* mode) {
    return command.start({{"mode", std::string(mode)}}, {}).files.at(0).second;
  };
  EXPECT_EQ(file("on"), "a: \"on\"\n");
  EXPECT_EQ(file("8"), "a: \"8\"\n");
  EXPECT_EQ(file("plain"), "a: plain\n");
}

// A run continues with the files as they were when it began, even if they change.
TEST_F(JobFilesTest, AreReadAgainFromWhatIsWritten) {
  const std::string keys =
      R"("argv": ["t"], "flags": {"recompute": {"none": [], "full": ["x"]}, "overlap": ["{overlap}"]},
      "templates": {"made.yaml": "train.template.yaml"},
      "set": {"conf/train.yaml": {"training.batch": "{micro_batch}"}})";
  const Json once = runner::to_json(spec(keys));
  directory_.write("conf/train.yaml", "other: 1\n");
  std::filesystem::remove(directory_ / "train.template.yaml");
  const runner::RunnerSpec again = runner::read_runner(once, "session.json", "/runner", "/");
  EXPECT_EQ(runner::to_json(again), once);
  const auto started = runner::JobCommand(std::get<runner::CommandSpec>(again), space()).start(configuration(), {});
  EXPECT_EQ(started.argv, (Words{"t", "x", "true"}));
  EXPECT_EQ(started.files.at(1), (std::pair<std::string, std::string>{
                                     "train.yaml", "training:\r\n  batch: 2  # a rank\r\n  mode: none\r\n"}));
}

TEST_F(JobFilesTest, MistakesNameTheirPlaceAndTheMend) {
  const std::string all = R"("argv": ["t", "{micro_batch}", "{recompute}", "{overlap}")";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("argv": ["t", "{micro_batc}"])",
       "/runner/argv/1: '{micro_batc}' is not a placeholder; did you mean 'micro_batch'?"},
      {R"("argv": ["t", "{config}"], "env": {"A": "{confg}"})", "/runner/env/A: '{confg}' is not a placeholder"},
      {R"("argv": ["t", "{config}", "{recompute:.0f}"])",
       "/runner/argv/2: '{recompute:.0f}': '.0f' is not a format of a text"},
      {R"("argv": ["t", "--x={flags}"])", "/runner/argv/1: '{flags}' is a word of its own"},
      {R"("argv": ["t", "{flags}", "{flags}"])", "/runner/argv/2: '{flags}' is there twice"},
      {R"("argv": ["{flags}"])", "/runner/argv/0: '{flags}' is not a program"},
      {R"("argv": ["t", "{micro_batch}", "{recompute}"])",
       "/runner/argv: 'overlap' appears nowhere, so every trial would measure the same; write {overlap} in argv, env, "
       "flags, templates or set, or {config} in argv"},
      {R"("argv": ["t", "{micro_batch / 3:d}", "{config}"])",
       "/runner/argv/1: '{micro_batch / 3:d}' is 0.6666666666666666, which 'd' cannot write"},
      {all + R"(], "flags": {"recomptue": {"none": []}})",
       "/runner/flags/recomptue: 'recomptue' is not a parameter of the space; did you mean 'recompute'?"},
      {all + R"(], "flags": {"recompute": {"none": []}})",
       "/runner/flags/recompute: has no words for the value full; add"},
      {all + R"(], "flags": {"recompute": "x"})", "/runner/flags/recompute: an object was expected"},
      {all + R"(], "flags": {"recompute": {"none": "x"}})",
       "/runner/flags/recompute/none: a list of words was expected"},
      {all + R"(], "flags": ["x"])", "/runner/flags: an object was expected"},
      {all + R"(], "templates": {"a.yaml": "absent.yaml"})", "/runner/templates/a.yaml: cannot read '"},
      {all + R"(], "templates": {"a.yaml": 3})", "/runner/templates/a.yaml: the name of a file was expected"},
      {all + R"(], "templates": {"../a.yaml": "job.toml"})",
       "/runner/templates/..~1a.yaml: is not the name of a file in the trial's"},
      {all + R"(], "templates": {"/a.yaml": "job.toml"})", "/runner/templates/~1a.yaml: is not the name"},
      {all + R"(], "templates": {"config.json": "job.toml"})",
       "/runner/templates/config.json: 'config.json' is a file of krigtune's own"},
      {all + R"(], "templates": {"job.toml": "job.toml"}, "set": {"job.toml": {"parallel.tp": 1}})",
       "/runner/set/job.toml: 'job.toml' is written twice"},
      {all + R"(], "set": {"notes.txt": {"a": 1}})",
       "/runner/set/notes.txt: is not a YAML, TOML or JSON file by its name"},
      {all + R"(], "set": {"absent.json": {"a": 1}})", "/runner/set/absent.json: cannot read '"},
      {all + R"(], "set": {"conf/train.yaml": {"training.bach": 1}})", "/runner/set/conf~1train.yaml/training.bach: "},
      {all + R"(], "set": {"conf/train.yaml": {"training.batch": "{micro_batc}"}})",
       "/runner/set/conf~1train.yaml/training.batch: '{micro_batc}' is not a placeholder"},
      {all + R"(], "set": {"conf/train.yaml": {"training..batch": 1}})",
       "/runner/set/conf~1train.yaml/training..batch: is not a key"},
      {all + R"(], "set": {"conf/train.yaml": {"": 1}})", "/runner/set/conf~1train.yaml/: is not a key"},
      {all + R"(], "set": {"conf/train.yaml": {"training.batch": [1]}})",
       "/runner/set/conf~1train.yaml/training.batch: a text, a number, true or false was expected"},
      {all + R"(], "set": {"broken.yaml": {"a": 1}})", "/runner/set/broken.yaml/a: "},
      {all + R"(], "set": {"broken.yaml": 1})", "/runner/set/broken.yaml: an object was expected"},
  };
  for (const auto& [keys, part] : cases) {
    const std::string error = error_of(keys);
    EXPECT_EQ(error.rfind("s.json: " + part, 0), 0U) << keys << "\n  gives " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
  directory_.write("bad.yaml", "a: 1\nb: {micro_batc}\n");
  EXPECT_NE(error_of(all + R"(], "templates": {"t.yaml": "bad.yaml"})")
                .find("bad.yaml: line 2: '{micro_batc}' is not a placeholder"),
            std::string::npos);
  EXPECT_NE(error_of(all + R"(], "set": {"broken.yaml": {"a": 1}})").find("broken.yaml: invalid YAML at line 2"),
            std::string::npos);
  directory_.write("binary.yaml", "a: \xff\xfe\n");
  EXPECT_NE(error_of(all + R"(], "templates": {"t.yaml": "binary.yaml"})").find("is not UTF-8 text"),
            std::string::npos);
}

TEST_F(JobFilesTest, WhatIsUsedAnywhereIsUsed) {
  directory_.write("t.yaml", "a: {overlap}\n");
  for (const char* keys :
       {R"("argv": ["t", "{config}"])", R"("argv": ["t", "{dir}/config.json"])",
        R"("argv": ["t"], "env": {"C": "{config}"})",
        R"("argv": ["t", "{micro_batch * 2}", "{recompute == 'none'}"], "env": {"O": "{overlap}"})",
        R"("argv": ["t", "{micro_batch}", "{recompute}"], "templates": {"t.yaml": "t.yaml"})",
        R"("argv": ["t", "{micro_batch}"], "flags": {"recompute": {"none": [], "full": []}, "overlap": ["x"]})",
        R"("argv": ["t", "{micro_batch}", "{recompute}"], "set": {"ds.json": {"micro": "{overlap}"}})"}) {
    EXPECT_EQ(error_of(keys), "no error") << keys;
  }
  EXPECT_NE(
      error_of(R"("argv": ["t", "{dir}"])", R"({"dir": [1, 2]})").find("call it otherwise: {dir} is the trial's own"),
      std::string::npos);
}

TEST_F(JobFilesTest, TheBaselineMustHaveACommand) {
  const std::string keys = R"("argv": ["t"], "flags": {"a": {"1": [], "2": ["x"]}})";
  EXPECT_EQ(error_of(keys, R"({"a": [1, 2]})", space::Configuration{{"a", std::int64_t{2}}}), "no error");
  EXPECT_EQ(error_of(keys, R"({"a": [1, 2]})", space::Configuration{{"a", std::int64_t{3}}}),
            "s.json: /runner/flags/a: has no words for the value 3; add \"3\": [...], or [] for none");
}

}  // namespace krigtune::job_files_test
