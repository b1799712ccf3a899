#pragma once
#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

namespace krigtune::cli {

/// As long as it lives, SIGINT, SIGTERM, SIGHUP and SIGUSR1 are requests to the program and do not end the process.
/// Signals that are ignored at its construction stay ignored, because nohup and a shell's "&" keep a program running
/// that way. The first SIGINT asks the program to stop after the running trial. A second SIGINT, or any of the others,
/// asks it to end the trial as well (a batch system sends SIGTERM before a time limit, or the SIGUSR1 of `sbatch
/// --signal=B:USR1@60`). The next signal has its usual effect. Construct it before any other thread, because threads
/// inherit the signal mask.
class Interrupt {
 public:
  /// Both functions are called from a separate thread: `on_first` at the first SIGINT, `on_end` before a SIGTERM,
  /// SIGHUP or SIGUSR1 ends the running trial. `on_end` may end the process itself.
  explicit Interrupt(
      std::function<void()> on_first, std::function<void()> on_end = [] {});
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  const std::atomic<bool>& stop() const { return stop_; }    ///< begin no further trial
  const std::atomic<bool>& abort() const { return abort_; }  ///< end the running trial
  /// A signal other than SIGINT came, so another program ends this process and nobody is at the keyboard.
  bool is_from_outside() const { return from_outside_; }

 private:
  void watch();
  void receive(int signal);

  std::function<void()> on_first_;
  std::function<void()> on_end_;
  std::atomic<bool> from_outside_{false};
  std::atomic<bool> stop_{false};
  std::atomic<bool> abort_{false};
  sigset_t signals_{};
  sigset_t mask_before_{};
  int signal_file_ = -1;
  int wake_file_ = -1;
  std::thread watcher_;
};

}  // namespace krigtune::cli
