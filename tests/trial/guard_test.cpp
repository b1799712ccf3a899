#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <sstream>

#include "trial/process_fixture.h"

namespace krigtune::guard_test {

using std::filesystem::exists;

class Guard : public Process {
 protected:
  // Runs the script by a process that is killed once the file `there` exists.
  void kill_parent_of(const std::string& script) {
    const pid_t parent = ::fork();
    if (parent == 0) {
      trial::run_process(shell(script), still_);
      ::_exit(0);
    }
    const SystemClock clock;
    while (!exists(dir_ / "there")) clock.sleep_until_s(clock.now_s() + 0.01);
    ::kill(parent, SIGKILL);
    ::waitpid(parent, nullptr, 0);
  }
};

// Tells whether all processes that have the pipe open for writing are gone, without using process ids.
class WriterWatch {
 public:
  explicit WriterWatch(const std::filesystem::path& pipe) {
    EXPECT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    file_ = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  }
  ~WriterWatch() { ::close(file_); }
  bool all_gone() const { return gone_within_ms(60000); }
  bool gone_already() const { return gone_within_ms(0); }

 private:
  bool gone_within_ms(int limit) const {
    pollfd event{file_, POLLIN, 0};
    ::poll(&event, 1, limit);
    char byte = 0;
    return (event.revents & POLLHUP) != 0 && ::read(file_, &byte, 1) == 0;
  }

  int file_;
};

// A process that ignores SIGTERM, keeps the pipe open, and makes the file `there`.
constexpr const char* kStubborn =
    "/bin/sh -c 'trap \"\" TERM; exec 3> \"$1/pipe\"; : > \"$1/there\"; while :; do sleep 600; done' sh \"$1\"";

// Three processes that outlive their parents: one in the program's group, one in a session of its own, and one whose
// parent has ended before it begins.
constexpr const char* kFamily = R"(
cat > "$1/stubborn" <<'END'
trap "" TERM HUP
exec 3> "$1/pipe"
: > "$1/there.$2"
while :; do sleep 600; done
END
/bin/sh "$1/stubborn" "$1" 1 &
setsid /bin/sh "$1/stubborn" "$1" 2 &
(setsid /bin/sh "$1/stubborn" "$1" 3 &)
while ! [ -e "$1/there.1" -a -e "$1/there.2" -a -e "$1/there.3" ]; do sleep 0.01; done
: > "$1/there"
)";

TEST_F(Guard, ATimeoutEndsGrandchildrenToo) {
  const WriterWatch watch(dir_ / "pipe");
  const EventClock clock([&] { return exists(dir_ / "there") ? 1000.0 : 0.0; });
  const trial::ProcessResult result = trial::run_process(shell(std::string(kStubborn) + " & sleep 600"), clock);
  EXPECT_TRUE(result.timed_out);
  EXPECT_TRUE(watch.all_gone());
}

TEST_F(Guard, AProgramThatEndsLeavesNobodyBehind) {
  const WriterWatch watch(dir_ / "pipe");
  const trial::ProcessResult result = trial::run_process(
      shell(std::string(kStubborn) + " & while ! [ -e \"$1/there\" ]; do sleep 0.01; done; exit 0"), still_);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(watch.all_gone());
}

TEST_F(Guard, IsKilledWhenItsParentIs) {
  const WriterWatch watch(dir_ / "pipe");
  kill_parent_of("exec 3> \"$1/pipe\"; : > \"$1/there\"; exec sleep 600");
  EXPECT_TRUE(watch.all_gone());
}

TEST_F(Guard, NobodyOutlivesAKilledParent) {
  const WriterWatch watch(dir_ / "pipe");
  kill_parent_of(std::string(kFamily) + "sleep 600");
  EXPECT_TRUE(watch.all_gone());
}

TEST_F(Guard, NobodyOutlivesTheProgram) {
  const WriterWatch watch(dir_ / "pipe");
  EXPECT_EQ(trial::run_process(shell(std::string(kFamily) + "exit 4"), still_).exit_code, 4);
  EXPECT_TRUE(watch.gone_already());
}

TEST_F(Guard, NobodyOutlivesATimeout) {
  const WriterWatch watch(dir_ / "pipe");
  double now_s = 0.0;  // each call is hours later, once they all exist
  const EventClock clock([&] { return now_s += exists(dir_ / "there") ? 3600.0 : 0.0; });
  EXPECT_TRUE(
      trial::run_process(shell(std::string(kFamily) + "trap '' TERM; while :; do sleep 600; done"), clock).timed_out);
  EXPECT_TRUE(watch.gone_already());
}

TEST_F(Guard, AKilledGuardTakesTheProgramsGroupAlong) {
  const WriterWatch watch(dir_ / "pipe");
  const EventClock clock([&] {
    if (exists(dir_ / "there")) ::kill(std::stoi(read_text(dir_ / "guard")), SIGKILL);
    return 0.0;
  });
  const trial::ProcessResult result =
      trial::run_process(shell("echo $PPID > \"$1/guard\"; " + std::string(kStubborn) + " & wait"), clock);
  EXPECT_EQ(result.signal, SIGKILL);
  EXPECT_TRUE(watch.all_gone());
}

TEST_F(Guard, ASignalToAllProcessesOfAJobLeavesTheGuard) {
  bool signalled = false;
  const EventClock clock([&] {
    if (exists(dir_ / "there") && !signalled) {
      for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGTSTP, SIGCHLD}) {
        ::kill(std::stoi(read_text(dir_ / "guard")), signal);
      }
      signalled = true;
      dir_.write("go", "");
    }
    return 0.0;
  });
  const trial::ProcessResult result = trial::run_process(
      shell("echo $PPID > \"$1/guard\"; : > \"$1/there\"; while ! [ -e \"$1/go\" ]; do sleep 0.01; done; exit 5"),
      clock);
  EXPECT_TRUE(signalled);
  EXPECT_EQ(result.exit_code, 5);
}

TEST_F(Guard, TheGuardKeepsNothingOpen) {
  const WriterWatch watch(dir_ / "pipe");
  int ours = ::open((dir_ / "pipe").c_str(), O_WRONLY);  // like a lock of the run directory
  ASSERT_GE(ours, 0);
  bool released = false;
  const EventClock clock([&] {
    if (exists(dir_ / "there") && ours >= 0) {
      ::close(ours);
      ours = -1;
      released = watch.gone_already();
      dir_.write("go", "");
    }
    return 0.0;
  });
  trial::run_process(shell(": > \"$1/there\"; while ! [ -e \"$1/go\" ]; do sleep 0.01; done"), clock);
  EXPECT_TRUE(released);
}

TEST_F(Guard, TheProgramHasAGroupAndASessionApartFromOurs) {
  trial::run_process(shell("cut -d' ' -f5,6 /proc/self/stat; cut -d' ' -f1 /proc/$$/stat"), still_);
  std::istringstream out(read_text(dir_ / "out"));
  pid_t group = 0;
  pid_t session = 0;
  pid_t program = 0;
  out >> group >> session >> program;
  EXPECT_EQ(group, program);
  EXPECT_NE(session, ::getsid(0));
}

}  // namespace krigtune::guard_test
