#include "trial/program.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "trial/temporary_directory.h"

namespace krigtune::program_test {

class MissingScript : public testing::Test {
 protected:
  MissingScript() { std::ofstream(directory_ / "train.py") << "pass\n"; }
  void check(const std::vector<std::string>& argv) const { trial::refuse_missing_script(argv, directory_ / "."); }

  TemporaryDirectory directory_;
};

TEST_F(MissingScript, IsRefusedWhereThisMachineIsToRunIt) {
  for (const std::vector<std::string>& argv : {std::vector<std::string>{"python3.11", "-u", "trian.py"},
                                               {"torchrun", "--nproc_per_node", "2", "trian.py", "--x"},
                                               {"/usr/bin/bash", "trian.sh"},
                                               {"accelerate", "launch", "trian.py"}}) {
    EXPECT_THROW(check(argv), UserError) << argv.back();
  }
  try {
    check({"python", "trian.py"});
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("the script 'trian.py' is not there"), std::string::npos) << error.what();
  }
}

TEST_F(MissingScript, IsNotJudgedWhereItMayBeElsewhereOrIsNoScript) {
  for (const std::vector<std::string>& argv : {std::vector<std::string>{"python", "train.py", "other.py"},
                                               {"python", "-m", "trl.scripts.sft", "rewards.py"},
                                               {"docker", "run", "image", "trian.py"},
                                               {"bash", "-c", "cat trian.py"},
                                               {"python", "{dir}/trian.py"}}) {
    EXPECT_NO_THROW(check(argv)) << argv.back();
  }
}

}  // namespace krigtune::program_test
