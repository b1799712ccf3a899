#pragma once
#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

namespace krigtune::cli {

/// While it lives, SIGINT, SIGTERM, SIGHUP and SIGUSR1 are requests that somebody answers, and no end of the process.
/// Those that are ignored at its start stay ignored: that is how nohup and a shell's "&" keep a program running.
/// The first SIGINT asks to stop after the running trial; a second, or any of the others, to end the trial as well
/// (a batch system sends SIGTERM, or the SIGUSR1 of `sbatch --signal=B:USR1@60`, before a time limit); after that
/// SIGINT ends the process as it would have without. Make it before any other thread: they inherit the mask.
class Interrupt {
 public:
  /// Both are called from a thread of their own: `on_first` at the first SIGINT; `on_end` before a SIGTERM, SIGHUP or
  /// SIGUSR1 ends what runs, and it may end the process itself.
  explicit Interrupt(
      std::function<void()> on_first, std::function<void()> on_end = [] {});
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  const std::atomic<bool>& stop() const { return stop_; }    ///< begin nothing new
  const std::atomic<bool>& abort() const { return abort_; }  ///< end what runs
  /// A signal other than SIGINT came: somebody ends this process, and nobody is at the keyboard.
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
