#pragma once
#include <memory>
#include <span>
#include <vector>

#include "host/abortable.h"
#include "host/communicator.h"

namespace krigtune {

/// The ranks of a communicator as threads of one process. Sums run in the order of the ranks, starting from rank 0's
/// data, so that all-reduce equals reduce-scatter followed by all-gather bit by bit. With one rank, collectives in
/// place touch nothing. Must outlive its members; `clock` must outlive it.
class ThreadGroup {
 public:
  ThreadGroup(int ranks, const Clock& clock);

  std::unique_ptr<Communicator> member(int rank);
  /// A rank has failed: frees all others, now and later (they throw Aborted).
  void abort() { barrier_.abort(); }

 private:
  friend class ThreadCommunicator;

  int ranks_;
  AbortableBarrier barrier_;
  std::vector<std::span<const Segment>> published_;  ///< by rank; stable between two barriers
};

}  // namespace krigtune
