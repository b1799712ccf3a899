#include <gtest/gtest.h>

#include "krigtune/core/json.h"
#include "krigtune/runner/runner.h"
#include "user_error.h"

namespace krigtune {
namespace {

RunnerSpec read(const std::string& text) {
  return read_runner(parse_json(text, "s.json"), "s.json", "/runner", "/base");
}

std::string error_of(const std::string& text) {
  return user_error_of([&] { read(text); });
}

TEST(RunnerSpec, BenchIsTheDefaultWithTheDocumentedTimes) {
  const RunnerSpec spec = read("{}");
  EXPECT_EQ(spec.kind, RunnerKind::kBench);
  EXPECT_EQ(spec.bench.warmup_s, 2.0);
  EXPECT_EQ(spec.bench.measure_s, 10.0);
  EXPECT_EQ(spec.bench.timeout_s, 300.0);
  EXPECT_FALSE(spec.bench.memory_limit_gib.has_value());
}

TEST(RunnerSpec, ATableIsRelativeToTheSession) {
  EXPECT_EQ(read(R"({"kind": "replay", "table": "../t.csv", "value": "v"})").replay.table, "/t.csv");
  EXPECT_EQ(read(R"({"kind": "replay", "table": "/data/t.csv", "value": "v"})").replay.table, "/data/t.csv");
}

TEST(RunnerSpec, WhatIsReadIsWrittenAndReadAgain) {
  for (const std::string text :
       {R"({"kind": "bench", "warmup_s": 0.5, "measure_s": 3, "timeout_s": 60, "memory_limit_gib": 1.25})",
        R"({"kind": "replay", "table": "t.csv", "where": {"model": "1B", "n_gpus": 8, "flag": true},
            "columns": {"tensor_parallel": "tp"}, "value": "v", "status": "s", "repeats": "cycle"})",
        R"({"kind": "replay", "table": "t.csv", "value": "v", "repeats": "median"})"}) {
    const Json once = to_json(read(text));
    EXPECT_EQ(once, to_json(read(once.dump()))) << text;
    const Json given = parse_json(text, "given");
    for (const auto& [key, value] : given.items()) {
      if (key == "table") continue;
      EXPECT_EQ(once.at(key), value) << key;
    }
  }
}

TEST(RunnerSpec, AnUnknownKindSaysWhichAreKnown) {
  EXPECT_EQ(error_of(R"({"kind": "slurm"})"),
            "s.json: /runner/kind: 'slurm' is no runner; the known ones are bench, replay, command, none");
}

TEST(RunnerSpec, WrongInputNamesItsPlace) {
  EXPECT_NE(error_of(R"({"warmup": 2})").find("/runner/warmup: unknown key; did you mean 'warmup_s'?"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"measure_s": 0})").find("/runner/measure_s"), std::string::npos);
  EXPECT_NE(error_of(R"({"warmup_s": -1})").find("/runner/warmup_s"), std::string::npos);
  EXPECT_NE(error_of(R"({"timeout_s": 11})").find("/runner/timeout_s"), std::string::npos);
  EXPECT_NE(error_of(R"({"memory_limit_gib": 0})").find("/runner/memory_limit_gib"), std::string::npos);
  EXPECT_NE(error_of(R"({"kind": "replay", "value": "v"})").find("/runner/table"), std::string::npos);
  EXPECT_NE(error_of(R"({"kind": "replay", "table": "t"})").find("/runner/value"), std::string::npos);
  EXPECT_NE(error_of(R"({"kind": "replay", "table": "t", "value": "v", "repeats": "mean"})").find("/runner/repeats"),
            std::string::npos);
  EXPECT_NE(
      error_of(R"({"kind": "replay", "table": "t", "value": "v", "columns": {"a": 3}})").find("/runner/columns/a"),
      std::string::npos);
  EXPECT_NE(error_of(R"({"kind": "replay", "table": "t", "value": "v", "warmup_s": 1})").find("/runner/warmup_s"),
            std::string::npos);
}

}  // namespace
}  // namespace krigtune
