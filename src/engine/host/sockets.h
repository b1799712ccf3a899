#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "engine/host/processes.h"

namespace krigtune::engine {

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
/// Where to listen if this machine does not have the address.
enum class Elsewhere { kNowhere, kEverywhere };
/// Listens on `port` (0: any) of `host`, at that address only. Throws EnvironmentError.
Socket listen_at(const std::string& host, int port, Elsewhere elsewhere = Elsewhere::kNowhere);
/// Again and again until somebody listens there. Throws EnvironmentError at the deadline.
Socket connect_to(const std::string& host, int port, double deadline_s, const Clock& clock);
[[noreturn]] void throw_peer_lost(int rank);

/// A transport over connected sockets, one to each other member (our own is null), which must outlive it. A message is
/// preceded by its length. A negative length is an exit code: whoever sends it is about to end the job. `rank`: among
/// the members. Once `interrupted`, a connection that ends is taken for our own doing.
std::unique_ptr<Transport> make_socket_transport(std::vector<int> members, int rank, std::vector<const Socket*> sockets,
                                                 const std::atomic<bool>& interrupted);

/// Where the processes of a job find one another: rank 0 listens at host:port.
struct Rendezvous {
  int rank = 0;
  int size = 1;
  std::string host;
  int port = 0;
  double patience_s = 60.0;  ///< for the last to come
  std::string token = "";    ///< what all processes of the job know and nobody else does; "": nothing is secret
};

/// Processes joined by TCP: each transport is a full mesh of connections of its own, so that several can be used at
/// once. Who does not know the token is sent away; who says nothing keeps nobody waiting. What travels afterwards is
/// not encrypted. Throws EnvironmentError where they do not find one another. `clock` must outlive it.
std::unique_ptr<Processes> connect_by_sockets(const Rendezvous& rendezvous, const Clock& clock);

}  // namespace krigtune::engine
