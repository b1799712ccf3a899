#include <gtest/gtest.h>

#include "core/json.h"
#include "runner/runner.h"
#include "user_error.h"

namespace krigtune::spec_test {

runner::RunnerSpec read(const std::string& text) {
  return runner::read_runner(parse_json(text, "s.json"), "s.json", "/runner", "/tmp");
}

std::string error_of(const std::string& text) {
  return user_error_of([&] { read(text); });
}

template <class Spec>
Spec read_as(const std::string& text) {
  return std::get<Spec>(read(text));
}

TEST(RunnerSpec, BenchIsTheDefaultWithTheDocumentedTimes) {
  ASSERT_TRUE(runner::is<runner::BenchSpec>(read("{}")));
  const auto spec = read_as<runner::BenchSpec>("{}");
  EXPECT_EQ(spec.warmup_s, 2.0);
  EXPECT_EQ(spec.measure_s, 10.0);
  EXPECT_EQ(spec.timeout_s, 300.0);
  EXPECT_FALSE(spec.memory_limit_gib.has_value());
  EXPECT_EQ(spec.launcher, runner::Launcher::kThreads);
  EXPECT_EQ(spec.hang_s, 60.0);
  EXPECT_EQ(read_as<runner::BenchSpec>(R"({"timeout_s": 3000})").hang_s, 600.0);
  EXPECT_NE(error_of(R"({"launcher": "srun"})").find("/runner/launcher"), std::string::npos);
}

TEST(RunnerSpec, ATableIsRelativeToTheSession) {
  EXPECT_EQ(read_as<runner::ReplaySpec>(R"({"kind": "replay", "table": "../t.csv", "value": "v"})").table, "/t.csv");
  EXPECT_EQ(read_as<runner::ReplaySpec>(R"({"kind": "replay", "table": "/data/t.csv", "value": "v"})").table,
            "/data/t.csv");
}

TEST(RunnerSpec, WhatIsReadIsWrittenAndReadAgain) {
  for (
      const std::string text :
      {R"({"kind": "bench", "warmup_s": 0.5, "measure_s": 3, "timeout_s": 60, "memory_limit_gib": 1.25})",
       R"({"kind": "bench", "launcher": "mpirun"})",
       R"({"kind": "replay", "table": "t.csv", "where": {"model": "1B", "n_gpus": 8, "flag": true},
            "columns": {"tensor_parallel": "tp"}, "value": "v", "status": "s", "repeats": "cycle"})",
       R"({"kind": "replay", "table": "t.csv", "value": "v", "repeats": "median"})",
       R"({"kind": "replay", "table": "t.csv", "value": {"column": "ms", "times": 0.001}, "reason": "why",
            "columns": {"bucket": {"column": "mb", "times": 1000000}, "tp": "t"},
            "metrics": {"peak_memory_bytes": {"column": "gb", "times": 1e9}, "step_time_s": "t"}})",
       R"({"kind": "command", "argv": ["python", "run.py", "--config={config}", "{{x}"], "timeout_s": 600, "grace_s": 0,
            "no_progress_s": 0.5, "cwd": "/", "env": {"A": "b=c", "N": "4"}, "oom_exit_codes": [3, 255],
            "oom_patterns": ["a+b", "^x"]})",
       R"({"kind": "deepspeed", "argv": ["deepspeed", "--num_gpus", "2", "t.py", "--deepspeed_config=d.json"],
            "ds_config": "/tmp/ds.json", "cwd": "/", "env": {"A": "b"}, "warmup_steps": 2, "measure_steps": 6,
            "timeout_s": 60, "grace_s": 0, "no_progress_s": 20, "early_end": false,
            "arg_mappings": {"train_micro_batch_size_per_gpu": "--mb"}})",
       R"({"kind": "deepspeed", "argv": ["python", "t.py", "--deepspeed", "d.json"]})",
       R"({"kind": "command", "argv": ["true"]})", R"({"kind": "none"})", R"({"kind": "simulate"})",
       R"({"kind": "simulate", "noise": 0.1, "systematic_error": 0, "memory_error": 0.2, "seed": 7,
            "early_end": true, "today": {"slowdown": 1.8, "seed": 9},
            "stragglers": {"probability": 0.2, "slowdown": 2},
            "failures": {"unforeseen_fraction": 0.1, "crash_probability": 0}})"}) {
    const Json once = runner::to_json(read(text));
    EXPECT_EQ(once, runner::to_json(read(once.dump()))) << text;
    const Json given = parse_json(text, "given");
    for (const auto& [key, value] : given.items()) {
      if (key == "table") continue;
      EXPECT_EQ(once.at(key), value) << key;
    }
  }
}

TEST(RunnerSpec, AnUnknownKindSaysWhichAreKnown) {
  const std::string error = error_of(R"({"kind": "slurm"})");
  EXPECT_EQ(error.rfind("s.json: /runner/kind: 'slurm' is not a runner; known: bench, simulate, replay, ", 0), 0U)
      << error;
}

TEST(RunnerSpec, WrongInputNamesItsPlace) {
  EXPECT_NE(error_of(R"({"kind": "simulate", "noise": -1})").find("/runner/noise"), std::string::npos);
  EXPECT_NE(error_of(R"({"kind": "simulate", "seed": -1})").find("/runner/seed"), std::string::npos);
  EXPECT_NE(error_of(R"({"kind": "simulate", "today": {"slowdown": 0}})").find("/runner/today/slowdown"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"kind": "simulate", "today": {"seed": -1}})").find("/runner/today/seed"), std::string::npos);
  EXPECT_NE(error_of(R"({"kind": "simulate", "stragglers": {"slowdown": 0.5}})").find("/runner/stragglers/slowdown"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"kind": "simulate", "failures": {"crash_probabilty": 0.1}})")
                .find("/runner/failures/crash_probabilty: unknown key; did you mean 'crash_probability'?"),
            std::string::npos);
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

TEST(RunnerSpec, ACommandHasTheDocumentedDefaults) {
  const runner::CommandSpec spec = read_as<runner::CommandSpec>(R"({"kind": "command", "argv": ["./run.sh"]})");
  EXPECT_EQ(spec.working_directory, "/tmp") << "the session's directory";
  EXPECT_EQ(spec.timeout_s, 3600.0);
  EXPECT_EQ(spec.grace_s, 10.0);
  EXPECT_FALSE(spec.no_progress_s.has_value());
  EXPECT_TRUE(spec.environment.empty() && spec.oom_exit_codes.empty() && spec.oom_patterns.empty());
  EXPECT_EQ(read_as<runner::CommandSpec>(R"({"kind": "command", "argv": ["x"], "cwd": "../usr"})").working_directory,
            "/usr");
  EXPECT_EQ(
      read_as<runner::CommandSpec>(R"({"kind": "command", "argv": ["x"], "env": {"N": 4}})").environment.at(0).second,
      "4");
}

TEST(RunnerSpec, NobodyRunsTrialsWithNone) { EXPECT_TRUE(runner::is<runner::NoRunner>(read(R"({"kind": "none"})"))); }

TEST(RunnerSpec, AWrongCommandNamesItsPlaceAndTheMend) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("timeout_s": 1)", "/runner/argv"},
      {R"("argv": [])", "/runner/argv: names no program"},
      {R"("argv": [""])", "/runner/argv: names no program"},
      {R"("argv": "python run.py")", "/runner/argv: a list of strings was expected"},
      {R"("argv": ["python", 3])", "/runner/argv: a list of strings was expected"},
      {R"("argv": ["x", "a\u0000b"])", "/runner/argv/1: contains a zero byte"},
      {R"("argv": ["x"], "timeout_s": 0)", "/runner/timeout_s: 0 is out of range"},
      {R"("argv": ["x"], "timeout_s": 1e300)", "/runner/timeout_s"},
      {R"("argv": ["x"], "grace_s": -1)", "/runner/grace_s: -1 is out of range"},
      {R"("argv": ["x"], "no_progress_s": 0)", "/runner/no_progress_s: 0 is out of range"},
      {R"("argv": ["x"], "cwd": "absent-directory")", "/runner/cwd: '/tmp/absent-directory' is not a directory"},
      {R"("argv": ["x"], "cwd": 3)", "/runner/cwd: a string was expected"},
      {R"("argv": ["x"], "env": ["A=b"])", "/runner/env"},
      {R"("argv": ["x"], "env": {"A=B": "c"})", "/runner/env/A=B: is not the name of an environment variable"},
      {R"("argv": ["x"], "env": {"A": null})", "/runner/env/A: a text or a number was expected"},
      {R"("argv": ["x"], "oom_exit_codes": [0])", "/runner/oom_exit_codes: a list of exit codes was expected"},
      {R"("argv": ["x"], "oom_exit_codes": [256])", "/runner/oom_exit_codes"},
      {R"("argv": ["x"], "oom_exit_codes": 3)", "/runner/oom_exit_codes"},
      {R"("argv": ["x"], "oom_patterns": ["ok", "(a"])", "/runner/oom_patterns/1: '(a' is not a regular expression"},
      {R"("argv": ["x"], "oom_patterns": ["(a)\\1"])", "/runner/oom_patterns/0"},
      {R"("argv": ["x"], "oom_patterns": [""])", "/runner/oom_patterns/0: is empty"},
      {R"("argv": ["x"], "oom_patterns": "a")", "/runner/oom_patterns: a list of strings was expected"},
      {R"("argv": ["x"], "workdir": "/")", "/runner/workdir: unknown key"},
      {R"("argv": ["x"], "no_progres_s": 3)", "/runner/no_progres_s: unknown key; did you mean 'no_progress_s'?"},
  };
  for (const auto& [keys, part] : cases) {
    const std::string error = error_of(R"({"kind": "command", )" + keys + "}");
    EXPECT_NE(error.find("s.json: " + part), std::string::npos) << keys << "\n  gives " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
  const std::string pattern(501, '(');
  EXPECT_NE(error_of(R"({"kind": "command", "argv": ["x"], "oom_patterns": [")" + pattern + "\"]}").find("too long"),
            std::string::npos);
}

TEST(RunnerSpec, ADeepSpeedJobsFileIsWhatItsCommandNames) {
  const std::string job = R"({"kind": "deepspeed", "argv": ["deepspeed", "t.py", "--deepspeed", "conf/d.json"])";
  EXPECT_EQ(read_as<deepspeed::DeepSpeedSpec>(job + "}").ds_config, "/tmp/conf/d.json");
  EXPECT_EQ(read_as<deepspeed::DeepSpeedSpec>(job + R"(, "cwd": "/usr"})").ds_config, "/usr/conf/d.json");
  EXPECT_EQ(read_as<deepspeed::DeepSpeedSpec>(job + R"(, "cwd": "/usr", "ds_config": "e.json"})").ds_config,
            "/tmp/e.json");
  EXPECT_EQ(read_as<deepspeed::DeepSpeedSpec>(job + "}").steps.due(), 15);
  EXPECT_EQ(read_as<deepspeed::DeepSpeedSpec>(job + "}").config_as, deepspeed::DsConfigAs::kPath);
  EXPECT_EQ(read_as<deepspeed::DeepSpeedSpec>(job + R"(, "config_as": "base64"})").config_as,
            deepspeed::DsConfigAs::kBase64);
  EXPECT_EQ(runner::timeout_s(read(job + R"(, "timeout_s": 7})")), 7.0);
}

TEST(RunnerSpec, AWrongDeepSpeedJobNamesItsPlaceAndTheMend) {
  const std::string argv = R"("argv": ["python", "t.py", "--deepspeed", "d.json"], )";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("timeout_s": 1)", "/runner/argv"},
      {R"("argv": [])", "/runner/argv: names no program"},
      {R"("argv": ["python", "t.py"])", "/runner/argv: the command names no DeepSpeed configuration; add "},
      {R"("argv": ["python", "a\u0000b"])", "/runner/argv/1: contains a zero byte"},
      {argv + R"("measure_steps": 2)", "/runner/measure_steps: 2 is out of range; write an integer from 3 to 100000"},
      {argv + R"("warmup_steps": 0)", "/runner/warmup_steps: 0 is out of range"},
      {argv + R"("no_progress_s": 0)", "/runner/no_progress_s: 0 is out of range"},
      {argv + R"("config_as": "hex")", "/runner/config_as: unknown value 'hex'; known: path, base64"},
      {argv + R"("arg_mappings": {"a": 3})", "/runner/arg_mappings/a: a flag of the script was expected"},
      {argv + R"("arg_mapings": {})", "/runner/arg_mapings: unknown key; did you mean 'arg_mappings'?"},
  };
  for (const auto& [keys, part] : cases) {
    const std::string error = error_of(R"({"kind": "deepspeed", )" + keys + "}");
    EXPECT_NE(error.find("s.json: " + part), std::string::npos) << keys << "\n  gives " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

TEST(RunnerSpec, AWrongColumnNamesItsPlace) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("value": 3)", "/runner/value: a column was expected"},
      {R"("value": "")", "/runner/value: names no column"},
      {R"("value": {"times": 3})", "/runner/value/column"},
      {R"("value": {"column": "v", "times": 0})", "/runner/value/times: 0 is out of range"},
      {R"("value": {"column": "v", "time": 2})", "/runner/value/time: unknown key; did you mean 'times'?"},
      {R"("value": "v", "metrics": {"t": 1})", "/runner/metrics/t: a column was expected"},
      {R"("value": "v", "metrics": ["t"])", "/runner/metrics"},
      {R"("value": "v", "columns": {"a": {"column": "b", "times": -1}})", "/runner/columns/a/times"},
  };
  for (const auto& [keys, part] : cases) {
    const std::string error = error_of(R"({"kind": "replay", "table": "t", )" + keys + "}");
    EXPECT_NE(error.find("s.json: " + part), std::string::npos) << keys << "\n  gives " << error;
  }
}

}  // namespace krigtune::spec_test
