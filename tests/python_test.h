#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/files.h"
#include "trial/process.h"
#include "trial/temporary_directory.h"

namespace krigtune {

/// Tests that need a Python with some module; otherwise they are skipped. KRIGTUNE_TEST_PYTHON names a Python that must
/// have it; the default is Debian's.
class PythonTest : public ::testing::Test {
 protected:
  /// `fix`: how to get the module.
  PythonTest(std::string module, std::string fix) : module_(std::move(module)), mend_(std::move(fix)) {}

  void SetUp() override {
    if (python({"-c", "import " + module_}) == 0) return;
    ASSERT_EQ(std::getenv("KRIGTUNE_TEST_PYTHON"), nullptr) << program() << " has no " << module_;
    GTEST_SKIP() << program() << " has no " << module_ << ": " << mend_;
  }

  static std::string program() {
    const char* given = std::getenv("KRIGTUNE_TEST_PYTHON");
    return given != nullptr ? given : "/usr/bin/python3";
  }

  /// Returns the exit code, and adds the output to that of the test.
  int python(const std::vector<std::string>& arguments) const {
    trial::ProcessSpec spec;
    spec.argv = {program()};
    spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
    spec.stdout_file = directory_ / "out";
    spec.stderr_file = directory_ / "err";
    const int code = trial::run_process(spec, SystemClock()).exit_code;
    if (code != 0 && arguments.size() > 2) ADD_FAILURE() << read_text(spec.stderr_file);
    return code;
  }

  TemporaryDirectory directory_;

 private:
  std::string module_;
  std::string mend_;
};

}  // namespace krigtune
