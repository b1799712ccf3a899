#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "cli/cli_fixtures.h"
#include "core/csv.h"
#include "core/json.h"
#include "journal/lock.h"
#include "run/run_directory.h"

namespace krigtune::command_session_test {

/// Sessions of a program with eight micro-batches; its speed is ten times the micro-batch.
class CommandSessionTest : public testing::Test {
 protected:
  static constexpr const char* kMeasure = R"(
    mb=$(sed -n 's/.*"micro_batch": *\([0-9]*\).*/\1/p' "$1")
    echo "{\"speed\": $((10 * mb)), \"loss\": 2.5}" > "$2"
  )";

  void SetUp() override { program(kMeasure); }
  void program(const std::string& text) const { directory_.write_program("own", text); }
  /// Returns a command that sends SIGINT to this process, which runs the command line.
  static std::string interrupt() { return "kill -INT " + std::to_string(::getpid()) + "\n"; }
  std::string session(const std::string& runner_more = "") const {
    return directory_
        .write("own.json", R"({"space": {"micro_batch": {"min": 1, "max": 8}}, "baseline": {"micro_batch": 2},
      "objective": {"metric": "speed", "direction": "maximize"}, "budget": {"trials": 4},
      "runner": {"kind": "command", "argv": ["./own", "{config}", "{result}"], "timeout_s": 60)" +
                               runner_more + "}}")
        .string();
  }
  std::string run_directory() const { return (directory_ / "run").string(); }
  Said tune(std::vector<std::string> more = {}, const std::string& runner_more = "") const {
    more.insert(more.begin(), {"tune", session(runner_more), "--out", run_directory()});
    return run_krigtune(more, "/nowhere/krigtune", clock_);
  }
  std::vector<std::string> column(const std::string& name) const {
    const CsvTable table = parse_csv(read_text(directory_ / "run/trials.csv"), "trials");
    std::vector<std::string> values;
    for (const auto& row : table.rows) values.push_back(row[static_cast<std::size_t>(table.column(name))]);
    return values;
  }
  void expect_said(const Said& said, const std::string& text) const {
    EXPECT_NE(said.err.find(text), std::string::npos) << "not said: " << text << "\n" << said.err;
  }

  const SystemClock clock_;
  const TemporaryDirectory directory_;
};

TEST_F(CommandSessionTest, TunesAProgramAndShowsItsMetricByItsOwnName) {
  const Said said = tune({"--trials", "8", "--full-budget"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("speed 80, 4.00x trial 0 (20)\n"), std::string::npos) << said.out;
  EXPECT_EQ(column("metric_loss"), std::vector<std::string>(8, "2.5"));
  EXPECT_EQ(load_json(directory_ / "run/config_optimal.json"), parse_json(R"({"micro_batch": 8})", "expected"));
}

TEST_F(CommandSessionTest, RunsTheUsersGuessesAfterTheBaselineEachOnce) {
  const std::vector<std::string> guesses = {"--try", R"({"micro_batch": 7})", "--try", R"({"micro_batch": 5})"};
  EXPECT_EQ(tune(guesses).code, 0);
  EXPECT_EQ(tune(guesses).code, 0);
  const std::vector<std::string> strategies = column("strategy");
  EXPECT_EQ(std::vector<std::string>(strategies.begin(), strategies.begin() + 3),
            (std::vector<std::string>{"baseline", "try", "try"}));
  EXPECT_EQ(column("micro_batch").at(1), "7");
  EXPECT_EQ(column("micro_batch").at(2), "5");
  EXPECT_EQ(column("trial").size(), 4U);
}

TEST_F(CommandSessionTest, RefusesAGuessThatIsNoneInOneLineAndWritesNothing) {
  for (const char* guess : {"8", R"({"micro_batc": 8})", "{"}) {
    const Said said = tune({"--try", guess});
    EXPECT_EQ(said.code, 2) << guess;
    EXPECT_EQ(lines_in(said.err), 1U) << said.err;
    EXPECT_EQ(said.err.rfind("krigtune: --try", 0), 0U) << said.err;
    EXPECT_FALSE(std::filesystem::exists(directory_ / "run"));
  }
}

// At 1 and 8 the program is slow. It reports that while it runs, and then waits to be ended; otherwise it takes ten
// minutes.
TEST_F(CommandSessionTest, EndsATrialThatIsSurelyWorseEarlyAndTheBestStaysWhatIsMeasured) {
  program(R"(
    mb=$(sed -n 's/.*"micro_batch": *\([0-9]*\).*/\1/p' "$1")
    [ $mb = 3 ] && speed=100 || speed=10
    if [ $mb = 1 ] || [ $mb = 8 ]; then
      echo "{\"speed\": 10, \"value_sem\": 0.1, \"steps\": 50}" >> "$2.progress"
      exec sleep 600
    fi
    [ $mb = 2 ] && speed=90
    echo "{\"speed\": $speed}" > "$2"
  )");
  const Said said = tune({"--trials", "8", "--full-budget"});
  EXPECT_EQ(said.code, 0) << said.err;
  const std::vector<std::string> tried = column("micro_batch");
  ASSERT_EQ(tried.size(), 8U) << said.err;
  for (std::size_t i = 0; i < tried.size(); ++i) {
    const bool slow = tried[i] == "1" || tried[i] == "8";
    EXPECT_EQ(column("status").at(i), slow ? "bounded" : "ok") << tried[i];
    if (!slow) continue;
    const double at_best = std::stod(column("value").at(i));
    EXPECT_TRUE(at_best > 10.0 && at_best < 90.0) << "no better than what was measured first";
  }
  expect_said(said, "<= ");
  EXPECT_NE(said.out.find("trials     8: 6 ok, 2 bounded\n"), std::string::npos) << said.out;
  EXPECT_EQ(load_json(directory_ / "run/best.json")["trials"]["bounded"], 2);
  EXPECT_EQ(load_json(directory_ / "run/config_optimal.json"), parse_json(R"({"micro_batch": 3})", "expected"));
}

TEST_F(CommandSessionTest, RunsSeveralTrialsAtATime) {
  // Each trial waits for another one. Alone it would run into its time limit.
  program("touch $$.runs; while [ $(ls | grep -c runs) -lt 2 ]; do sleep 0.01; done\n" + std::string(kMeasure));
  const Said said = tune({"--jobs", "2", "--no-interference-check"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(column("status"), std::vector<std::string>(4, "ok"));
}

TEST_F(CommandSessionTest, FinishesTheRunningTrialOnTheFirstCtrlCAndSaysWhich) {
  program(interrupt() + "sleep 0.5\n" + kMeasure);  // the trial still runs when the signal is noticed
  const Said said = tune();
  EXPECT_EQ(said.code, 130);
  expect_said(said, "ending after trial 0; Ctrl-C again ends it now");
  expect_said(said, "saved; to continue: krigtune tune ");
  EXPECT_EQ(column("status"), std::vector<std::string>{"ok"});
}

TEST_F(CommandSessionTest, EndsTheTrialsWholeGroupOnTheSecondCtrlC) {
  program("sleep 60 & echo $! > child\n" + interrupt() + "sleep 0.3\n" + interrupt() + "wait\n");
  EXPECT_EQ(tune().code, 130);
  EXPECT_EQ(column("reason"), std::vector<std::string>{"interrupted"});
  const pid_t child = std::stoi(read_text(directory_ / "child"));
  EXPECT_NE(::kill(child, 0), 0) << "nothing that a trial started outlives it";
  program(kMeasure);
  EXPECT_EQ(tune().code, 0);
  EXPECT_EQ(column("strategy").at(1), "baseline") << "it counts nowhere and is asked again";
}

TEST_F(CommandSessionTest, RefusesASecondTuneOnTheSameDirectory) {
  ASSERT_EQ(tune().code, 0);
  const journal::TunerClaim claim(run::journal_path(run_directory()));
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--fresh"}}) {
    const Said said = tune(more);
    EXPECT_EQ(said.code, 2);
    EXPECT_EQ(lines_in(said.err), 1U) << said.err;
    expect_said(said, "another krigtune tune is running there");
    EXPECT_FALSE(std::filesystem::exists(run_directory() + ".1")) << "it is not moved from under its feet";
  }
}

TEST_F(CommandSessionTest, ExplainsCrashesWithTheLogAndTheCommand) {
  program("echo starting; echo 'no such file: data.bin' >&2; exit 3\n");
  const Said said = tune();
  EXPECT_EQ(said.code, 1);
  expect_said(said, "krigtune: no trial succeeded: 2 failed (crash)\n");
  expect_said(said, "krigtune: the last trials failed alike: no such file: data.bin\n");
  expect_said(said, "fix the job or the command, and run it again; to continue anyway: krigtune tune ");
  expect_said(said, " --keep-going\n");
  const Said more = tune({"--keep-going"});
  expect_said(more, "krigtune: no trial succeeded: 4 failed (crash)\n");
  expect_said(said, "trial 0 (" + run_directory() +
                        "/trials/0000_mb2/stderr.log), said:\nexit code 3\nno such file: data.bin\n");
  expect_said(said, "to try: run the command in " + run_directory() + "/trials/0000_mb2/cmd.txt by hand\n");
}

TEST_F(CommandSessionTest, ExplainsWhatRunsOutOfMemory) {
  program("echo '{\"status\": \"oom\"}' > \"$2\"; echo 'CUDA out of memory' >&2\n");
  const Said said = tune();
  EXPECT_EQ(said.code, 1);
  expect_said(said, "no trial succeeded: 4 oom\n");
  expect_said(said, "said:\nCUDA out of memory\n");
  expect_said(said, "to try: let the space contain configurations that need less memory\n");
}

TEST_F(CommandSessionTest, AdvisesAboutTheMostFrequentFailure) {
  program("if mkdir once; then echo 'only once' >&2; exit 3; fi; echo '{\"sped\": 1}' > \"$2\"\n");
  const Said said = tune();
  EXPECT_EQ(said.code, 1);
  expect_said(said, "no trial succeeded: 3 failed (bad_result), 1 failed (crash)\n");
  expect_said(said, "said:\nexit code 3\nonly once\n");
  expect_said(said, "to try: the program must write {\"speed\": NUMBER} to the file that it is given as {result}\n");
}

TEST_F(CommandSessionTest, KeepsTheFirstAndTheLastPartOfALongLog) {
  program(std::string("echo first; head -c 50000000 /dev/zero | tr '\\0' 'x' | fold -w 99; echo; echo last\n") +
          kMeasure);
  EXPECT_EQ(tune({"--trials", "1"}).code, 0);
  const std::string log = read_text(directory_ / "run/trials/0000_mb2/stdout.log");
  EXPECT_LE(log.size(), std::size_t{33} << 20);
  EXPECT_EQ(log.rfind("first\n", 0), 0U);
  EXPECT_EQ(log.substr(log.size() - 6), "\nlast\n");
  EXPECT_NE(log.find("\n[krigtune left out "), std::string::npos);
}

/// A program that reads two files and its flags. Its speed is ten times the batch, and twice that with --fast.
class JobSessionTest : public CommandSessionTest {
 protected:
  void SetUp() override {
    program(R"sh(
      batch=$(sed -n 's/^  batch: *\([0-9]*\).*/\1/p' "$1")
      [ "$(sed -n 's/^ways = //p' "$3")" = "$WAYS" ] || exit 9
      case "$*" in *--fast*) batch=$((2 * batch)) ;; esac
      echo "{\"speed\": $((10 * batch))}" > "$2"
    )sh");
    std::filesystem::create_directory(directory_ / "conf");
    directory_.write("conf/train.yaml", kConfig);
    directory_.write("job.template.toml", "[job]  # {{of}} {trial}\nways = {ways}\n");
  }

  static constexpr const char* kConfig = "# mine\ntrain:\n  batch: 1  # a rank\n  other: 'x'\n";
  Said tune_job() const {
    const auto file = directory_.write("job.json", R"({"space": {"micro_batch": {"min": 1, "max": 3},
        "mode": ["slow", "fast"], "ways": [1, 2]}, "baseline": {"micro_batch": 1, "mode": "slow", "ways": 1},
        "objective": {"metric": "speed", "direction": "maximize"}, "budget": {"trials": 12},
        "runner": {"kind": "command", "argv": ["./own", "{dir}/train.yaml", "{result}", "{dir}/job.toml", "{flags}", "end"],
                   "env": {"WAYS": "{ways}"}, "flags": {"mode": {"slow": [], "fast": ["--fast", "{micro_batch:.1f}"]}},
                   "templates": {"job.toml": "job.template.toml"},
                   "set": {"conf/train.yaml": {"train.batch": "{micro_batch}"}}, "timeout_s": 60}})");
    return run_krigtune({"tune", file.string(), "--out", run_directory(), "--full-budget"}, "/nowhere/krigtune",
                        clock_);
  }
};

TEST_F(JobSessionTest, TunesByFlagsEnvironmentAndFilesAndTheBestTrainsAsItIs) {
  const Said said = tune_job();
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(column("status"), std::vector<std::string>(12, "ok"));
  const std::filesystem::path run = directory_ / "run";
  EXPECT_EQ(read_text(run / "train.yaml"), "# mine\ntrain:\n  batch: 3  # a rank\n  other: 'x'\n");
  const std::string command = read_text(run / "cmd_optimal.txt");
  EXPECT_NE(command.find(run.string() + "/train.yaml " + run.string() + "/result_optimal.json " + run.string() +
                         "/job.toml --fast 3.0 end"),
            std::string::npos)
      << command;
  ASSERT_EQ(std::system(("sh " + (run / "cmd_optimal.txt").string()).c_str()), 0);
  EXPECT_EQ(load_json(run / "result_optimal.json"), parse_json(R"({"speed": 60})", "expected"));
  EXPECT_EQ(read_text(directory_ / "conf/train.yaml"), kConfig) << "the user's own file is as it was";
}

TEST_F(JobSessionTest, EachTrialKeepsWhatItWasStartedWith) {
  tune_job();
  int trials = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory_ / "run/trials")) {
    const Json config = load_json(entry.path() / "config.json");
    const std::string number = entry.path().filename().string().substr(0, 4);
    const bool is_fast = config["mode"] == "fast";
    const std::string command = read_text(entry.path() / "cmd.txt");
    EXPECT_NE(command.find(is_fast ? fmt::format(" --fast {}.0 end", config["micro_batch"].dump()) : "job.toml end"),
              std::string::npos)
        << command;
    EXPECT_NE(read_text(entry.path() / "env.txt").find(fmt::format("WAYS={}\n", config["ways"].dump())),
              std::string::npos);
    EXPECT_EQ(read_text(entry.path() / "job.toml"),
              fmt::format("[job]  # {{of}} {}\nways = {}\n", std::stoi(number), config["ways"].dump()));
    EXPECT_NE(read_text(entry.path() / "train.yaml")
                  .find(fmt::format("  batch: {}  # a rank\n", config["micro_batch"].dump())),
              std::string::npos);
    ++trials;
  }
  EXPECT_EQ(trials, 12);
}

TEST_F(JobSessionTest, ARunKnowsWhatItsFilesSaidWhenItBegan) {
  EXPECT_EQ(tune_job().code, 0);
  EXPECT_EQ(tune_job().code, 0) << "it goes on";
  const Said named = run_krigtune({"tune", run_directory()}, "/nowhere/krigtune", clock_);
  EXPECT_EQ(named.code, 0) << named.err;
  EXPECT_EQ(named.err.find("goes on with another"), std::string::npos) << named.err;
  directory_.write("conf/train.yaml", "train: {batch: 1, other: y}\n");
  const Said changed = tune_job();
  EXPECT_EQ(changed.code, 2);
  expect_said(changed, "was begun with another session: /runner/files/");
  EXPECT_EQ(lines_in(changed.err), 1U) << changed.err;
  std::filesystem::remove_all(directory_ / "conf");
  const Said results = run_krigtune({"results", run_directory()}, "/nowhere/krigtune", clock_);
  EXPECT_EQ(results.code, 0) << results.err;
}

TEST_F(CommandSessionTest, ExplainsTimeouts) {
  program("exec sleep 60\n");
  const Said said = run_krigtune({"tune",
                                  directory_
                                      .write("slow.json", R"({"space": {"a": [1]}, "baseline": null,
      "objective": {"metric": "speed", "direction": "maximize"},
      "runner": {"kind": "command", "argv": ["./own", "{config}"], "timeout_s": 0.2}})")
                                      .string(),
                                  "--out", run_directory()},
                                 "/nowhere/krigtune", clock_);
  EXPECT_EQ(said.code, 1);
  expect_said(said, "no trial succeeded: 1 failed (timeout)\n");
  expect_said(said, "to try: raise /runner/timeout_s of the session (now 0.2 s)");
}

TEST_F(CommandSessionTest, AComparisonLosesNothingOnCtrlCAndGoesOn) {
  // The third trial is interrupted twice.
  program("echo x >> began\nif [ $(wc -l < began) = 3 ]; then sleep 60 & echo $! > child\n" + interrupt() +
          "sleep 0.3\n" + interrupt() + "wait; fi\n" + kMeasure);
  const std::vector<std::string> command = {"compare", session(), "--strategies", "random",
                                            "--seeds", "2",       "--out",        run_directory()};
  const Said said = run_krigtune(command, "/nowhere/krigtune", clock_);
  EXPECT_EQ(said.code, 130) << said.err;
  expect_said(said, "interrupted: 0 of 2 runs are complete; comparison.csv has every closed trial");
  expect_said(said, "To continue: krigtune compare ");
  EXPECT_NE(::kill(std::stoi(read_text(directory_ / "child")), 0), 0);
  EXPECT_EQ(parse_csv(read_text(directory_ / "run/comparison.csv"), "comparison").rows.size(), 2U);
  const Said again = run_krigtune(command, "/nowhere/krigtune", clock_);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(parse_csv(read_text(directory_ / "run/comparison.csv"), "comparison").rows.size(), 8U);
  EXPECT_EQ(lines_in(read_text(directory_ / "began")), 9U) << "eight, and the interrupted one again";
}

}  // namespace krigtune::command_session_test
