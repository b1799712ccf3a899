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

/// Another process of the job has gone.
class PeerLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Moves bytes between some processes of a job, its members. Make one call at a time.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;  ///< among the members
  virtual int size() const = 0;
  /// Sends out[r] to each other member r and fills in[r] with what that member sends. Both have an entry for each
  /// member; the caller's own is ignored. Sizes must agree on both sides; nothing is sent if they are 0. Throws
  /// PeerLost and Aborted.
  virtual void exchange(std::span<const std::span<const std::byte>> out, std::span<const std::span<std::byte>> in) = 0;
};

/// The processes of a job, each of which runs one rank: process r is world rank r. There are two implementations: MPI
/// (engine/host/mpi_processes.h) and sockets (engine/host/sockets.h).
class Processes {
 public:
  virtual ~Processes() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Opens a transport among `members`: ascending ranks, this one among them. All processes open the same number of
  /// transports in the same order, and processes of one group name the same members. The transport must not outlive
  /// this object.
  virtual std::unique_ptr<Transport> open(std::vector<int> members) = 0;
  /// Returns a transport among all processes, for their agreements. Use it from one thread.
  virtual Transport& control() = 0;
  /// Makes every call on the transports throw Aborted, now and later. Safe from any thread.
  virtual void interrupt() = 0;
  /// Tells the other processes to end with this exit code, even if they do not listen. May end this process too. Safe
  /// from any thread.
  virtual void abort(int exit_code) noexcept = 0;
  /// After PeerLost, returns the exit code with which another process called abort(), if one did.
  virtual std::optional<int> announced_exit_code() = 0;
};

/// Returns the value of every member, by rank. T is copied byte by byte.
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

/// Sets median_rank_kernels_s (the lower of the two in the middle) and slowest_rank_kernels_s from the times of at
/// least one rank.
void set_rank_kernels(std::vector<double> kernels_s, StepResult& result);

/// Makes the result of a step the same in all processes, so that they take the same decisions (such as whether to
/// measure more). Times become the largest of all ranks, except the median over ranks; the loss becomes the sum of the
/// parts. Returns the time of process 0's clock, which all use as the current time. With null it only returns the
/// clock's time.
double agree(StepResult& result, Processes* processes, const Clock& clock);

}  // namespace krigtune::engine
