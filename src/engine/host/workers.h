#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace krigtune {

/// One thread per job, each of which runs its job once a round.
class Workers {
 public:
  /// `on_failure` is called from the thread of the first job that throws, to free the others.
  Workers(std::vector<std::function<void()>> jobs, std::function<void()> on_failure);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Runs every job once and returns when all have ended. Throws what the first failing job threw.
  void run_round();

 private:
  void work(const std::function<void()>& job);
  void record_failure();

  std::function<void()> on_failure_;
  std::atomic<std::int32_t> round_{0};
  std::atomic<std::int32_t> busy_{0};
  std::atomic<bool> stopping_{false};
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  std::vector<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
};

}  // namespace krigtune
