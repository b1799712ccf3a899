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
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "core/error.h"
#include "engine/host/communicator.h"

namespace krigtune::engine {
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

namespace {

/// The two directions to one peer within one exchange.
struct Traffic {
  int descriptor = -1;
  int rank = 0;  ///< of the job
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

// Everybody but rank 0 listens at a port of its own and tells it to rank 0, whose address all know; rank 0 answers with
// the table of all addresses. A transport is opened by connecting to all members of lower rank and accepting those of
// higher rank: connecting needs nobody to accept at the other end, so that no order of events can lock up.
namespace {

constexpr std::uint64_t kMagic = 0x6b7269677475'6e65;  // "krigtune"
constexpr double kPatienceWithStrangersS = 2.0;
constexpr double kFarewellS = 1.0;
constexpr int kFirstMeeting = -1;  // in place of a channel

struct Hello {
  std::uint64_t magic = kMagic;
  std::int32_t size = 0;
  std::int32_t rank = 0;
  std::int32_t channel = 0;
  std::int32_t port = 0;
};
struct Address {
  std::array<char, 64> host{};
  std::int32_t port = 0;
};

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}
template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

class SocketProcesses final : public Processes {
 public:
  SocketProcesses(const Rendezvous& rendezvous, const Clock& clock)
      : rank_(rendezvous.rank), size_(rendezvous.size), clock_(clock), patience_s_(rendezvous.patience_s) {
    if (rank_ == 0) {
      introduce_all(rendezvous);
    } else {
      be_introduced(rendezvous);
    }
    std::vector<int> all;
    for (int r = 0; r < size_; ++r) all.push_back(r);
    control_ = open(all);
    controls_ = sockets_.size();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Transport& control() override { return *control_; }

  std::unique_ptr<Transport> open(std::vector<int> members) override {
    const int channel = next_channel_++;
    std::vector<const Socket*> mesh(members.size(), nullptr);
    const auto me = static_cast<std::size_t>(std::find(members.begin(), members.end(), rank_) - members.begin());
    for (std::size_t i = 0; i < me; ++i) mesh[i] = keep(call(members[i], channel));
    for (std::size_t i = me + 1; i < members.size(); ++i) mesh[i] = keep(await(members[i], channel));
    return make_socket_transport(std::move(members), static_cast<int>(me), std::move(mesh), interrupted_);
  }

  void interrupt() override {
    interrupted_ = true;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = controls_; i < sockets_.size(); ++i) sockets_[i]->shut_down();
  }

  void abort(int exit_code) noexcept override {
    const std::int64_t header = -exit_code;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < controls_; ++i) {
      sockets_[i]->send_all(bytes_of(header), clock_.now_s() + kFarewellS, clock_);
    }
    for (const auto& socket : sockets_) socket->shut_down();
  }

  std::optional<int> announced_exit_code() override {
    const double deadline_s = clock_.now_s() + kFarewellS;
    while (clock_.now_s() < deadline_s) {
      for (std::size_t i = 0; i < controls_; ++i) {
        std::int64_t header = 0;
        const ssize_t got = recv(sockets_[i]->descriptor(), &header, sizeof header, MSG_DONTWAIT | MSG_PEEK);
        if (got == sizeof header && header < 0) return static_cast<int>(-header);
      }
      constexpr double kPauseS = 0.01;
      clock_.sleep_until_s(clock_.now_s() + kPauseS);
    }
    return std::nullopt;
  }

 private:
  double deadline_s() const { return clock_.now_s() + patience_s_; }

  const Socket* keep(Socket socket) {
    const std::lock_guard lock(mutex_);
    sockets_.push_back(std::make_unique<Socket>(std::move(socket)));
    return sockets_.back().get();
  }

  // Somebody of this job, or nothing: whatever else finds the port is sent away.
  std::optional<std::pair<Hello, Socket>> greet() {
    Socket socket = accept_from(listener_, deadline_s(), clock_);
    Hello hello;
    hello.magic = 0;
    const bool said = socket.receive_all(bytes_of(hello), clock_.now_s() + kPatienceWithStrangersS, clock_);
    if (!said || hello.magic != kMagic || hello.rank < 0 || hello.rank >= size_) return std::nullopt;
    if (hello.size != size_) {
      throw EnvironmentError(
          fmt::format("rank {} belongs to a job of {} processes, this one to one of {}", hello.rank, hello.size, size_),
          "give all the same WORLD_SIZE");
    }
    return std::pair(hello, std::move(socket));
  }

  void introduce_all(const Rendezvous& rendezvous) {
    listener_ = listen_at(rendezvous.host, rendezvous.port);
    table_.resize(static_cast<std::size_t>(size_));
    std::map<int, Socket> others;
    while (others.size() + 1 < table_.size()) {
      auto guest = greet();
      if (!guest || guest->first.channel != kFirstMeeting) continue;
      const Hello& hello = guest->first;
      Address& address = table_[static_cast<std::size_t>(hello.rank)];
      const std::string host = guest->second.peer_host();
      std::copy_n(host.data(), std::min(host.size(), address.host.size() - 1), address.host.data());
      address.port = hello.port;
      if (!others.emplace(hello.rank, std::move(guest->second)).second) {
        throw EnvironmentError(fmt::format("two processes say that they are rank {}", hello.rank),
                               "give each a RANK of its own");
      }
    }
    for (const auto& [rank, socket] : others) {
      if (!socket.send_all(std::as_bytes(std::span(table_)), deadline_s(), clock_)) throw_peer_lost(rank);
    }
  }

  void be_introduced(const Rendezvous& rendezvous) {
    const Socket first = connect_to(rendezvous.host, rendezvous.port, deadline_s(), clock_);
    listener_ = listen_at(first.local_host(), 0);
    const Hello hello{kMagic, size_, rank_, kFirstMeeting, listener_.local_port()};
    table_.resize(static_cast<std::size_t>(size_));
    if (!first.send_all(bytes_of(hello), deadline_s(), clock_) ||
        !first.receive_all(std::as_writable_bytes(std::span(table_)), deadline_s(), clock_)) {
      throw EnvironmentError(fmt::format("rank 0 at {}:{} does not answer", rendezvous.host, rendezvous.port),
                             "see what rank 0 says");
    }
    Address& master = table_.front();
    master = {};
    std::copy_n(rendezvous.host.data(), std::min(rendezvous.host.size(), master.host.size() - 1), master.host.data());
    master.port = rendezvous.port;
  }

  Socket call(int rank, int channel) {
    const Address& address = table_[static_cast<std::size_t>(rank)];
    Socket socket = connect_to(address.host.data(), address.port, deadline_s(), clock_);
    const Hello hello{kMagic, size_, rank_, channel, 0};
    if (!socket.send_all(bytes_of(hello), deadline_s(), clock_)) throw_peer_lost(rank);
    return socket;
  }

  // Others may come first, and for later channels.
  Socket await(int rank, int channel) {
    const std::pair key(channel, rank);
    while (waiting_.count(key) == 0) {
      if (auto guest = greet()) waiting_[{guest->first.channel, guest->first.rank}] = std::move(guest->second);
    }
    Socket socket = std::move(waiting_[key]);
    waiting_.erase(key);
    return socket;
  }

  int rank_;
  int size_;
  const Clock& clock_;
  double patience_s_;
  Socket listener_;
  std::vector<Address> table_;                     ///< by rank
  std::map<std::pair<int, int>, Socket> waiting_;  ///< by channel and rank
  int next_channel_ = 0;
  std::atomic<bool> interrupted_ = false;
  std::mutex mutex_;                              ///< of the list
  std::vector<std::unique_ptr<Socket>> sockets_;  ///< those of control first
  std::size_t controls_ = 0;
  std::unique_ptr<Transport> control_;
};

}  // namespace

std::unique_ptr<Processes> connect_by_sockets(const Rendezvous& rendezvous, const Clock& clock) {
  return std::make_unique<SocketProcesses>(rendezvous, clock);
}

}  // namespace krigtune::engine
