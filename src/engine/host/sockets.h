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

/// A TCP socket that is closed by its destructor.
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
  /// Ends both directions at once for everybody who waits on either side. Safe from any thread.
  void shut_down() const;

  /// Sends all data. Returns false if the other side has gone or the clock has reached the deadline.
  bool send_all(std::span<const std::byte> data, double deadline_s, const Clock& clock) const;
  bool receive_all(std::span<std::byte> data, double deadline_s, const Clock& clock) const;

  std::string local_host() const;  ///< in numeric form
  std::string peer_host() const;
  int local_port() const;

 private:
  int descriptor_ = -1;
};

/// Returns the address at which processes of one machine meet: 127.0.0.1, or ::1 if the machine has only IPv6.
std::string loopback_host();
/// Where to listen if this machine does not have the address.
enum class Elsewhere { kNowhere, kEverywhere };
/// Listens on `port` (0: any) of `host`, at that address only. Throws EnvironmentError.
Socket listen_at(const std::string& host, int port, Elsewhere elsewhere = Elsewhere::kNowhere);
/// Tries to connect until somebody listens there. Throws EnvironmentError at the deadline.
Socket connect_to(const std::string& host, int port, double deadline_s, const Clock& clock);
[[noreturn]] void throw_peer_lost(int rank);

/// Makes a transport over connected sockets, one for each other member (the entry for this process is null). They must
/// outlive the transport. A message is preceded by its length; a negative length is an exit code, and means that the
/// sender is about to end the job. `rank` counts among the members. Once `interrupted`, an ended connection counts as
/// aborted by this process.
std::unique_ptr<Transport> make_socket_transport(std::vector<int> members, int rank, std::vector<const Socket*> sockets,
                                                 const std::atomic<bool>& interrupted);

/// Where the processes of a job find one another: rank 0 listens at host:port.
struct Rendezvous {
  int rank = 0;
  int size = 1;
  std::string host;
  int port = 0;
  double patience_s = 60.0;  ///< how long to wait for the last process
  std::string token = "";    ///< a secret that all processes of the job share; "": no secret
};

/// Connects the processes by TCP. Each transport is a full mesh of connections of its own, so that several can be used
/// at once. A connection without the token is refused, and one that is silent delays nobody. Later data are not
/// encrypted. Throws EnvironmentError if the processes do not find one another. `clock` must outlive the result.
std::unique_ptr<Processes> connect_by_sockets(const Rendezvous& rendezvous, const Clock& clock);

}  // namespace krigtune::engine
