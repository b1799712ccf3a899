#pragma once
#include <functional>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "engine/host/sockets.h"

namespace krigtune {

/// Returns a port on which nobody listened a moment ago.
inline int free_port() { return engine::listen_at(engine::loopback_host(), 0).local_port(); }

/// Runs `work` as each of `size` processes, which are threads joined by sockets.
inline void as_processes(int size, const std::function<void(engine::Processes&)>& work) {
  const SystemClock clock;
  const int port = free_port();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      work(*engine::connect_by_sockets({rank, size, engine::loopback_host(), port, 20.0}, clock));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace krigtune
