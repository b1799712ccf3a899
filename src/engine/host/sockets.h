#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "krigtune/core/clock.h"

namespace krigtune {

/// A TCP socket, closed at its end.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int descriptor() const { return descriptor_; }
  /// Ends both directions at once, for whoever waits on either side. From any thread.
  void shut_down() const;

  /// All of it, or false: the other side is gone, or the clock has reached the deadline.
  bool send_all(std::span<const std::byte> data, double deadline_s, const Clock& clock) const;
  bool receive_all(std::span<std::byte> data, double deadline_s, const Clock& clock) const;

  std::string local_host() const;  ///< numeric
  std::string peer_host() const;
  int local_port() const;

 private:
  int descriptor_ = -1;
};

/// The address at which processes of one machine meet: 127.0.0.1, or ::1 where the machine has IPv6 only.
std::string loopback_host();
/// Listens on `port` (0: any) of `host`; of all interfaces unless that is a loopback address. Throws EnvironmentError.
Socket listen_at(const std::string& host, int port);
/// Again and again until somebody listens there. Throws EnvironmentError at the deadline.
Socket connect_to(const std::string& host, int port, double deadline_s, const Clock& clock);
/// Throws EnvironmentError at the deadline.
Socket accept_from(const Socket& listener, double deadline_s, const Clock& clock);

}  // namespace krigtune
