// Signals are blocked, and a thread reads them from a file descriptor, so no signal handler and no global state is
// needed.
#include "programs/krigtune/interrupt.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace krigtune::cli {

namespace {

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

Interrupt::Interrupt(std::function<void()> on_first, std::function<void()> on_end)
    : on_first_(std::move(on_first)), on_end_(std::move(on_end)) {
  ::sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    if (!is_ignored(signal)) ::sigaddset(&signals_, signal);
  }
  signal_file_ = ::signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK);
  wake_file_ = ::eventfd(0, EFD_CLOEXEC);
  if (signal_file_ < 0 || wake_file_ < 0) {
    throw EnvironmentError(std::string("cannot watch for signals: ") + std::strerror(errno), "close some files");
  }
  ::pthread_sigmask(SIG_BLOCK, &signals_, &mask_before_);
  watcher_ = std::thread([this] { watch(); });
}

Interrupt::~Interrupt() {
  const std::uint64_t one = 1;
  // The counter is 0 and takes 8 bytes at once, so this write cannot fail or be short.
  [[maybe_unused]] const ssize_t written = ::write(wake_file_, &one, sizeof one);
  watcher_.join();
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  ::close(signal_file_);
  ::close(wake_file_);
}

void Interrupt::watch() {
  std::array<pollfd, 2> files{{{signal_file_, POLLIN, 0}, {wake_file_, POLLIN, 0}}};
  while (true) {
    if (::poll(files.data(), files.size(), -1) < 0 && errno != EINTR) return;
    if ((files[1].revents & POLLIN) != 0) return;
    signalfd_siginfo info{};
    if (::read(signal_file_, &info, sizeof info) == sizeof info) receive(static_cast<int>(info.ssi_signo));
  }
}

void Interrupt::receive(int signal) {
  if (abort_) {  // requested twice: let the signal have its usual effect
    std::signal(signal, SIG_DFL);
    ::pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
    ::raise(signal);
  }
  const bool at_once = stop_ || signal != SIGINT;
  if (signal != SIGINT) {
    from_outside_ = true;
    on_end_();
  }
  stop_ = true;
  if (at_once) {
    abort_ = true;
  } else {
    on_first_();
  }
}

}  // namespace krigtune::cli
