#include "runner/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "krigtune/core/files.h"
#include "runner/event_clock.h"
#include "runner/temporary_directory.h"

namespace krigtune {
namespace {

using std::filesystem::exists;

class Process : public ::testing::Test {
 protected:
  ProcessSpec shell(const std::string& script) const { return program({"/bin/sh", "-c", script, "sh", dir_.path()}); }

  ProcessSpec program(std::vector<std::string> argv) const {
    ProcessSpec spec;
    spec.argv = std::move(argv);
    spec.stdout_file = dir_ / "out";
    spec.stderr_file = dir_ / "err";
    return spec;
  }

  TemporaryDirectory dir_;
  ManualClock still_;
};

// Tells whether all processes that have the pipe open for writing are gone, without looking at process ids.
class WriterWatch {
 public:
  explicit WriterWatch(const std::filesystem::path& pipe) {
    EXPECT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    file_ = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  }
  ~WriterWatch() { ::close(file_); }
  bool all_gone() const {
    constexpr int kGenerousMs = 60000;
    pollfd event{file_, POLLIN, 0};
    ::poll(&event, 1, kGenerousMs);
    char byte = 0;
    return (event.revents & POLLHUP) != 0 && ::read(file_, &byte, 1) == 0;
  }

 private:
  int file_;
};

// A process that ignores SIGTERM, holds the pipe open and says so by making the file `there`.
constexpr const char* kStubborn =
    "/bin/sh -c 'trap \"\" TERM; exec 3> \"$1/pipe\"; : > \"$1/there\"; while :; do sleep 600; done' sh \"$1\"";

TEST_F(Process, ReturnsTheExitCode) {
  const ProcessResult result = run_process(shell("exit 7"), still_);
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(result.signal, 0);
  EXPECT_FALSE(result.timed_out);
}

TEST_F(Process, DecodesASignal) {
  const ProcessResult result = run_process(shell("kill -SEGV $$"), still_);
  EXPECT_EQ(result.signal, SIGSEGV);
  EXPECT_EQ(result.exit_code, 128 + SIGSEGV);
}

TEST_F(Process, KeepsStdoutAndStderrApart) {
  run_process(shell("echo result; echo trouble >&2"), still_);
  EXPECT_EQ(read_text(dir_ / "out"), "result\n");
  EXPECT_EQ(read_text(dir_ / "err"), "trouble\n");
}

TEST_F(Process, HandsArgumentsOverWithoutAShell) {
  run_process(program({"/bin/echo", "$(id); * 'a b'"}), still_);
  EXPECT_EQ(read_text(dir_ / "out"), "$(id); * 'a b'\n");
}

TEST_F(Process, GivesAnEmptyStdin) { EXPECT_EQ(run_process(program({"cat"}), still_).exit_code, 0); }

TEST_F(Process, SaysWhyAProgramDoesNotStart) {
  const ProcessResult result = run_process(program({"/nowhere/krigtune-bench"}), still_);
  EXPECT_EQ(result.start_error, "No such file or directory");
  EXPECT_EQ(result.exit_code, 127);
}

TEST_F(Process, MeasuresWallTimeByTheClockItWasGiven) {
  const EventClock clock([&] { return exists(dir_ / "out") ? 12.5 : 10.0; });
  EXPECT_EQ(run_process(shell("exit 0"), clock).wall_s, 2.5);
}

TEST_F(Process, ATimeoutAsksFirst) {
  const EventClock clock([&] { return exists(dir_ / "there") ? 1000.0 : 0.0; });
  const ProcessResult result =
      run_process(shell("trap 'echo asked; exit 3' TERM; : > \"$1/there\"; while :; do sleep 0.01; done"), clock);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(read_text(dir_ / "out"), "asked\n");
}

TEST_F(Process, WhoDoesNotListenIsKilledAfterTheGrace) {
  // 1000: the timeout. The trap makes `asked`: 2000, the grace is over.
  const EventClock clock([&] { return exists(dir_ / "asked") ? 2000.0 : exists(dir_ / "there") ? 1000.0 : 0.0; });
  const ProcessResult result =
      run_process(shell("trap ': > \"$1/asked\"' TERM; : > \"$1/there\"; while :; do sleep 0.01; done"), clock);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.signal, SIGKILL);
}

TEST_F(Process, ATimeoutEndsGrandchildrenToo) {
  const WriterWatch watch(dir_ / "pipe");
  const EventClock clock([&] { return exists(dir_ / "there") ? 1000.0 : 0.0; });
  const ProcessResult result = run_process(shell(std::string(kStubborn) + " & sleep 600"), clock);
  EXPECT_TRUE(result.timed_out);
  EXPECT_TRUE(watch.all_gone());
}

TEST_F(Process, AProgramThatEndsLeavesNobodyBehind) {
  const WriterWatch watch(dir_ / "pipe");
  const ProcessResult result = run_process(
      shell(std::string(kStubborn) + " & while ! [ -e \"$1/there\" ]; do sleep 0.01; done; exit 0"), still_);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(watch.all_gone());
}

TEST_F(Process, IsKilledWhenItsParentIs) {
  const WriterWatch watch(dir_ / "pipe");
  const pid_t parent = ::fork();
  if (parent == 0) {
    run_process(shell("exec 3> \"$1/pipe\"; : > \"$1/there\"; exec sleep 600"), still_);
    ::_exit(0);
  }
  const SystemClock clock;
  while (!exists(dir_ / "there")) clock.sleep_until_s(clock.now_s() + 0.01);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  EXPECT_TRUE(watch.all_gone());
}

TEST_F(Process, AStopRequestEndsItAndIsNoTimeout) {
  std::atomic<bool> stop = false;
  const EventClock clock([&] {
    stop = exists(dir_ / "there");
    return 0.0;
  });
  ProcessSpec spec = shell(": > \"$1/there\"; exec sleep 600");
  spec.stop = &stop;
  const ProcessResult result = run_process(spec, clock);
  EXPECT_TRUE(result.stopped);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.signal, SIGTERM);
}

}  // namespace
}  // namespace krigtune
