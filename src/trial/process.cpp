// krigtune's side of a running program: a guard process (guard.h) starts and ends the program, and this side measures
// the time. It waits in short intervals, so that the injected clock decides about time limits.
#include "trial/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "core/error.h"
#include "core/files.h"
#include "trial/guard.h"
#include "trial/output_limit.h"
#include "trial/watchdog.h"

namespace krigtune::trial {
namespace {

constexpr double kSliceS = 0.05;  // the delay until a stop request or a moved clock is noticed

[[noreturn]] void fail(const std::string& what, const std::string& hint) {
  throw EnvironmentError(what + ": " + std::strerror(errno), hint);
}

class Descriptor {
 public:
  // Never uses 0, 1 or 2, even if krigtune was started with those closed, because the program needs its own there.
  explicit Descriptor(int number) : number_(number) {
    if (number > STDERR_FILENO || number < 0) return;
    number_ = ::fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    ::close(number);
  }
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

int opened_output(const std::filesystem::path& path) {
  const int file = open_output(path);
  if (file < 0) fail("cannot write '" + path.string() + "'", "check the directory's permissions and free space");
  return file;
}

std::array<int, 2> connected_pair() {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) fail("socketpair", "");
  return ends;
}

std::vector<std::string> merged_environment(const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> lines;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string line(*entry);
    const auto replaces = [&](const auto& pair) { return line.rfind(pair.first + "=", 0) == 0; };
    if (std::none_of(added.begin(), added.end(), replaces)) lines.push_back(line);
  }
  for (const auto& [name, value] : added) lines.push_back(name + "=" + value);
  return lines;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

/// A program under a guard. The destructor ends the program.
class GuardedProgram {
 public:
  explicit GuardedProgram(const ProcessSpec& spec) : GuardedProgram(spec, connected_pair()) {}
  ~GuardedProgram() {
    socket_.close();
    while (::waitpid(guard_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  GuardedProgram(const GuardedProgram&) = delete;
  GuardedProgram& operator=(const GuardedProgram&) = delete;

  void order(GuardOrder what) const { ::send(socket_.get(), &what, sizeof what, MSG_NOSIGNAL); }

  /// Waits at most `seconds` for the next report.
  std::optional<GuardReport> wait(double seconds) {
    pollfd event{socket_.get(), POLLIN, 0};
    if (::poll(&event, 1, static_cast<int>(std::clamp(seconds, 0.001, kSliceS) * 1e3)) <= 0) return std::nullopt;
    GuardReport report;
    const ssize_t got = ::recv(socket_.get(), &report, sizeof report, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
    if (got != sizeof report) return died();
    if (report.kind == GuardReport::Kind::kStarted) program_ = report.value;
    return report;
  }

 private:
  GuardedProgram(const ProcessSpec& spec, std::array<int, 2> ends) : socket_(ends[0]) {
    const Descriptor theirs(ends[1]);
    const std::vector<std::string> environment = merged_environment(spec.environment);
    const std::vector<char*> argv = pointers(spec.argv);
    const std::vector<char*> variables = pointers(environment);
    const Descriptor in(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const Descriptor out(opened_output(spec.stdout_file));
    const Descriptor err(opened_output(spec.stderr_file));
    const char* directory = spec.working_directory.empty() ? nullptr : spec.working_directory.c_str();
    const GuardTask task{argv.data(), variables.data(), directory, in.get(), out.get(), err.get(), theirs.get()};
    sigset_t all;
    sigset_t ours;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &ours);
    guard_ = ::fork();
    if (guard_ == 0) run_guard(task);
    const int error = errno;
    ::pthread_sigmask(SIG_SETMASK, &ours, nullptr);
    errno = error;
    if (guard_ < 0) fail("fork", "end other programs");
  }

  // Something killed the guard. Its parent-death signal ends the program, and this call ends the rest of the group.
  GuardReport died() const {
    if (program_ > 0) ::kill(-program_, SIGKILL);
    return {GuardReport::Kind::kEnded, SIGKILL, 0};
  }

  Descriptor socket_;
  pid_t guard_ = -1;
  pid_t program_ = -1;
};

void note(const GuardReport& report, ProcessResult& result) {
  switch (report.kind) {
    case GuardReport::Kind::kStarted:
      return;
    case GuardReport::Kind::kNoDirectory:
      result.start_error = std::string("its working directory: ") + std::strerror(report.value);
      return;
    case GuardReport::Kind::kNotStarted:
      result.start_error = std::strerror(report.value);
      return;
    case GuardReport::Kind::kEnded:
      result.signal = WIFSIGNALED(report.value) ? WTERMSIG(report.value) : 0;
      result.exit_code = WIFSIGNALED(report.value) ? 128 + result.signal : WEXITSTATUS(report.value);
      result.peak_rss_bytes = report.peak_rss_bytes;
      return;
  }
}

// Returns true when the program has ended, or false when `enough` says that it should end.
template <class Enough>
bool wait_until(GuardedProgram& program, double deadline_s, const Enough& enough, const Clock& clock,
                ProcessResult& result) {
  for (;;) {
    const std::optional<GuardReport> report = program.wait(deadline_s - clock.now_s());
    if (report) note(*report, result);
    if (report && report->kind == GuardReport::Kind::kEnded) return true;
    const double now_s = clock.now_s();
    if (now_s >= deadline_s || enough(now_s)) return false;
  }
}

}  // namespace

ProcessResult run_process(const ProcessSpec& spec, const Clock& clock) {
  ProcessResult result;
  const double begin_s = clock.now_s();
  GuardedProgram program(spec);
  Watchdog watchdog(spec, begin_s);
  OutputLimit limit(spec);
  const auto enough = [&](double now_s) {
    result.stopped = spec.stop != nullptr && spec.stop->load();
    result.hung = !result.stopped && watchdog.expired(now_s);
    result.cut_short = !result.stopped && !result.hung && spec.enough && spec.enough();
    limit.look(now_s);
    return result.stopped || result.hung || result.cut_short;
  };
  const auto never = [](double /*now_s*/) { return false; };
  if (!wait_until(program, begin_s + spec.timeout_s, enough, clock, result)) {
    result.timed_out = !result.stopped && !result.hung && !result.cut_short;
    const double patience_ends_s = clock.now_s() + spec.grace_s;
    program.order(GuardOrder::kTerminate);
    if (!wait_until(program, patience_ends_s, never, clock, result)) {
      program.order(GuardOrder::kKill);
      constexpr double kForever = 1e300;
      wait_until(program, kForever, never, clock, result);
    }
  }
  result.wall_s = clock.now_s() - begin_s;
  return result;
}

}  // namespace krigtune::trial
