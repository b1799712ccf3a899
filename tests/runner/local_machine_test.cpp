#include "runner/local_machine.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "trial/temporary_directory.h"

namespace krigtune::local_machine_test {

// A krigtune-bench that counts how often it is called.
class LocalMachine : public ::testing::Test {
 protected:
  LocalMachine() {
    workload::MeasuredMachine machine;
    machine.key = workload::machine_key(2, workload::Precision::kFp32);
    machine.wake_s = 1e-5;
    dir_.write("machine.json", workload::to_json(machine).dump());
    options_.bench = dir_.write_program("krigtune-bench", "echo \"$@\" >> " + (dir_ / "calls").string() + "\ncat " +
                                                              (dir_ / "machine.json").string() + "\n");
    options_.cache = dir_ / "cache";
    options_.say = [this](const std::string& line) { said_.push_back(line); };
  }
  workload::MeasuredMachine ask() { return runner::local_machine(2, workload::Precision::kFp32, options_, clock_); }
  std::string calls() const { return read_text(dir_ / "calls"); }

  TemporaryDirectory dir_;
  SystemClock clock_;
  runner::LocalMachineOptions options_;
  std::vector<std::string> said_;
};
constexpr const char* kCall = "--measure-machine 2 --precision fp32\n";

TEST_F(LocalMachine, IsMeasuredOnceAndSaysSo) {
  EXPECT_EQ(ask().wake_s, 1e-5);
  EXPECT_EQ(ask().wake_s, 1e-5);
  EXPECT_EQ(calls(), kCall);
  EXPECT_EQ(said_, std::vector<std::string>{"measuring this machine with 2 ranks, once, for about 5 s"});
  options_.fresh = true;
  ask();
  EXPECT_EQ(calls(), std::string(kCall) + kCall);
}

TEST_F(LocalMachine, IsMeasuredAnewWhereTheCacheIsNoUse) {
  ask();
  for (const auto& file : std::filesystem::directory_iterator(options_.cache)) write_atomically(file.path(), "{");
  EXPECT_EQ(ask().wake_s, 1e-5);
  options_.cache = dir_ / "machine.json" / "no directory";
  EXPECT_EQ(ask().wake_s, 1e-5);
  EXPECT_EQ(calls(), std::string(kCall) + kCall + kCall);
  EXPECT_NE(said_.back().find("set KRIGTUNE_CACHE"), std::string::npos) << said_.back();
}

TEST_F(LocalMachine, ThatCannotBeMeasuredIsALackOfTheEnvironment) {
  options_.bench = dir_.write_program("bad-bench", "echo broken >&2\nexit 4\n");
  try {
    ask();
    FAIL();
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("could not be measured: broken"), std::string::npos) << error.what();
  }
}

}  // namespace krigtune::local_machine_test
