// The Python that a command runs in, from its words and the first lines of its program.
#include "jobs/installed/interpreter.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "trial/temporary_directory.h"
#include "words.h"

namespace krigtune::jobs::interpreter_test {
namespace {

using Words = std::vector<std::string>;

// The last one is in the form that distlib writes (pip 23.0.1).
TEST(Interpreter, IsNamedByTheFirstLines) {
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

class PythonOfCommand : public testing::Test {
 protected:
  PythonOfCommand() {
    std::filesystem::create_directories(directory_ / "bin");
    directory_.write_program("bin/python3", "exit 0\n");
    for (const char* name : {"torchrun", "llamafactory-cli", "conda"}) write_script(name);
  }

  void write_script(const std::string& name) const {
    directory_.write("bin/" + name, "#!" + (directory_ / "bin/python3").string() + "\nimport sys\n");
    std::filesystem::permissions(directory_ / "bin" / name, std::filesystem::perms::owner_all);
  }

  // `script`: the last word of a program that a recipe knows.
  std::filesystem::path python(const std::string& line, std::size_t script = 0) const {
    Command command = read_command(words_of(line));
    if (script > 0) command.script = script;
    return python_of(command, directory_.path(), {{"PATH", (directory_ / "bin").string()}});
  }

  TemporaryDirectory directory_;
};

TEST_F(PythonOfCommand, IsThatOfTheLauncherOrOfTheProgram) {
  const std::filesystem::path expected = directory_ / "bin/python3";
  EXPECT_EQ(python("torchrun --nproc_per_node 8 train.py"), expected);
  EXPECT_EQ(python("srun -n 8 torchrun train.py"), expected);
  EXPECT_EQ(python("env A=1 python3 -m torch.distributed.run train.py"), expected);
  EXPECT_EQ(python("bin/python3 train.py"), expected);
  EXPECT_EQ(python("llamafactory-cli train x.yaml", 1), expected);
  EXPECT_EQ(python("env FORCE_TORCHRUN=1 llamafactory-cli train x.yaml", 3), expected);
}

TEST_F(PythonOfCommand, OtherPackagesThanThoseOnThePathAreNotKnown) {
  EXPECT_EQ(python("conda run -n train torchrun train.py"), "");
  EXPECT_EQ(python("conda run -n train llamafactory-cli train x.yaml", 5), "");
  EXPECT_EQ(python("srun --container-image=nvcr.io/pytorch torchrun train.py"), "");
  EXPECT_EQ(python("srun apptainer exec image.sif torchrun train.py"), "");
  EXPECT_EQ(python("./run.sh train.py"), "");
  EXPECT_EQ(python("accelerate launch train.py"), "");  // it is not there
}

}  // namespace
}  // namespace krigtune::jobs::interpreter_test
