#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/trainer.h"

namespace krigtune::engine {

/// Another process of the job is gone.
class PeerLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Moves bytes between some processes of a job, its members. One call at a time.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;  ///< among the members
  virtual int size() const = 0;
  /// Sends out[r] to each other member r and fills in[r] with what it sends here; an entry each, our own is not looked
  /// at. Sizes agree by what is being done; nothing travels where they are 0. Throws PeerLost and Aborted.
  virtual void exchange(std::span<const std::span<const std::byte>> out, std::span<const std::span<std::byte>> in) = 0;
};

/// The processes of a job, each of which hosts one rank: process r is world rank r. Two are made: by MPI
/// (engine/host/mpi_processes.h) and by sockets (engine/host/sockets.h).
class Processes {
 public:
  virtual ~Processes() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// A transport among `members`, ascending ranks, this one among them. All processes open as many in the same order;
  /// those who are members of one another's group name the same members. Must not outlive this.
  virtual std::unique_ptr<Transport> open(std::vector<int> members) = 0;
  /// All processes, for what they agree upon. Used by one thread.
  virtual Transport& control() = 0;
  /// Every call on what open() made throws Aborted, now and later. From any thread.
  virtual void interrupt() = 0;
  /// Tells the others to end with this exit code; they need not be listening. May end this process too. From any
  /// thread.
  virtual void abort(int exit_code) noexcept = 0;
  /// After PeerLost: the exit code with which another process called abort(), if one did.
  virtual std::optional<int> announced_exit_code() = 0;
};

/// What each member says, by rank. T is copied byte by byte.
template <class T>
std::vector<T> all_say(Transport& transport, const T& mine) {
  const auto size = static_cast<std::size_t>(transport.size());
  std::vector<T> said(size);
  std::vector<std::span<const std::byte>> out(size, std::as_bytes(std::span(&mine, 1)));
  std::vector<std::span<std::byte>> in;
  for (T& one : said) in.push_back(std::as_writable_bytes(std::span(&one, 1)));
  transport.exchange(out, in);
  said[static_cast<std::size_t>(transport.rank())] = mine;
  return said;
}

/// Sets median_rank_kernels_s (the lower one of two) and slowest_rank_kernels_s from those of some ranks, at least one.
void set_rank_kernels(std::vector<double> kernels_s, StepResult& result);

/// Makes the result of a step the same in all processes, so that they decide alike (whether to go on measuring): times
/// are the largest, but for the median over ranks, the loss is the sum of their parts. Returns what all take for now:
/// the clock of process 0. With no processes it changes nothing and asks the clock.
double agree(StepResult& result, Processes* processes, const Clock& clock);

}  // namespace krigtune::engine
