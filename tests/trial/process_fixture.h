#pragma once
#include <gtest/gtest.h>

#include "core/files.h"
#include "trial/event_clock.h"
#include "trial/process.h"
#include "trial/temporary_directory.h"

namespace krigtune {

class Process : public ::testing::Test {
 protected:
  trial::ProcessSpec shell(const std::string& script) const {
    return program({"/bin/sh", "-c", script, "sh", dir_.path()});
  }

  trial::ProcessSpec program(std::vector<std::string> argv) const {
    trial::ProcessSpec spec;
    spec.argv = std::move(argv);
    spec.stdout_file = dir_ / "out";
    spec.stderr_file = dir_ / "err";
    return spec;
  }

  TemporaryDirectory dir_;
  ManualClock still_;
};

}  // namespace krigtune
