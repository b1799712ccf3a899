// Every collective publishes this rank's pointers, waits at a barrier, works on what the others published, and waits at
// a barrier again. In reduce-scatter rank r writes only the r-th part of its own whole, which no other rank reads, so
// there is no race.
#include "engine/host/thread_communicator.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "engine/host/number_types.h"

namespace krigtune::engine {
namespace {

/// Results are formed in blocks that stay in the first-level cache while all ranks' addends are read.
constexpr std::int64_t kBlock = 2048;
using Floats = std::array<float, kBlock>;

const std::uint16_t* halves(const std::byte* data) { return reinterpret_cast<const std::uint16_t*>(data); }

/// Returns the elements as floats, widened into `room` if necessary.
const float* floats_of(schedule::DType type, const std::byte* data, std::int64_t elems, Floats& room) {
  if (type == schedule::DType::kFp32) return reinterpret_cast<const float*>(data);
  widen(type, halves(data), elems, room.data());
  return room.data();
}

void combine(Reduction reduction, const float* addend, std::int64_t elems, float* into) {
  if (reduction == Reduction::kSum) {
    for (std::int64_t i = 0; i < elems; ++i) into[i] += addend[i];
  } else {
    for (std::int64_t i = 0; i < elems; ++i) into[i] = into[i] >= addend[i] || into[i] != into[i] ? into[i] : addend[i];
  }
}

}  // namespace

void reduce_in_order(Reduction reduction, schedule::DType type, std::span<const std::byte* const> addends,
                     std::int64_t elems, std::byte* out) {
  assert(type == schedule::DType::kFp32 || is_16_bit(type));
  if (addends.size() == 1 && addends[0] == out) return;
  Floats result;
  Floats room;
  for (std::int64_t at = 0; at < elems; at += kBlock) {
    const std::int64_t count = std::min(kBlock, elems - at);
    const std::int64_t offset = at * schedule::size_bytes(type);
    std::copy_n(floats_of(type, addends[0] + offset, count, room), count, result.data());
    for (const std::byte* addend : addends.subspan(1)) {
      combine(reduction, floats_of(type, addend + offset, count, room), count, result.data());
    }
    if (type == schedule::DType::kFp32) {
      std::copy_n(result.data(), count, reinterpret_cast<float*>(out + offset));
    } else {
      round_to(type, result.data(), count, reinterpret_cast<std::uint16_t*>(out + offset));
    }
  }
}

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(ThreadGroup& group, int rank)
      : group_(group), rank_(rank), addends_(static_cast<std::size_t>(group.ranks_)) {}

  double all_reduce(const Collective& collective) override { return all_reduce(Reduction::kSum, collective); }
  double all_reduce_max(const Collective& collective) override { return all_reduce(Reduction::kMax, collective); }

  double reduce_scatter(const Collective& collective) override {
    const double ready_s = publish(collective);
    reduce_own_parts(Reduction::kSum, collective);
    group_.barrier_.arrive_and_wait();
    return ready_s;
  }

  double all_gather(const Collective& collective) override {
    const double ready_s = publish(collective);
    for (const Segment& mine : collective.segments) {
      const Part part = part_of(mine, group_.ranks_, rank_);
      // In place, the shard is already where it belongs.
      if (mine.shard != at(mine, part.begin)) std::memcpy(at(mine, part.begin), mine.shard, bytes_of(mine, part));
    }
    for_foreign_parts(collective, [](const Segment& mine, const Segment& theirs, const Part& part) {
      std::memcpy(at(mine, part.begin), theirs.shard, bytes_of(mine, part));
    });
    group_.barrier_.arrive_and_wait();
    return ready_s;
  }

 private:
  double all_reduce(Reduction reduction, const Collective& collective) {
    const double ready_s = publish(collective);
    reduce_own_parts(reduction, collective);
    group_.barrier_.arrive_and_wait();
    for_foreign_parts(collective, [](const Segment& mine, const Segment& theirs, const Part& part) {
      std::memcpy(at(mine, part.begin), at(theirs, part.begin), bytes_of(mine, part));
    });
    group_.barrier_.arrive_and_wait();
    return ready_s;
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

  void reduce_own_parts(Reduction reduction, const Collective& collective) {
    for (std::size_t i = 0; i < collective.segments.size(); ++i) {
      const Segment& mine = collective.segments[i];
      const Part part = part_of(mine, group_.ranks_, rank_);
      for (int rank = 0; rank < group_.ranks_; ++rank) {
        addends_[static_cast<std::size_t>(rank)] = at(segment_of(rank, i), part.begin);
      }
      reduce_in_order(reduction, mine.type, addends_, part.elems, at(mine, part.begin));
    }
  }

  template <class Use>
  void for_foreign_parts(const Collective& collective, Use use) const {
    for (std::size_t i = 0; i < collective.segments.size(); ++i) {
      // Each rank starts with its successor, so that not all read from the same one at once.
      for (int step = 1; step < group_.ranks_; ++step) {
        const int rank = (rank_ + step) % group_.ranks_;
        use(collective.segments[i], segment_of(rank, i), part_of(collective.segments[i], group_.ranks_, rank));
      }
    }
  }

  ThreadGroup& group_;
  int rank_;
  std::vector<const std::byte*> addends_;  ///< by rank
};

ThreadGroup::ThreadGroup(int ranks, const Clock& clock)
    : ranks_(ranks), barrier_(ranks, clock), published_(static_cast<std::size_t>(ranks)) {}

std::unique_ptr<Communicator> ThreadGroup::member(int rank) {
  return std::make_unique<ThreadCommunicator>(*this, rank);
}

}  // namespace krigtune::engine
