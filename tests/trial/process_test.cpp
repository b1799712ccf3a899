#include <csignal>

#include "trial/process_fixture.h"

namespace krigtune::process_test {

using std::filesystem::exists;

TEST_F(Process, ReturnsTheExitCode) {
  const trial::ProcessResult result = trial::run_process(shell("exit 7"), still_);
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(result.signal, 0);
  EXPECT_FALSE(result.timed_out);
}

TEST_F(Process, DecodesASignal) {
  const trial::ProcessResult result = trial::run_process(shell("kill -SEGV $$"), still_);
  EXPECT_EQ(result.signal, SIGSEGV);
  EXPECT_EQ(result.exit_code, 128 + SIGSEGV);
}

TEST_F(Process, KeepsStdoutAndStderrApart) {
  trial::run_process(shell("echo result; echo trouble >&2"), still_);
  EXPECT_EQ(read_text(dir_ / "out"), "result\n");
  EXPECT_EQ(read_text(dir_ / "err"), "trouble\n");
}

TEST_F(Process, HandsArgumentsOverWithoutAShell) {
  trial::run_process(program({"/bin/echo", "$(id); * 'a b'"}), still_);
  EXPECT_EQ(read_text(dir_ / "out"), "$(id); * 'a b'\n");
}

TEST_F(Process, GivesAnEmptyStdin) { EXPECT_EQ(trial::run_process(program({"cat"}), still_).exit_code, 0); }

TEST_F(Process, SaysWhyAProgramDoesNotStart) {
  const trial::ProcessResult result = trial::run_process(program({"/nowhere/krigtune-bench"}), still_);
  EXPECT_EQ(result.start_error, "No such file or directory");
  EXPECT_EQ(result.exit_code, 127);
}

TEST_F(Process, MeasuresWallTimeByTheClockItWasGiven) {
  const EventClock clock([&] { return exists(dir_ / "out") ? 12.5 : 10.0; });
  EXPECT_EQ(trial::run_process(shell("exit 0"), clock).wall_s, 2.5);
}

TEST_F(Process, ATimeoutAsksFirst) {
  const EventClock clock([&] { return exists(dir_ / "there") ? 1000.0 : 0.0; });
  const trial::ProcessResult result = trial::run_process(
      shell("trap 'echo asked; exit 3' TERM; : > \"$1/there\"; while :; do sleep 0.01; done"), clock);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(read_text(dir_ / "out"), "asked\n");
}

TEST_F(Process, WhoDoesNotListenIsKilledAfterTheGrace) {
  // 1000 is the timeout. The trap makes the file `asked`; at 2000 the grace period is over.
  const EventClock clock([&] { return exists(dir_ / "asked") ? 2000.0 : exists(dir_ / "there") ? 1000.0 : 0.0; });
  const trial::ProcessResult result =
      trial::run_process(shell("trap ': > \"$1/asked\"' TERM; : > \"$1/there\"; while :; do sleep 0.01; done"), clock);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.signal, SIGKILL);
}

TEST_F(Process, AStopRequestEndsItAndIsNoTimeout) {
  std::atomic<bool> stop = false;
  const EventClock clock([&] {
    stop = exists(dir_ / "there");
    return 0.0;
  });
  trial::ProcessSpec spec = shell(": > \"$1/there\"; exec sleep 600");
  spec.stop = &stop;
  const trial::ProcessResult result = trial::run_process(spec, clock);
  EXPECT_TRUE(result.stopped);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.signal, SIGTERM);
}

TEST_F(Process, TheEnvironmentIsOursWithWhatIsAdded) {
  ::setenv("KRIGTUNE_TEST_KEPT", "kept", 1);
  ::setenv("KRIGTUNE_TEST_REPLACED", "old", 1);
  trial::ProcessSpec spec =
      shell("echo \"$KRIGTUNE_TEST_KEPT $KRIGTUNE_TEST_REPLACED $KRIGTUNE_TEST_NEW\"; env | grep -c _REPL");
  spec.environment = {{"KRIGTUNE_TEST_REPLACED", "new"}, {"KRIGTUNE_TEST_NEW", "a b"}};
  trial::run_process(spec, still_);
  EXPECT_EQ(read_text(dir_ / "out"), "kept new a b\n1\n");
}

TEST_F(Process, APathIsSeenFromTheWorkingDirectory) {
  std::filesystem::create_directory(dir_ / "sub");
  dir_.write_program("sub/run.sh", "pwd\n");
  trial::ProcessSpec spec = program({"./run.sh"});
  spec.working_directory = dir_ / "sub";
  EXPECT_EQ(trial::run_process(spec, still_).exit_code, 0);
  EXPECT_EQ(read_text(dir_ / "out"), (dir_ / "sub").string() + "\n");
  spec.working_directory = dir_ / "absent";
  EXPECT_EQ(trial::run_process(spec, still_).start_error, "its working directory: No such file or directory");
}

TEST_F(Process, ThePeakIsThatOfTheLargestOfItsProcesses) {
  constexpr std::int64_t k64Mib = 64 << 20;
  const std::string touch = "dd if=/dev/zero of=/dev/null bs=64M count=1";
  EXPECT_LT(trial::run_process(shell("exit 0"), still_).peak_rss_bytes, k64Mib);
  for (const std::string& script : {touch, "sh -c '" + touch + "'; true"}) {
    const std::int64_t peak = trial::run_process(shell("exec 2> /dev/null; " + script), still_).peak_rss_bytes;
    EXPECT_GE(peak, k64Mib) << script;
    EXPECT_LT(peak, 2 * k64Mib) << script;
  }
}

TEST_F(Process, WhoSaysNothingForTooLongIsEnded) {
  double now_s = 0.0;
  const EventClock clock([&] { return now_s += exists(dir_ / "there") ? 1.0 : 0.0; });
  trial::ProcessSpec spec = shell("echo begun; : > \"$1/there\"; exec sleep 600");
  spec.no_progress_s = 25.0;
  const trial::ProcessResult result = trial::run_process(spec, clock);
  EXPECT_TRUE(result.hung);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.signal, SIGTERM);
}

TEST_F(Process, AFileThatChangesIsProgress) {
  double now_s = 0.0;
  int looks = 0;
  const EventClock clock([&] {
    // Each call is 20 s after the one before, and something has happened each time.
    if (++looks == 100) dir_.write("go", "");
    dir_.write(looks % 2 == 0 ? "out" : "progress", std::string(static_cast<std::size_t>(looks), 'x'));
    return now_s += 20.0;
  });
  trial::ProcessSpec spec = shell("while ! [ -e \"$1/go\" ]; do sleep 0.01; done; exit 6");
  spec.timeout_s = 1e9;
  spec.no_progress_s = 100.0;
  spec.progress_files = {dir_ / "progress"};
  const trial::ProcessResult result = trial::run_process(spec, clock);
  EXPECT_FALSE(result.hung);
  EXPECT_EQ(result.exit_code, 6);
}

}  // namespace krigtune::process_test
