// No process of a trial may outlive the trial or krigtune, whatever ends them. A process that is killed with SIGKILL
// cleans up nothing, so another one must: the guard, which is forked before the program and is its parent. As a
// subreaper (prctl(2)) it becomes the parent of every descendant whose own parent has died, including those that called
// setsid. So it kills and reaps its children, and looks for new ones, until there are none.
#include "trial/guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

namespace krigtune::trial {
namespace {

constexpr int kSocket = 3;  // where the guard keeps the only descriptor that it uses
constexpr long kRescanNs = 10'000'000;
constexpr int kVainRescans = 500;  // afterwards the remaining ones cannot be found or killed (a setuid program)

struct End {
  int status = 0;
  std::int64_t peak_rss_bytes = 0;
};

void wake_up(int /*signal*/) {}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigaction(signal, &action, nullptr);
}

sigset_t all_signals() {
  sigset_t all;
  ::sigfillset(&all);
  return all;
}

// The signals that are blocked while the guard waits.
sigset_t all_but_children() {
  sigset_t set = all_signals();
  ::sigdelset(&set, SIGCHLD);
  return set;
}

void report(int socket, GuardReport::Kind kind, int value, std::int64_t peak_rss_bytes = 0) {
  const GuardReport message{kind, value, peak_rss_bytes};
  while (::send(socket, &message, sizeof message, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

[[noreturn]] void become_program(const GuardTask& task, pid_t guard) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != guard) ::_exit(127);  // it died before the prctl above
  // Signals were blocked until here, so those that arrived meanwhile reach the program.
  for (int signal = 1; signal < NSIG; ++signal) handle(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(task.in, STDIN_FILENO);
  ::dup2(task.out, STDOUT_FILENO);
  ::dup2(task.err, STDERR_FILENO);
  ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  if (task.working_directory != nullptr && ::chdir(task.working_directory) != 0) {
    report(task.socket, GuardReport::Kind::kNoDirectory, errno);
    ::_exit(127);
  }
  environ = const_cast<char**>(task.environment);  // makes execvp search the PATH that the program will see
  ::execvp(task.argv[0], task.argv);
  report(task.socket, GuardReport::Kind::kNotStarted, errno);
  ::_exit(127);
}

// The guard must not keep open what krigtune had open (the run directory's lock, a pipe to a pager).
void keep_only_the_socket(const GuardTask& task) {
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(task.in, standard);
  ::dup2(task.socket, kSocket);
  ::close_range(kSocket + 1, ~0U, 0);
}

void add_peak(const rusage& usage, End& end) {
  constexpr std::int64_t kKib = 1024;  // the unit of ru_maxrss: getrusage(2)
  end.peak_rss_bytes = std::max(end.peak_rss_bytes, usage.ru_maxrss * kKib);
}

// Reaps orphans, but not the program: its process id names the group and must not be reused yet.
bool has_ended(pid_t program, End& end) {
  for (;;) {
    siginfo_t info{};
    const int rc = ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
    if (rc != 0 || info.si_pid == 0) return false;
    if (info.si_pid == program) return true;
    rusage usage{};
    if (::wait4(info.si_pid, nullptr, WNOHANG, &usage) > 0) add_peak(usage, end);
  }
}

// Waits until the program has ended or must be killed.
void obey(pid_t program, End& end) {
  const sigset_t waiting = all_but_children();
  while (!has_ended(program, end)) {
    pollfd event{kSocket, POLLIN, 0};
    if (::ppoll(&event, 1, nullptr, &waiting) <= 0) continue;
    char order = 0;
    const ssize_t got = ::recv(kSocket, &order, 1, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0 || order == static_cast<char>(GuardOrder::kKill)) return;
    ::kill(-program, SIGTERM);
  }
}

pid_t number_of(const char* name) {
  pid_t number = 0;
  for (; *name >= '0' && *name <= '9'; ++name) number = 10 * number + (*name - '0');
  return *name == '\0' ? number : 0;
}

// Reads /proc/<pid>/stat: "pid (name) state parent ...". The name may contain any characters.
pid_t parent_of(int proc, const char* pid) {
  char path[32] = {};
  std::size_t length = 0;
  for (const char* part : {pid, "/stat"}) {
    for (; *part != '\0' && length + 1 < sizeof path; ++part) path[length++] = *part;
  }
  const int file = ::openat(proc, path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[512] = {};
  const ssize_t got = ::read(file, text, sizeof text - 1);
  ::close(file);
  const char* close = got > 0 ? std::strrchr(text, ')') : nullptr;
  if (close == nullptr || close + 4 >= text + got) return 0;
  pid_t parent = 0;
  for (const char* digit = close + 4; *digit >= '0' && *digit <= '9'; ++digit) parent = 10 * parent + (*digit - '0');
  return parent;
}

// Returns false if there is no child that it could send SIGKILL to. (One file, /proc/<pid>/task/<tid>/children, would
// be enough, but kernels may be built without it.)
bool kill_children() {
  const pid_t self = ::getpid();
  const int proc = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return false;
  bool any = false;
  alignas(dirent64) char entries[16384];
  for (long got = 0; (got = ::syscall(SYS_getdents64, proc, entries, sizeof entries)) > 0;) {
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      at += entry->d_reclen;
      const pid_t pid = number_of(entry->d_name);
      if (pid > 0 && parent_of(proc, entry->d_name) == self && ::kill(pid, SIGKILL) == 0) any = true;
    }
  }
  ::close(proc);
  return any;
}

// Returns when no descendant is left.
void end_all(pid_t program, End& end) {
  const sigset_t waiting = all_but_children();
  ::kill(-program, SIGKILL);
  for (int vain = 0; vain < kVainRescans;) {
    int status = 0;
    rusage usage{};
    pid_t reaped = 0;
    while ((reaped = ::wait4(-1, &status, WNOHANG, &usage)) > 0) {
      if (reaped == program) end.status = status;
      add_peak(usage, end);
    }
    if (reaped < 0 && errno == ECHILD) return;
    if (!kill_children()) ++vain;
    const timespec pause{0, kRescanNs};
    ::ppoll(nullptr, 0, &pause, &waiting);
  }
}

}  // namespace

void run_guard(const GuardTask& task) {
  ::prctl(PR_SET_NAME, "trial-guard");
  ::setsid();  // so a terminal's Ctrl-C reaches neither the guard nor the program
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // A batch system signals all processes of a job at once. The guard must be the last to end, so it blocks all signals.
  // It receives SIGCHLD only while it waits, so it misses none.
  const sigset_t all = all_signals();
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  handle(SIGCHLD, wake_up);
  const pid_t guard = ::getpid();
  const pid_t program = ::_Fork();
  if (program == 0) become_program(task, guard);
  if (program < 0) {
    report(task.socket, GuardReport::Kind::kNotStarted, errno);
    ::_exit(1);
  }
  ::setpgid(program, program);  // in both processes, so that the group exists before anyone signals it
  keep_only_the_socket(task);
  report(kSocket, GuardReport::Kind::kStarted, program);
  End end;
  obey(program, end);
  end_all(program, end);
  report(kSocket, GuardReport::Kind::kEnded, end.status, end.peak_rss_bytes);
  ::_exit(0);
}

}  // namespace krigtune::trial
