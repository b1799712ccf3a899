#pragma once
#include <cstddef>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace krigtune {

/// Calls work(0), ..., work(threads - 1) at the same time, work(0) in the calling thread, and waits for all of them.
/// If calls throw, the exception of the lowest number is thrown again after all have ended.
///
///   run_side_by_side(4, [&](std::size_t thread) { for (std::size_t i = thread; i < n; i += 4) fill(i); });
inline void run_side_by_side(std::size_t threads, const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> errors(threads);
  const auto guarded = [&](std::size_t thread) {
    try {
      work(thread);
    } catch (...) {
      errors[thread] = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (std::size_t thread = 1; thread < threads; ++thread) others.emplace_back(guarded, thread);
  if (threads > 0) guarded(0);
  for (std::thread& other : others) other.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace krigtune
