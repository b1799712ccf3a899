#include "host/sockets.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "krigtune/core/error.h"

namespace krigtune {
namespace {

constexpr double kSliceS = 0.05;  // how often a deadline is looked at
constexpr const char* kHint = "MASTER_ADDR and MASTER_PORT name the host and a free port of rank 0";

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

bool is_loopback(const addrinfo& address) {
  if (address.ai_family == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address.ai_addr)->sin6_addr) != 0;
  }
  return ntohl(reinterpret_cast<const sockaddr_in*>(address.ai_addr)->sin_addr.s_addr) >> 24U == 127U;
}

void set_option(int descriptor, int level, int option) {
  const int on = 1;
  setsockopt(descriptor, level, option, &on, sizeof on);
}

int milliseconds_until(double deadline_s, const Clock& clock) {
  return static_cast<int>(std::clamp(deadline_s - clock.now_s(), 0.001, kSliceS) * 1e3);
}

// False at the deadline.
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

// Of all interfaces unless the address is a loopback one. Nothing where that fails: errno says why.
std::optional<Socket> try_to_listen(addrinfo& address) {
  const int descriptor = ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return std::nullopt;
  Socket socket(descriptor);
  set_option(descriptor, SOL_SOCKET, SO_REUSEADDR);
  if (!is_loopback(address)) {
    if (address.ai_family == AF_INET6) {
      reinterpret_cast<sockaddr_in6*>(address.ai_addr)->sin6_addr = in6addr_any;
    } else {
      reinterpret_cast<sockaddr_in*>(address.ai_addr)->sin_addr.s_addr = htonl(INADDR_ANY);
    }
  }
  const bool listens = bind(descriptor, address.ai_addr, address.ai_addrlen) == 0 && listen(descriptor, SOMAXCONN) == 0;
  const int error = errno;
  if (listens) return socket;
  socket = Socket();  // closing it must not change the reason
  errno = error;
  return std::nullopt;
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

Socket listen_at(const std::string& host, int port) {
  const Addresses addresses = resolve(host, port);
  for (addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    if (std::optional<Socket> socket = try_to_listen(*address)) return std::move(*socket);
    // A name like localhost stands for addresses of both families, and this machine may have only one of them. A port
    // that is taken is another matter: the others would look for this process at the first address.
    if (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT) break;
  }
  throw EnvironmentError(fmt::format("cannot listen at {}:{}: {}", host, port, std::strerror(errno)), kHint);
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

Socket accept_from(const Socket& listener, double deadline_s, const Clock& clock) {
  if (!wait_for(listener.descriptor(), POLLIN, deadline_s, clock)) {
    throw EnvironmentError("not all processes of the job have come", "start as many as WORLD_SIZE says");
  }
  Socket socket(accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
  set_option(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY);
  return socket;
}

}  // namespace krigtune
