// Reduce-scatter is an exchange of parts (alltoall) followed by a local sum in the order of the ranks. Libraries that
// reduce while they communicate sum in an order that depends on size and algorithm, so that their all-reduce and
// reduce-scatter differ in the last bits (Thakur, Rabenseifner and Gropp 2005 list the algorithms).
//
// The parts of one rank in all segments are concatenated to a stream of bytes, which is sent in chunks, so that little
// memory is needed besides the arena.
#include "engine/host/transport_communicator.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/host/thread_communicator.h"

namespace krigtune::engine {
namespace {

constexpr std::int64_t kChunkBytes = std::int64_t{1} << 20U;
constexpr std::int64_t kSlotAlignment = 8;  // so that no element crosses two chunks

/// The piece of a part that lies in one chunk.
struct Slice {
  const Segment* segment = nullptr;
  Part part{};                ///< in the whole
  std::int64_t at_bytes = 0;  ///< in the chunk
};

class TransportCommunicator final : public Communicator {
 public:
  TransportCommunicator(std::unique_ptr<Transport> transport, const Clock& clock)
      : transport_(std::move(transport)), clock_(clock), out_(size()), in_(size()), sent_(size()), received_(size()) {}

  double all_reduce(const Collective& collective) override { return all_reduce(Reduction::kSum, collective); }
  double all_reduce_max(const Collective& collective) override { return all_reduce(Reduction::kMax, collective); }

  double reduce_scatter(const Collective& collective) override {
    const double ready_s = meet();
    reduce_own_parts(Reduction::kSum, collective);
    return ready_s;
  }

  double all_gather(const Collective& collective) override {
    const double ready_s = meet();
    for (const Segment& segment : collective.segments) {
      const Part part = part_of(segment, ranks(), rank());
      // In place, the shard is already where it belongs.
      if (segment.shard != at(segment, part.begin)) {
        std::memcpy(at(segment, part.begin), segment.shard, bytes_of(segment, part));
      }
    }
    share_own_parts(collective);
    return ready_s;
  }

 private:
  std::size_t size() const { return static_cast<std::size_t>(transport_->size()); }
  int ranks() const { return transport_->size(); }
  int rank() const { return transport_->rank(); }

  double all_reduce(Reduction reduction, const Collective& collective) {
    const double ready_s = meet();
    reduce_own_parts(reduction, collective);
    share_own_parts(collective);
    return ready_s;
  }

  double meet() {
    all_say(*transport_, std::byte{1});
    return clock_.now_s();
  }

  static std::int64_t slot_bytes(const Segment& segment, const Part& part) {
    const auto bytes = static_cast<std::int64_t>(bytes_of(segment, part));
    return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
  }

  std::int64_t stream_bytes(const Collective& collective, int of_rank) const {
    std::int64_t bytes = 0;
    for (const Segment& segment : collective.segments) {
      bytes += slot_bytes(segment, part_of(segment, ranks(), of_rank));
    }
    return bytes;
  }

  std::int64_t longest_stream_bytes(const Collective& collective) const {
    std::int64_t longest = 0;
    for (int r = 0; r < ranks(); ++r) longest = std::max(longest, stream_bytes(collective, r));
    return longest;
  }

  /// Calls `use` for each piece of `of_rank`'s parts in the chunk that begins at byte `from` of its stream.
  template <class Use>
  std::int64_t for_slices(const Collective& collective, int of_rank, std::int64_t from, Use use) const {
    std::int64_t slot = 0;
    std::int64_t chunk_bytes = 0;
    for (const Segment& segment : collective.segments) {
      const Part part = part_of(segment, ranks(), of_rank);
      const std::int64_t length = slot_bytes(segment, part);
      const std::int64_t begin = std::max(slot, from);
      const std::int64_t end = std::min(slot + length, from + kChunkBytes);
      if (begin < end) {
        const std::int64_t elem_bytes = schedule::size_bytes(segment.type);
        const std::int64_t first = (begin - slot) / elem_bytes;
        const std::int64_t elems = std::min(part.elems - first, (end - begin) / elem_bytes);
        use(Slice{&segment, {part.begin + first, elems}, begin - from});
        chunk_bytes = end - from;
      }
      slot += length;
    }
    return chunk_bytes;
  }

  std::span<const std::byte> pack(const Collective& collective, int of_rank, std::int64_t from,
                                  std::vector<std::byte>& room) const {
    room.resize(static_cast<std::size_t>(kChunkBytes));
    const std::int64_t bytes = for_slices(collective, of_rank, from, [&](const Slice& slice) {
      std::memcpy(room.data() + slice.at_bytes, at(*slice.segment, slice.part.begin),
                  bytes_of(*slice.segment, slice.part));
    });
    return {room.data(), static_cast<std::size_t>(bytes)};
  }

  std::span<std::byte> room_for(const Collective& collective, int of_rank, std::int64_t from,
                                std::vector<std::byte>& room) const {
    room.resize(static_cast<std::size_t>(kChunkBytes));
    const std::int64_t bytes = for_slices(collective, of_rank, from, [](const Slice& /*slice*/) {});
    return {room.data(), static_cast<std::size_t>(bytes)};
  }

  void reduce_own_parts(Reduction reduction, const Collective& collective) {
    const std::int64_t bytes = longest_stream_bytes(collective);
    for (std::int64_t from = 0; from < bytes; from += kChunkBytes) {
      for (int r = 0; r < ranks(); ++r) {
        if (r == rank()) continue;
        const auto i = static_cast<std::size_t>(r);
        out_[i] = pack(collective, r, from, sent_[i]);
        in_[i] = room_for(collective, rank(), from, received_[i]);
      }
      transport_->exchange(out_, in_);
      reduce_chunk(reduction, collective, from);
    }
  }

  void reduce_chunk(Reduction reduction, const Collective& collective, std::int64_t from) {
    std::vector<const std::byte*> addends(size());
    for_slices(collective, rank(), from, [&](const Slice& slice) {
      std::byte* mine = at(*slice.segment, slice.part.begin);
      for (int r = 0; r < ranks(); ++r) {
        const auto i = static_cast<std::size_t>(r);
        addends[i] = r == rank() ? mine : received_[i].data() + slice.at_bytes;
      }
      reduce_in_order(reduction, slice.segment->type, addends, slice.part.elems, mine);
    });
  }

  void share_own_parts(const Collective& collective) {
    const std::int64_t bytes = longest_stream_bytes(collective);
    for (std::int64_t from = 0; from < bytes; from += kChunkBytes) {
      const auto mine = pack(collective, rank(), from, sent_[static_cast<std::size_t>(rank())]);
      for (int r = 0; r < ranks(); ++r) {
        const auto i = static_cast<std::size_t>(r);
        out_[i] = mine;
        if (r != rank()) in_[i] = room_for(collective, r, from, received_[i]);
      }
      transport_->exchange(out_, in_);
      for (int r = 0; r < ranks(); ++r) {
        if (r == rank()) continue;
        for_slices(collective, r, from, [&](const Slice& slice) {
          std::memcpy(at(*slice.segment, slice.part.begin),
                      received_[static_cast<std::size_t>(r)].data() + slice.at_bytes,
                      bytes_of(*slice.segment, slice.part));
        });
      }
    }
  }

  std::unique_ptr<Transport> transport_;
  const Clock& clock_;
  // By rank: the arguments of an exchange, and the memory of the chunks.
  std::vector<std::span<const std::byte>> out_;
  std::vector<std::span<std::byte>> in_;
  std::vector<std::vector<std::byte>> sent_;
  std::vector<std::vector<std::byte>> received_;
};

}  // namespace

std::unique_ptr<Communicator> make_transport_communicator(std::unique_ptr<Transport> transport, const Clock& clock) {
  return std::make_unique<TransportCommunicator>(std::move(transport), clock);
}

}  // namespace krigtune::engine
