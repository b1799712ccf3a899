#pragma once
#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

namespace krigtune::cli {

/// While it lives, SIGINT, SIGTERM and SIGHUP are requests that somebody answers, and no end of the process.
/// The first SIGINT asks to stop after the running trial; a second, or any SIGTERM or SIGHUP, to end the trial as well;
/// after that SIGINT ends the process as it would have without. Make it before any other thread: they inherit the mask.
class Interrupt {
 public:
  /// `on_first` is called from a thread of its own.
  explicit Interrupt(std::function<void()> on_first);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  const std::atomic<bool>& stop() const { return stop_; }    ///< begin nothing new
  const std::atomic<bool>& abort() const { return abort_; }  ///< end what runs

 private:
  void watch();
  void receive(int signal);

  std::function<void()> on_first_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> abort_{false};
  sigset_t signals_{};
  sigset_t mask_before_{};
  int signal_file_ = -1;
  int wake_file_ = -1;
  std::thread watcher_;
};

}  // namespace krigtune::cli
