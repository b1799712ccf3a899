#pragma once
#include <unistd.h>

#include <functional>
#include <thread>
#include <vector>

#include "host/socket_processes.h"
#include "krigtune/core/clock.h"

namespace krigtune {

/// Tests that run side by side do not share it; the jobs of one come one after the other.
inline int free_port() { return 10000 + static_cast<int>(getpid() % 10000); }

/// Runs `work` as each of `size` processes, which are threads joined by sockets.
inline void as_processes(int size, const std::function<void(Processes&)>& work) {
  const SystemClock clock;
  const int port = free_port();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] { work(*connect_by_sockets({rank, size, "127.0.0.1", port, 20.0}, clock)); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace krigtune
