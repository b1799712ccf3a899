#include "programs/bench/heartbeat.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"

namespace krigtune::bench {

Heartbeat::Heartbeat(const std::filesystem::path& file, const Clock& clock) : clock_(clock), begin_s_(clock.now_s()) {
  if (file.empty()) return;
  // Open files of this process are symbolic links in /dev and /proc. In a run directory, symbolic links are not
  // followed.
  const bool is_of_system = file.string().starts_with("/dev/") || file.string().starts_with("/proc/");
  const int links = is_of_system ? 0 : O_NOFOLLOW;
  file_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | links, 0666);
  if (file_ < 0) {
    throw EnvironmentError("cannot write '" + file.string() + "': " + std::strerror(errno), "see --heartbeat");
  }
}

Heartbeat::~Heartbeat() {
  if (file_ >= 0) ::close(file_);
}

void Heartbeat::beat(const std::string& phase, std::int64_t step, const std::map<std::string, double>& numbers) {
  const std::lock_guard lock(mutex_);
  last_ = {phase, step, clock_.now_s()};
  if (file_ < 0) return;
  Json json = {{"phase", phase}, {"step", step}, {"t_s", last_.at_s - begin_s_}};
  for (const auto& [name, number] : numbers) json[name] = number;
  const std::string line = json.dump() + "\n";
  // If nobody reads the file any more, the run continues.
  if (lost_.empty() && !write_all(file_, line) && errno != EPIPE) lost_ = std::strerror(errno);
}

Beat Heartbeat::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

std::string Heartbeat::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

Watchdog::Watchdog(const Heartbeat& heartbeat, double limit_s, const Clock& clock,
                   std::function<void(const Beat&)> on_hang)
    : heartbeat_(heartbeat), limit_s_(limit_s), clock_(clock), on_hang_(std::move(on_hang)), thread_([this] {
        watch();
      }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

// Waits in short slices, so that the time is that of the clock passed in.
void Watchdog::watch() {
  constexpr double kLongestSliceS = 0.25;
  const std::chrono::duration<double> slice(std::min(kLongestSliceS, limit_s_ / 10.0));
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, slice, [&] { return end_; })) {
    const Beat last = heartbeat_.last();
    if (clock_.now_s() - last.at_s < limit_s_) continue;
    lock.unlock();
    on_hang_(last);
    return;
  }
}

}  // namespace krigtune::bench
