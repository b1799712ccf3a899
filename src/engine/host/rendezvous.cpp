// How the processes of a job find one another. All ranks except 0 listen on a port of their own and tell it to rank 0,
// whose address all know. Rank 0 answers with the table of all addresses. A transport is opened by connecting to all
// members of lower rank and accepting those of higher rank. Connecting does not need the other end to accept, so no
// order of events leads to a deadlock.
//
// Whoever connects sends a Hello with its code, which is the HMAC-SHA-256 of the Hello under the job's token. Rank 0's
// table comes with the code of the table and of the random number in that Hello. So the token itself is never sent, a
// stranger can neither join nor pose as rank 0, and the answer of an earlier job cannot be replayed. All who connect
// are heard at the same time, and none for longer than a moment, so a stranger does not delay the job.
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/secret.h"
#include "engine/host/sockets.h"

namespace krigtune::engine {
namespace {

constexpr std::uint64_t kMagic = 0x6b7269677475'6e66;  // "krigtunf": the version "krigtune" had no code
constexpr double kPatienceWithStrangersS = 2.0;
constexpr std::size_t kMostStrangers = 128;
constexpr double kFarewellS = 1.0;
constexpr double kListeningSliceS = 0.05;
constexpr int kFirstMeeting = -1;  // used in place of a channel
constexpr const char* kTokenHint = "start as many as WORLD_SIZE says, all with the same KRIGTUNE_TOKEN or without one";

struct Hello {
  std::uint64_t magic = kMagic;
  std::int32_t size = 0;
  std::int32_t rank = 0;
  std::int32_t channel = 0;
  std::int32_t port = 0;
  std::array<std::byte, 16> nonce{};
  Digest code{};  ///< of all fields before it
};
struct Address {
  std::array<char, 64> host{};
  std::int32_t port = 0;
};

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

Digest code_of(const Hello& hello, const std::string& token) {
  return hmac_sha256(token, bytes_of(hello).first(offsetof(Hello, code)));
}

// Returns the code of rank 0's answer to that Hello.
Digest code_of(const std::vector<Address>& table, const Hello& hello, const std::string& token) {
  std::vector<std::byte> said(hello.nonce.begin(), hello.nonce.end());
  const auto bytes = std::as_bytes(std::span(table));
  said.insert(said.end(), bytes.begin(), bytes.end());
  return hmac_sha256(token, said);
}

void put_host(const std::string& host, Address& address) {
  std::copy_n(host.data(), std::min(host.size(), address.host.size() - 1), address.host.data());
}

/// A connection that has not sent all of its Hello yet.
struct Guest {
  Socket socket;
  double until_s = 0.0;
  std::array<std::byte, sizeof(Hello)> said{};
  std::size_t got = 0;
};

/// Accepts the connections that belong to the job.
class Door {
 public:
  Door(std::string token, int size, const Clock& clock) : token_(std::move(token)), size_(size), clock_(clock) {}

  void listen_with(Socket listener) { listener_ = std::move(listener); }
  int port() const { return listener_.local_port(); }

  /// Returns the next connection that belongs to the job. Throws EnvironmentError at the deadline, or if the connection
  /// comes from a job of another size.
  std::pair<Hello, Socket> next(double deadline_s) {
    while (clock_.now_s() < deadline_s) {
      wait();
      if (std::optional<std::pair<Hello, Socket>> member = listen_to_guests()) return std::move(*member);
    }
    throw EnvironmentError(
        fmt::format("not all processes of the job have come{}",
                    sent_away_ > 0 ? fmt::format("; {} who did not know its token were sent away", sent_away_) : ""),
        kTokenHint);
  }

 private:
  void wait() {
    std::vector<pollfd> polled = {{listener_.descriptor(), POLLIN, 0}};
    for (const Guest& guest : guests_) polled.push_back({guest.socket.descriptor(), POLLIN, 0});
    if (poll(polled.data(), polled.size(), static_cast<int>(kListeningSliceS * 1e3)) <= 0) return;
    if (polled.front().revents != 0) accept_one();
  }

  // If there are too many guests, the one that has waited longest is dropped: a member of the job speaks at once.
  void accept_one() {
    if (guests_.size() >= kMostStrangers) guests_.pop_front();
    const int descriptor = accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC);
    if (descriptor < 0 && (errno == EMFILE || errno == ENFILE) && !guests_.empty()) guests_.pop_front();
    if (descriptor < 0) return;
    const int on = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    guests_.push_back({Socket(descriptor), clock_.now_s() + kPatienceWithStrangersS, {}, 0});
  }

  std::optional<std::pair<Hello, Socket>> listen_to_guests() {
    for (std::size_t i = 0; i < guests_.size();) {
      Guest& guest = guests_[i];
      const bool gone = !hear(guest) || (guest.got < guest.said.size() && clock_.now_s() >= guest.until_s);
      if (!gone && guest.got < guest.said.size()) {
        ++i;
        continue;
      }
      Guest whole = std::move(guest);
      guests_.erase(guests_.begin() + static_cast<std::ptrdiff_t>(i));
      if (gone) continue;
      if (const std::optional<Hello> hello = checked(whole)) return std::pair(*hello, std::move(whole.socket));
    }
    return std::nullopt;
  }

  // Returns false if the guest has gone.
  static bool hear(Guest& guest) {
    while (guest.got < guest.said.size()) {
      const ssize_t n =
          recv(guest.socket.descriptor(), guest.said.data() + guest.got, guest.said.size() - guest.got, MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return true;
      if (n <= 0) return false;
      guest.got += static_cast<std::size_t>(n);
    }
    return true;
  }

  std::optional<Hello> checked(const Guest& guest) {
    Hello hello;
    std::memcpy(&hello, guest.said.data(), sizeof hello);
    if (hello.magic != kMagic) return std::nullopt;
    if (!equal_in_constant_time(hello.code, code_of(hello, token_))) {
      ++sent_away_;
      return std::nullopt;
    }
    if (hello.size != size_) {
      throw EnvironmentError(
          fmt::format("rank {} belongs to a job of {} processes, this one to one of {}", hello.rank, hello.size, size_),
          "give all the same WORLD_SIZE");
    }
    return hello.rank < 0 || hello.rank >= size_ ? std::nullopt : std::optional(hello);
  }

  std::string token_;
  int size_;
  const Clock& clock_;
  Socket listener_;
  std::deque<Guest> guests_;  ///< in the order of arrival
  int sent_away_ = 0;
};

class SocketProcesses final : public Processes {
 public:
  SocketProcesses(const Rendezvous& rendezvous, const Clock& clock)
      : rank_(rendezvous.rank),
        size_(rendezvous.size),
        clock_(clock),
        patience_s_(rendezvous.patience_s),
        token_(rendezvous.token),
        door_(rendezvous.token, rendezvous.size, clock) {
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

  Hello hello(int channel, int port) const {
    Hello mine{kMagic, size_, rank_, channel, port, {}, {}};
    fill_randomly(mine.nonce);
    mine.code = code_of(mine, token_);
    return mine;
  }

  void introduce_all(const Rendezvous& rendezvous) {
    // If connections may come from any address, they must at least know the token.
    door_.listen_with(
        listen_at(rendezvous.host, rendezvous.port, token_.empty() ? Elsewhere::kNowhere : Elsewhere::kEverywhere));
    table_.resize(static_cast<std::size_t>(size_));
    std::map<int, std::pair<Hello, Socket>> others;
    while (others.size() + 1 < table_.size()) {
      auto [said, socket] = door_.next(deadline_s());
      if (said.channel != kFirstMeeting) continue;
      Address& address = table_[static_cast<std::size_t>(said.rank)];
      put_host(socket.peer_host(), address);
      address.port = said.port;
      if (!others.emplace(said.rank, std::pair(said, std::move(socket))).second) {
        throw EnvironmentError(fmt::format("two processes say that they are rank {}", said.rank),
                               "give each a RANK of its own");
      }
    }
    for (const auto& [rank, other] : others) {
      const auto& [said, socket] = other;
      const Digest code = code_of(table_, said, token_);
      if (!socket.send_all(std::as_bytes(std::span(table_)), deadline_s(), clock_) ||
          !socket.send_all(bytes_of(code), deadline_s(), clock_)) {
        throw_peer_lost(rank);
      }
    }
  }

  void be_introduced(const Rendezvous& rendezvous) {
    const Socket first = connect_to(rendezvous.host, rendezvous.port, deadline_s(), clock_);
    door_.listen_with(listen_at(first.local_host(), 0));
    const Hello mine = hello(kFirstMeeting, door_.port());
    table_.resize(static_cast<std::size_t>(size_));
    Digest code{};
    const bool answered = first.send_all(bytes_of(mine), deadline_s(), clock_) &&
                          first.receive_all(std::as_writable_bytes(std::span(table_)), deadline_s(), clock_) &&
                          first.receive_all(std::as_writable_bytes(std::span(&code, 1)), deadline_s(), clock_);
    if (!answered) {
      throw EnvironmentError(fmt::format("rank 0 at {}:{} does not answer", rendezvous.host, rendezvous.port),
                             "see what rank 0 says; KRIGTUNE_TOKEN must be the same for all");
    }
    if (!equal_in_constant_time(code, code_of(table_, mine, token_))) {
      throw EnvironmentError(
          fmt::format("who answers at {}:{} is not rank 0 of this job", rendezvous.host, rendezvous.port),
          "choose another MASTER_PORT");
    }
    Address& master = table_.front();
    master = {};
    put_host(rendezvous.host, master);
    master.port = rendezvous.port;
  }

  Socket call(int rank, int channel) {
    const Address& address = table_[static_cast<std::size_t>(rank)];
    Socket socket = connect_to(address.host.data(), address.port, deadline_s(), clock_);
    if (!socket.send_all(bytes_of(hello(channel, 0)), deadline_s(), clock_)) throw_peer_lost(rank);
    return socket;
  }

  // Other members may arrive first, and for later channels.
  Socket await(int rank, int channel) {
    const std::pair key(channel, rank);
    while (waiting_.count(key) == 0) {
      auto [said, socket] = door_.next(deadline_s());
      waiting_.emplace(std::pair(said.channel, said.rank), std::move(socket));
    }
    Socket socket = std::move(waiting_[key]);
    waiting_.erase(key);
    return socket;
  }

  int rank_;
  int size_;
  const Clock& clock_;
  double patience_s_;
  std::string token_;
  Door door_;
  std::vector<Address> table_;                     ///< by rank
  std::map<std::pair<int, int>, Socket> waiting_;  ///< by channel and rank
  int next_channel_ = 0;
  std::atomic<bool> interrupted_ = false;
  std::mutex mutex_;                              ///< guards sockets_
  std::vector<std::unique_ptr<Socket>> sockets_;  ///< those of control first
  std::size_t controls_ = 0;
  std::unique_ptr<Transport> control_;
};

}  // namespace

std::unique_ptr<Processes> connect_by_sockets(const Rendezvous& rendezvous, const Clock& clock) {
  return std::make_unique<SocketProcesses>(rendezvous, clock);
}

}  // namespace krigtune::engine
