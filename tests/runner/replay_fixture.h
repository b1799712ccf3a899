#pragma once
#include <gtest/gtest.h>

#include "runner/replay.h"
#include "trial/temporary_directory.h"
#include "user_error.h"

namespace krigtune {

class Replay : public ::testing::Test {
 protected:
  runner::ReplaySpec table(const std::string& text) const {
    runner::ReplaySpec spec;
    spec.table = dir_.write("t.csv", text);
    spec.value.name = "v";
    return spec;
  }

  static runner::ReplayTable open(const runner::ReplaySpec& spec, bool maximize = true) {
    return {spec, {"a", "b"}, "speed", maximize};
  }

  // Over a in `values`, with b = 1.
  static std::optional<double> optimum(const runner::ReplayTable& table,
                                       std::vector<space::Value> values = {std::int64_t{1}, std::int64_t{2},
                                                                           std::int64_t{3}}) {
    return table.optimum(space::Space({{"a", std::move(values)}, {"b", {std::int64_t{1}}}}, {.well_known = false}));
  }

  static double value_of(const trial::Outcome& outcome) {
    return std::get<trial::Measured>(outcome).metrics.at("speed");
  }

  static std::string error_of(const runner::ReplaySpec& spec) {
    return user_error_of([&] { open(spec); });
  }

  static void expect_error(const runner::ReplaySpec& spec, const std::vector<std::string>& parts) {
    const std::string error = error_of(spec);
    for (const std::string& part : parts) EXPECT_NE(error.find(part), std::string::npos) << part << " in: " << error;
  }

  TemporaryDirectory dir_;
};

}  // namespace krigtune
