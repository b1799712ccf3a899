// Everybody but rank 0 listens at a port of its own and tells it to rank 0, whose address all know; rank 0 answers with
// the table of all addresses. A transport is opened by connecting to all members of lower rank and accepting those of
// higher rank: connecting needs nobody to accept at the other end, so that no order of events can lock up.
#include "host/socket_processes.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "host/socket_transport.h"
#include "host/sockets.h"
#include "krigtune/core/error.h"

namespace krigtune {
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

}  // namespace krigtune
