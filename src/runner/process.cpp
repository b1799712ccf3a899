// One child at a time: fork, own process group, exec; wait on a pidfd in slices, so that the clock that was passed in
// decides about the timeout; end the whole group before the leader is reaped, because until then its process id, which
// names the group, cannot be given to anybody else.
#include "process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "krigtune/core/error.h"

namespace krigtune {
namespace {

constexpr double kSliceS = 0.05;  // how soon a stop request or a moved clock is noticed

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

int open_output(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) {
    throw EnvironmentError("cannot write '" + path.string() + "': " + std::strerror(errno),
                           "check the directory's permissions and free space");
  }
  return file;
}

struct ChildFiles {
  int in;
  int out;
  int err;
  int report;  // where errno goes if exec fails
};

// Between fork and exec: async-signal-safe calls only.
[[noreturn]] void become_program(char* const* argv, const ChildFiles& files, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before the line above
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGCHLD}) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(files.in, STDIN_FILENO);
  ::dup2(files.out, STDOUT_FILENO);
  ::dup2(files.err, STDERR_FILENO);
  ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  ::execvp(argv[0], argv);
  const int error = errno;
  const ssize_t written = ::write(files.report, &error, sizeof error);
  ::_exit(written == sizeof error ? 127 : 126);
}

// The child's process id. `error` gets errno where the program cannot be started; the child is then gone.
pid_t start(const ProcessSpec& spec, int& error) {
  std::vector<char*> argv;
  argv.reserve(spec.argv.size() + 1);
  for (const std::string& argument : spec.argv) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const Descriptor in(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Descriptor out(open_output(spec.stdout_file));
  const Descriptor err(open_output(spec.stderr_file));
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw EnvironmentError(std::string("pipe: ") + std::strerror(errno));
  const Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw EnvironmentError(std::string("fork: ") + std::strerror(errno), "end other programs");
  if (child == 0) become_program(argv.data(), {in.get(), out.get(), err.get(), write_end.get()}, parent);
  ::setpgid(child, child);  // here too: whoever of the two is first, the group exists before anybody signals it
  write_end.close();
  error = 0;
  ssize_t got = 0;
  do {
    got = ::read(read_end.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got > 0) ::waitpid(child, nullptr, 0);
  return child;
}

bool has_ended(pid_t child) {
  siginfo_t info{};
  const int rc = ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT);
  return rc == 0 && info.si_pid == child;
}

// Waits a slice at most; true once the child has ended. It is not reaped.
bool wait_slice(pid_t child, int pidfd, double seconds) {
  pollfd event{pidfd, POLLIN, 0};
  // Without a pidfd (kernels before 5.3) poll is just a wait.
  ::poll(&event, pidfd >= 0 ? 1 : 0, static_cast<int>(std::clamp(seconds, 0.001, kSliceS) * 1e3));
  return has_ended(child);
}

bool wait_until(pid_t child, int pidfd, double deadline_s, const std::atomic<bool>* stop, const Clock& clock) {
  while (!wait_slice(child, pidfd, deadline_s - clock.now_s())) {
    if (clock.now_s() >= deadline_s || (stop != nullptr && stop->load())) return false;
  }
  return true;
}

void reap(pid_t child, ProcessResult& result) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  result.exit_code = WIFSIGNALED(status) ? 128 + result.signal : WEXITSTATUS(status);
}

}  // namespace

ProcessResult run_process(const ProcessSpec& spec, const Clock& clock) {
  ProcessResult result;
  const double begin_s = clock.now_s();
  int error = 0;
  const pid_t child = start(spec, error);
  if (error != 0) {
    result.exit_code = 127;
    result.start_error = std::strerror(error);
    return result;
  }
  // By number: glibc 2.36 declares pidfd_open without C linkage.
  const Descriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  if (!wait_until(child, pidfd.get(), begin_s + spec.timeout_s, spec.stop, clock)) {
    result.stopped = spec.stop != nullptr && spec.stop->load();
    result.timed_out = !result.stopped;
    const double patience_ends_s = clock.now_s() + spec.grace_s;
    ::kill(-child, SIGTERM);
    wait_until(child, pidfd.get(), patience_ends_s, nullptr, clock);
  }
  ::kill(-child, SIGKILL);
  reap(child, result);
  result.wall_s = clock.now_s() - begin_s;
  return result;
}

}  // namespace krigtune
