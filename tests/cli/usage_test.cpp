#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "cli/cli_fixtures.h"
#include "engine/gpu_probe.h"
#include "scoped_variable.h"
#include "session/session.h"

namespace krigtune::usage_test {

/// Bad usage and bad input give exit code 2, one line on stderr and nothing on stdout.
void expect_refused(const std::vector<std::string>& arguments, const std::string& line) {
  const Said said = run_krigtune(arguments);
  EXPECT_EQ(said.code, 2);
  EXPECT_EQ(said.out, "");
  EXPECT_EQ(lines_in(said.err), 1U) << said.err;
  EXPECT_NE(said.err.find(line), std::string::npos) << said.err;
}

TEST(Usage, WithoutACommandIsHelpOnStderr) {
  const Said said = run_krigtune({});
  EXPECT_EQ(said.code, 2);
  EXPECT_EQ(said.out, "");
  EXPECT_EQ(said.err, run_krigtune({"--help"}).out);
}

TEST(Usage, NamesTheNearestCommandAndOption) {
  expect_refused({"tunee"}, "krigtune: unknown command 'tunee'; did you mean 'tune'?");
  expect_refused({"--versoin"}, "krigtune: unknown option '--versoin'; did you mean '--version'?");
  expect_refused({"tune", "s.json", "--trails", "3"},
                 "krigtune: tune: unknown option '--trails'; did you mean '--trials'?");
  expect_refused({"tune", "s.json", "--trails=3"}, "did you mean '--trials'?");
  expect_refused({"plan", "s.json", "--cfg", "a.yaml"}, "known: ");
}

TEST(Usage, NamesTheLatestRunWhereItsDirectoryIsMissing) {
  const std::filesystem::path here = std::filesystem::current_path();
  const TemporaryDirectory directory;
  std::filesystem::create_directories(directory.path() / "runs/no_run");
  for (const char* name : {"older", "latest"}) {
    std::filesystem::create_directories(directory.path() / "runs" / name);
    std::ofstream(directory.path() / "runs" / name / "session.json") << "{}";
  }
  std::filesystem::last_write_time(
      directory.path() / "runs/older/session.json",
      std::filesystem::last_write_time(directory.path() / "runs/latest/session.json") - std::chrono::hours(1));
  std::filesystem::current_path(directory.path());
  expect_refused({"results"},
                 "results: DIR is missing; usage: krigtune results DIR [options], as in krigtune results "
                 "runs/latest");
  std::filesystem::current_path(here);
}

TEST(Usage, DoesNotGuessOptionsFromTheirBeginning) {
  expect_refused({"tune", "python", "train.py", "--cfg", "x.yaml"},
                 "put -- before the program: krigtune tune -- python train.py --cfg");
  expect_refused({"tune", "s.json", "--cfg", "--", "python", "train.py"}, "unknown option '--cfg'; known: ");
  expect_refused({"tune", "s.json", "--tri", "3"}, "unknown option '--tri'");
}

TEST(Usage, AsksForACommandWithDeepSpeedAndForDeepSpeedWithACommand) {
  const TemporaryDirectory directory;
  const std::string file = (directory.path() / "ds.json").string();
  std::ofstream(file) << R"({"train_batch_size": 8})";
  expect_refused({"tune", "--deepspeed", file}, "--deepspeed: the command that trains is missing");
  expect_refused({"tune", "s.json", "--deepspeed", file}, "--deepspeed: the command that trains is missing");
  expect_refused({"tune", "--", "python", "train.py"}, "no recipe knows this job; say what may vary");
  expect_refused({"tune", "--vary", "x=--x:1,2", "x.json"}, "--vary needs a command after --");
  expect_refused({"tune", "--deepspeed", file, "--", "python", "train.py", "--deepspeed_config", "other.json"},
                 "--deepspeed: the command names 'other.json', not '" + file + "'; name the same file in both");
  expect_refused({"plan", "--", "python", "train.py"},
                 "plan: it takes a session, and no command behind '--'; write a session for the command: krigtune init "
                 "session.json -- COMMAND; then krigtune plan session.json");
}

TEST(Usage, MakesASessionOfADeepSpeedJob) {
  const TemporaryDirectory directory;
  const std::string file = (directory.path() / "ds.json").string();
  const std::string session = (directory.path() / "s.json").string();
  std::ofstream(file) << R"({"train_batch_size": 8, "zero_optimization": {"stage": [1, 2]}})";
  const Said made = run_krigtune({"init", session, "--deepspeed", file, "--", "deepspeed", "--num_gpus", "2",
                                  "train.py", "--trials", "9", "--deepspeed_config", file});
  EXPECT_EQ(made.code, 0) << made.err;
  const session::Session read = session::load_session(session);
  EXPECT_EQ(std::get<deepspeed::DeepSpeedSpec>(read.runner).argv.size(),
            8U);  // the command's own --trials is not krigtune's
  EXPECT_EQ(read.cluster.ranks(), 2);
  EXPECT_EQ(read.baseline->integer("zero_stage", 0), 1);
  expect_refused({"tune", session, "--deepspeed", file, "--", "python", "train.py", "--deepspeed_config", file},
                 session + ": /cluster: 2 ranks, but the command starts 1");
}

TEST(Usage, SaysWhichOperandIsMissingOrTooMuch) {
  expect_refused({"tune"}, "krigtune: tune: SESSION is missing; usage: krigtune tune SESSION [options]");
  expect_refused({"results"}, "DIR is missing");
  expect_refused({"tune", "a.json", "b.json"}, "unexpected argument 'b.json'");
  expect_refused({"doctor", "now"}, "unexpected argument 'now'");
}

TEST(Usage, SaysWhatAValueMustBe) {
  const TemporaryDirectory directory;
  const std::string session = replay_session(directory).string();
  expect_refused({"tune", session, "--trials", "many"},
                 "--trials: 'many' is not accepted; write a whole number from 1 to");
  expect_refused({"tune", session, "--trials", "0"}, "--trials: '0' is not accepted");
  expect_refused({"tune", session, "--seed=-1"}, "--seed: '-1' is not accepted");
  expect_refused({"tune", session, "--hours", "nan"}, "--hours: 'nan' is not accepted");
  expect_refused({"tune", session, "--strategy", "bayse"}, "did you mean 'bayes'?");
  expect_refused({"compare", session, "--strategies", "bayes,,grid"}, "--strategies: an empty name");
  expect_refused({"compare", session, "--strategies", "grid,grid"}, "'grid' is listed twice");
  expect_refused({"tune", session, "-q", "-v"}, "-q and -v cannot be combined");
  expect_refused({"tune", session, "--log-file", "/nowhere/log"}, "--log-file: cannot write '/nowhere/log'");
}

TEST(Usage, RefusesABadSessionInOneLineAndWritesNothing) {
  const TemporaryDirectory directory;
  const std::string session = directory.write("bad.json", R"({"space": {"a": [1, 2]}, "budgte": {}})").string();
  const std::string out = (directory / "run").string();
  expect_refused({"tune", session, "--out", out}, "did you mean 'budget'?");
  EXPECT_FALSE(std::filesystem::exists(out));
  expect_refused({"plan", (directory / "absent.json").string()}, "cannot read");
  directory.write("broken.json", "{");
  expect_refused({"plan", (directory / "broken.json").string()}, "broken.json: not JSON at line 1");
}

TEST(Usage, RefusesADirectoryThatHoldsNoRun) {
  const TemporaryDirectory directory;
  expect_refused({"results", directory.path().string()}, "is not a run directory");
  expect_refused({"predict", directory.path().string()}, "is not a run directory");
}

TEST(Usage, SaysWhichPathCannotBeUsed) {
  const TemporaryDirectory directory;
  std::filesystem::create_symlink("loop", directory / "loop");
  expect_refused({"results", (directory / "loop" / "run").string()}, "Too many levels of symbolic links");
  expect_refused({"results", (directory / std::string(300, 'n')).string()}, "File name too long");
}

// Each of these would be read without end or waited for.
TEST(Usage, RefusesWhatIsNoFile) {
  const TemporaryDirectory directory;
  const std::string pipe = (directory / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto session_with = [&](const std::string& name, const std::string& text) {
    return directory.write(name, text).string();
  };
  const std::string table = R"({"space": {"a": [1, 2]}, "objective": {"metric": "v", "direction": "maximize"},
      "runner": {"kind": "replay", "value": "v", "table": ")";
  const std::string model = R"({"space": {"micro_batch": [1, 2]}, "workload": {"model": {"hf_config": ")";
  for (const std::string& path : {pipe, std::string("/dev/zero"), directory.path().string()}) {
    const std::string kind = path == pipe     ? "it is a named pipe"
                             : path[1] == 'd' ? "it is a device"
                                              : "it is a directory";
    const std::string line = "cannot read '" + path + "': " + kind;
    expect_refused({"plan", path}, line);
    expect_refused({"tune", path}, line);
    expect_refused({"tune", "--deepspeed", path, "--", "python3", "train.py"}, path);
    expect_refused({"plan", session_with("table.json", table + path + "\"}}")}, line);
    expect_refused({"plan", session_with("model.json", model + path + "\"}}}")}, line);
    expect_refused({"diagnose", "--trace", path}, path);
    if (path != directory.path()) expect_refused({"diagnose", "--log", path}, path);
  }
  const std::string run = (directory / "run").string();
  std::filesystem::create_directory(run);
  ASSERT_EQ(::mkfifo((run + "/session.json").c_str(), 0600), 0);
  expect_refused({"results", run}, "it is a named pipe");
  std::filesystem::remove(run + "/session.json");
  ASSERT_EQ(::mkfifo((run + "/journal.log").c_str(), 0600), 0);
  expect_refused({"tune", replay_session(directory).string(), "--out", run}, "journal.log': it is a named pipe");
}

TEST(Usage, ReadsFilesThatBeginWithAByteOrderMark) {
  const TemporaryDirectory directory;
  const std::filesystem::path session = replay_session(directory);
  for (const char* name : {"job.json", "table.csv"}) {
    directory.write(name, "\xEF\xBB\xBF" + read_text(directory / name));
  }
  const std::string run = (directory / "run").string();
  const std::vector<std::string> tune = {"tune", session.string(), "--out", run, "--quiet"};
  EXPECT_EQ(run_krigtune(tune).code, 0);
  directory.write("run/journal.log", "\xEF\xBB\xBF" + read_text(directory / "run" / "journal.log"));
  const Said results = run_krigtune({"results", run});
  EXPECT_EQ(results.code, 0) << results.err;
  const Said again = run_krigtune(tune);
  EXPECT_EQ(again.code, 0) << again.err;
}

TEST(Usage, SaysWhereNumbersOfTrialsEnd) {
  const TemporaryDirectory directory;
  for (const char* number : {"-9223372036854775808", "-1", "99999999999999999999", "1.5"}) {
    expect_refused({"tell", directory.path().string(), "--trial", number, "--status", "failed"}, "is not accepted");
    expect_refused({"export", directory.path().string(), "--format", "csv", "--trial", number}, "is not accepted");
  }
}

TEST(Doctor, ExitsWithThreeOnlyWhereTrialsCannotRun) {
  const TemporaryDirectory directory;
  directory.write_program("krigtune-bench", "exit 0\n");
  const Said with = run_krigtune({"doctor"}, directory / "krigtune");
  EXPECT_EQ(with.code, 0) << with.out;
  EXPECT_EQ(with.out.find("FAIL"), std::string::npos) << with.out;
  const Said json = run_krigtune({"doctor", "--json"}, directory / "krigtune");
  EXPECT_NE(json.out.find("\"schema_version\": 1"), std::string::npos);
  ScopedVariable path("PATH", directory.path().string());
  EXPECT_EQ(run_krigtune({"doctor"}).code, 0) << "found on PATH";
  path.set("/nowhere");
  const Said without = run_krigtune({"doctor"});
  EXPECT_EQ(without.code, 3);
  EXPECT_NE(without.out.find("FAIL  krigtune-bench"), std::string::npos) << without.out;
}

TEST(Doctor, SaysWhyTheCudaEngineIsOfNoUseAndTheMend) {
  const TemporaryDirectory directory;
  directory.write_program("krigtune-bench", "exit 0\n");
  const auto said = [&] { return run_krigtune({"doctor"}, directory / "krigtune").out; };
  if (!engine::no_cuda_reason().empty()) {
    EXPECT_NE(said().find("SKIP  CUDA engine      " + engine::no_cuda_reason()), std::string::npos) << said();
    EXPECT_NE(said().find(
                  "\n                         cmake --preset release $(scripts/cuda-from-pypi ~/.cache/krigtune/cuda)\n"
                  "                         cmake --build --preset release\n"),
              std::string::npos);
  } else {
    EXPECT_NE(said().find("SKIP  CUDA engine      there is no"), std::string::npos) << said();
    EXPECT_NE(said().find("install the package krigtune-cuda"), std::string::npos) << said();
  }
  // What lies beside krigtune-bench counts, also for a krigtune that was built without CUDA.
  directory.write_program("krigtune-bench-cuda",
                          "echo 'x: error while loading shared libraries: libcublasLt.so.13: "
                          "cannot open' >&2; exit 127\n");
  EXPECT_NE(said().find("cannot start: libcublasLt.so.13: cannot open\n"), std::string::npos) << said();
  EXPECT_NE(said().find("GPUs are not used; docs/cuda.md says where its libraries are looked for"), std::string::npos);
  directory.write_program("krigtune-bench-cuda", "exit 0\n");
  EXPECT_NE(said().find("OK    CUDA engine"), std::string::npos) << said();
}

}  // namespace krigtune::usage_test
