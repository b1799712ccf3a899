#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/host/communicator.h"

namespace krigtune::engine {

enum class Reduction { kSum, kMax };

/// Computes out = addends[0] + addends[1] + ... (or their maximum) element by element, in fp32 in this order, and
/// rounds once. `out` may be one of the addends.
void reduce_in_order(Reduction reduction, schedule::DType type, std::span<const std::byte* const> addends,
                     std::int64_t elems, std::byte* out);

/// The elements of a range that belong to one rank.
struct Part {
  std::int64_t begin, elems;
};

/// Parts of equal length if the ranks divide the range; otherwise the range is cut as evenly as possible.
inline Part part_of(const Segment& segment, int ranks, int rank) {
  const std::int64_t begin = segment.elems * rank / ranks;
  return {begin, segment.elems * (rank + 1) / ranks - begin};
}

inline std::byte* at(const Segment& segment, std::int64_t elem) {
  return static_cast<std::byte*>(segment.whole) + elem * schedule::size_bytes(segment.type);
}
inline std::size_t bytes_of(const Segment& segment, const Part& part) {
  return static_cast<std::size_t>(part.elems * schedule::size_bytes(segment.type));
}

/// The ranks of a communicator as threads of one process. Sums run in the order of the ranks, beginning with rank 0's
/// data, so that all-reduce equals reduce-scatter followed by all-gather bit by bit. With one rank, in-place
/// collectives touch nothing. The group must outlive its members, and `clock` must outlive the group.
class ThreadGroup {
 public:
  ThreadGroup(int ranks, const Clock& clock);

  std::unique_ptr<Communicator> member(int rank);
  /// Called when a rank has failed: makes all other ranks throw Aborted, now and later.
  void abort() { barrier_.abort(); }

 private:
  friend class ThreadCommunicator;

  int ranks_;
  AbortableBarrier barrier_;
  std::vector<std::span<const Segment>> published_;  ///< by rank; unchanged between two barriers
};

}  // namespace krigtune::engine
