#include "engine/host/sockets.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "core/error.h"
#include "engine/host/communicator.h"

namespace krigtune::engine {
namespace {

constexpr double kSliceS = 0.05;  // how often the deadline is checked
constexpr const char* kHint = "MASTER_ADDR and MASTER_PORT name the host and a free port of rank 0";
constexpr const char* kEverywhereHint =
    "set KRIGTUNE_TOKEN to the same random text in all processes, to listen at all addresses of this machine";

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0) throw EnvironmentError(fmt::format("host '{}': {}", host, gai_strerror(error)), kHint);
  return Addresses(list);
}

void set_option(int descriptor, int level, int option) {
  const int on = 1;
  setsockopt(descriptor, level, option, &on, sizeof on);
}

int milliseconds_until(double deadline_s, const Clock& clock) {
  return static_cast<int>(std::clamp(deadline_s - clock.now_s(), 0.001, kSliceS) * 1e3);
}

// Returns false at the deadline.
bool wait_for(int descriptor, short events, double deadline_s, const Clock& clock) {
  while (clock.now_s() < deadline_s) {
    pollfd event{descriptor, events, 0};
    if (poll(&event, 1, milliseconds_until(deadline_s, clock)) > 0) return true;
  }
  return false;
}

bool may_go_on(ssize_t done) { return done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR); }

using Name = std::array<char, NI_MAXHOST>;

std::pair<std::string, std::string> numeric(const sockaddr_storage& address, socklen_t length) {
  Name host{};
  Name port{};
  getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host.data(), host.size(), port.data(), port.size(),
              NI_NUMERICHOST | NI_NUMERICSERV);
  return {host.data(), port.data()};
}

std::pair<std::string, std::string> local_name(int descriptor) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length);
  return numeric(address, length);
}

// Returns nothing on failure, with the reason in errno.
std::optional<Socket> try_to_listen(const addrinfo& address) {
  const int descriptor = ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return std::nullopt;
  Socket socket(descriptor);
  set_option(descriptor, SOL_SOCKET, SO_REUSEADDR);
  const bool listens = bind(descriptor, address.ai_addr, address.ai_addrlen) == 0 && listen(descriptor, SOMAXCONN) == 0;
  const int error = errno;
  if (listens) return socket;
  socket = Socket();  // closing it must not change errno
  errno = error;
  return std::nullopt;
}

void set_everywhere(const addrinfo& address) {
  if (address.ai_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address.ai_addr)->sin6_addr = in6addr_any;
  } else {
    reinterpret_cast<sockaddr_in*>(address.ai_addr)->sin_addr.s_addr = htonl(INADDR_ANY);
  }
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}
Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

void Socket::shut_down() const { shutdown(descriptor_, SHUT_RDWR); }

bool Socket::send_all(std::span<const std::byte> data, double deadline_s, const Clock& clock) const {
  while (!data.empty()) {
    const ssize_t done = send(descriptor_, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done > 0) data = data.subspan(static_cast<std::size_t>(done));
    if (done <= 0 && !(may_go_on(done) && wait_for(descriptor_, POLLOUT, deadline_s, clock))) return false;
  }
  return true;
}

bool Socket::receive_all(std::span<std::byte> data, double deadline_s, const Clock& clock) const {
  while (!data.empty()) {
    const ssize_t done = recv(descriptor_, data.data(), data.size(), MSG_DONTWAIT);
    if (done > 0) data = data.subspan(static_cast<std::size_t>(done));
    if (done <= 0 && !(may_go_on(done) && wait_for(descriptor_, POLLIN, deadline_s, clock))) return false;
  }
  return true;
}

std::string Socket::local_host() const { return local_name(descriptor_).first; }
int Socket::local_port() const { return std::stoi(local_name(descriptor_).second); }

std::string Socket::peer_host() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getpeername(descriptor_, reinterpret_cast<sockaddr*>(&address), &length);
  return numeric(address, length).first;
}

std::string loopback_host() {
  constexpr const char* kIpv4 = "127.0.0.1";
  return try_to_listen(*resolve(kIpv4, 0)) ? kIpv4 : "::1";
}

Socket listen_at(const std::string& host, int port, Elsewhere elsewhere) {
  const Addresses addresses = resolve(host, port);
  for (addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    if (std::optional<Socket> socket = try_to_listen(*address)) return std::move(*socket);
    // A name such as localhost has addresses of both families, and this machine may support only one of them. A port
    // that is already in use is different: the others would look for this process at the first address.
    if (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT) break;
  }
  const int reason = errno;
  // The address may belong to a service or a router that forwards to this machine.
  if (reason == EADDRNOTAVAIL && elsewhere == Elsewhere::kEverywhere) {
    set_everywhere(*addresses);
    if (std::optional<Socket> socket = try_to_listen(*addresses)) return std::move(*socket);
  }
  throw EnvironmentError(fmt::format("cannot listen at {}:{}: {}", host, port, std::strerror(reason)),
                         reason == EADDRNOTAVAIL && elsewhere == Elsewhere::kNowhere ? kEverywhereHint : kHint);
}

Socket connect_to(const std::string& host, int port, double deadline_s, const Clock& clock) {
  const Addresses addresses = resolve(host, port);
  int error = 0;
  do {
    for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
      Socket socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (connect(socket.descriptor(), address->ai_addr, address->ai_addrlen) == 0) {
        set_option(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY);
        return socket;
      }
      error = errno;
    }
    clock.sleep_until_s(clock.now_s() + kSliceS);
  } while (clock.now_s() < deadline_s);
  throw EnvironmentError(fmt::format("nobody answers at {}:{}: {}", host, port, std::strerror(error)), kHint);
}

namespace {

/// The two directions to one peer in one exchange.
struct Traffic {
  int descriptor = -1;
  int rank = 0;  ///< in the job
  std::int64_t out_header = 0;
  std::int64_t in_header = 0;
  std::array<std::span<const std::byte>, 2> out;
  std::array<std::span<std::byte>, 2> in;

  bool sends() const { return !out[0].empty() || !out[1].empty(); }
  bool receives() const { return !in[0].empty() || !in[1].empty(); }

  void send_some() {
    for (auto& piece : out) {
      if (piece.empty()) continue;
      const ssize_t done = send(descriptor, piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (done < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (done <= 0) throw_peer_lost(rank);
      piece = piece.subspan(static_cast<std::size_t>(done));
      if (!piece.empty()) return;
    }
  }

  void receive_some() {
    for (auto& piece : in) {
      if (piece.empty()) continue;
      const ssize_t done = recv(descriptor, piece.data(), piece.size(), MSG_DONTWAIT);
      if (done < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (done <= 0) throw_peer_lost(rank);
      piece = piece.subspan(static_cast<std::size_t>(done));
      if (!piece.empty()) return;
      if (&piece == &in[0] && in_header != static_cast<std::int64_t>(in[1].size())) throw_peer_lost(rank);
    }
  }
};

class SocketTransport final : public Transport {
 public:
  SocketTransport(std::vector<int> members, int rank, std::vector<const Socket*> sockets,
                  const std::atomic<bool>& interrupted)
      : members_(std::move(members)), rank_(rank), sockets_(std::move(sockets)), interrupted_(interrupted) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }

  void exchange(std::span<const std::span<const std::byte>> out, std::span<const std::span<std::byte>> in) override {
    try {
      begin(out, in);
      while (progress()) {
      }
    } catch (const PeerLost&) {
      if (interrupted_) throw Aborted();
      throw;
    }
  }

 private:
  void begin(std::span<const std::span<const std::byte>> out, std::span<const std::span<std::byte>> in) {
    traffic_.resize(members_.size());
    for (std::size_t i = 0; i < members_.size(); ++i) {
      Traffic& traffic = traffic_[i];
      traffic = {};
      if (static_cast<int>(i) == rank_) continue;
      traffic.descriptor = sockets_[i]->descriptor();
      traffic.rank = members_[i];
      traffic.out_header = static_cast<std::int64_t>(out[i].size());
      const std::int64_t& header = traffic.out_header;
      if (!out[i].empty()) traffic.out = {{std::as_bytes(std::span(&header, 1)), out[i]}};
      if (!in[i].empty()) traffic.in = {{std::as_writable_bytes(std::span(&traffic.in_header, 1)), in[i]}};
    }
  }

  bool progress() {
    polled_.clear();
    for (const Traffic& traffic : traffic_) {
      const int events = (traffic.sends() ? POLLOUT : 0) | (traffic.receives() ? POLLIN : 0);
      polled_.push_back({events == 0 ? -1 : traffic.descriptor, static_cast<short>(events), 0});
    }
    if (std::all_of(polled_.begin(), polled_.end(), [](const pollfd& one) { return one.fd < 0; })) return false;
    if (poll(polled_.data(), polled_.size(), -1) < 0) return true;
    for (std::size_t i = 0; i < polled_.size(); ++i) {
      const auto happened = static_cast<unsigned>(polled_[i].revents);
      if ((happened & (POLLIN | POLLHUP | POLLERR)) != 0) traffic_[i].receive_some();
      if ((happened & (POLLOUT | POLLHUP | POLLERR)) != 0) traffic_[i].send_some();
    }
    return true;
  }

  std::vector<int> members_;
  int rank_;  ///< among the members
  std::vector<const Socket*> sockets_;
  const std::atomic<bool>& interrupted_;
  std::vector<Traffic> traffic_;
  std::vector<pollfd> polled_;
};

}  // namespace

void throw_peer_lost(int rank) { throw PeerLost(fmt::format("the process of rank {} is gone", rank)); }

std::unique_ptr<Transport> make_socket_transport(std::vector<int> members, int rank, std::vector<const Socket*> sockets,
                                                 const std::atomic<bool>& interrupted) {
  return std::make_unique<SocketTransport>(std::move(members), rank, std::move(sockets), interrupted);
}

}  // namespace krigtune::engine
