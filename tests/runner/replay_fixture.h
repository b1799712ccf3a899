#pragma once
#include <gtest/gtest.h>

#include "runner/replay.h"
#include "trial/temporary_directory.h"
#include "user_error.h"

namespace krigtune {

class Replay : public ::testing::Test {
 protected:
  ReplaySpec table(const std::string& text) const {
    ReplaySpec spec;
    spec.table = dir_.write("t.csv", text);
    spec.value.name = "v";
    return spec;
  }

  static ReplayTable open(const ReplaySpec& spec, bool maximize = true) {
    return {spec, {"a", "b"}, "speed", maximize};
  }

  // Over a in `values` and b = 1.
  static std::optional<double> optimum(const ReplayTable& table,
                                       std::vector<Value> values = {std::int64_t{1}, std::int64_t{2},
                                                                    std::int64_t{3}}) {
    return table.optimum(Space({{"a", std::move(values)}, {"b", {std::int64_t{1}}}}, {.well_known = false}));
  }

  static double value_of(const Outcome& outcome) { return std::get<Measured>(outcome).metrics.at("speed"); }

  static std::string error_of(const ReplaySpec& spec) {
    return user_error_of([&] { open(spec); });
  }

  static void expect_error(const ReplaySpec& spec, const std::vector<std::string>& parts) {
    const std::string error = error_of(spec);
    for (const std::string& part : parts) EXPECT_NE(error.find(part), std::string::npos) << part << " in: " << error;
  }

  TemporaryDirectory dir_;
};

}  // namespace krigtune
