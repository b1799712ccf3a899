// Every collective: publish this rank's pointers, barrier, work on what the others published, barrier. Within
// reduce-scatter rank r writes only the r-th part of its own whole, which nobody else reads: it is free of races.
#include "host/thread_communicator.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace krigtune {

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(ThreadGroup& group, int rank) : group_(group), rank_(rank) {}

  double all_reduce(const Collective& collective) override {
    const double ready_s = publish(collective);
    sum_own_parts(collective);
    group_.barrier_.arrive_and_wait();
    for_foreign_parts(collective, [&](const Segment& mine, const Segment& theirs, const Part& part) {
      std::copy_n(theirs.whole + part.begin, part.elems, mine.whole + part.begin);
    });
    group_.barrier_.arrive_and_wait();
    return ready_s;
  }

  double reduce_scatter(const Collective& collective) override {
    const double ready_s = publish(collective);
    sum_own_parts(collective);
    group_.barrier_.arrive_and_wait();
    return ready_s;
  }

  double all_gather(const Collective& collective) override {
    const double ready_s = publish(collective);
    for (const Segment& mine : collective.segments) {
      const Part part = part_of(mine, rank_);
      // In place the shard is already where it belongs.
      if (mine.shard != mine.whole + part.begin) std::copy_n(mine.shard, part.elems, mine.whole + part.begin);
    }
    for_foreign_parts(collective, [](const Segment& mine, const Segment& theirs, const Part& part) {
      std::copy_n(theirs.shard, part.elems, mine.whole + part.begin);
    });
    group_.barrier_.arrive_and_wait();
    return ready_s;
  }

 private:
  struct Part {
    std::int64_t begin, elems;
  };

  /// Sums are formed in blocks that stay in the first-level cache while all ranks' addends pass by.
  static constexpr std::int64_t kBlock = 2048;

  // Exact parts where N divides the range; an all-reduce of anything else is cut as evenly as possible.
  Part part_of(const Segment& segment, int rank) const {
    const std::int64_t begin = segment.elems * rank / group_.ranks_;
    return {begin, segment.elems * (rank + 1) / group_.ranks_ - begin};
  }

  double publish(const Collective& collective) {
    group_.published_[static_cast<std::size_t>(rank_)] = collective.segments;
    return group_.barrier_.arrive_and_wait();
  }

  const Segment& segment_of(int rank, std::size_t i) const {
    const auto& segments = group_.published_[static_cast<std::size_t>(rank)];
    assert(i < segments.size() && "all ranks issue the same collectives");
    return segments[i];
  }

  void sum_own_parts(const Collective& collective) const {
    for (std::size_t i = 0; i < collective.segments.size(); ++i) {
      const Part part = part_of(collective.segments[i], rank_);
      for (std::int64_t at = 0; at < part.elems; at += kBlock) {
        sum_block(i, part.begin + at, std::min(kBlock, part.elems - at));
      }
    }
  }

  void sum_block(std::size_t segment, std::int64_t begin, std::int64_t elems) const {
    float sums[kBlock];
    std::copy_n(segment_of(0, segment).whole + begin, elems, sums);
    for (int rank = 1; rank < group_.ranks_; ++rank) {
      const float* addend = segment_of(rank, segment).whole + begin;
      for (std::int64_t j = 0; j < elems; ++j) sums[j] += addend[j];
    }
    std::copy_n(sums, elems, segment_of(rank_, segment).whole + begin);
  }

  template <class Use>
  void for_foreign_parts(const Collective& collective, Use use) const {
    for (std::size_t i = 0; i < collective.segments.size(); ++i) {
      // Starting behind itself, so that not all ranks read the same one at once.
      for (int step = 1; step < group_.ranks_; ++step) {
        const int rank = (rank_ + step) % group_.ranks_;
        use(collective.segments[i], segment_of(rank, i), part_of(collective.segments[i], rank));
      }
    }
  }

  ThreadGroup& group_;
  int rank_;
};

ThreadGroup::ThreadGroup(int ranks, const Clock& clock)
    : ranks_(ranks), barrier_(ranks, clock), published_(static_cast<std::size_t>(ranks)) {}

std::unique_ptr<Communicator> ThreadGroup::member(int rank) {
  return std::make_unique<ThreadCommunicator>(*this, rank);
}

}  // namespace krigtune
