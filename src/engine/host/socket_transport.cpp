#include "host/socket_transport.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "host/abortable.h"

namespace krigtune {
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

}  // namespace krigtune
