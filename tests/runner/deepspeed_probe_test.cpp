// What is found out of a job's surroundings: the installed DeepSpeed, and where its ranks come from.
#include <gtest/gtest.h>

#include "krigtune/runner/deepspeed/ds_command.h"
#include "krigtune/runner/deepspeed/ds_probe.h"
#include "runner/event_clock.h"
#include "runner/temporary_directory.h"

namespace krigtune {
namespace {

using Words = std::vector<std::string>;

// Answers as an interpreter that was asked for a version; to any other program it is a failure.
constexpr const char* kPython = "[ \"$1\" = -c ] && echo 0.16.9+cu121\n";

class DeepSpeedProbe : public ::testing::Test {
 protected:
  std::optional<DsVersion> version_of_command(const Words& argv) const {
    return installed_version(read_ds_command(argv), dir_.path(), still_);
  }
  std::string path(const std::string& name) const { return (dir_ / name).string(); }

  TemporaryDirectory dir_;
  ManualClock still_;
};

TEST_F(DeepSpeedProbe, AsksTheInterpreterOfTheLauncher) {
  dir_.write_program("python3", kPython);
  dir_.write("deepspeed", "#!" + path("python3") + "\nimport deepspeed\n");
  std::filesystem::permissions(dir_ / "deepspeed", std::filesystem::perms::owner_all);
  const DsVersion expected{0, 16, 9};
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
  const DsCommand command = read_ds_command({path("python3"), "train.py", "--deepspeed_config", "ds.json"});
  EXPECT_EQ(installed_version(command, dir_.path(), clock), std::nullopt);
}

// The last one as distlib writes it (pip 23.0.1).
TEST(DeepSpeedInterpreter, IsNamedByTheFirstLines) {
  EXPECT_EQ(interpreter_in("#!/venv/bin/python\nimport sys\n"), Words({"/venv/bin/python"}));
  EXPECT_EQ(interpreter_in("#!/venv/bin/python3.11 -sP"), Words({"/venv/bin/python3.11", "-sP"}));
  EXPECT_EQ(interpreter_in("#! /usr/bin/env python3\r\n"), Words({"python3"}));
  EXPECT_EQ(interpreter_in("#!/usr/bin/env -S python3 -u\n"), Words({"python3", "-u"}));
  EXPECT_EQ(interpreter_in("#!/bin/sh\n'''exec' \"/a b/bin/python3\" \"$0\" \"$@\"\n' '''\n"),
            Words({"/a b/bin/python3"}));
  for (const char* other : {"", "#!", "#!/bin/sh\n", "#!/bin/sh\nexec python3\n", "#!/usr/bin/env\n",
                            "\x7f"
                            "ELF"}) {
    EXPECT_TRUE(interpreter_in(other).empty()) << other;
  }
}

}  // namespace
}  // namespace krigtune
