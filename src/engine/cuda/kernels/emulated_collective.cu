// Collectives of one rank without the others. The bytes that this rank would move are moved in its own memory, by as
// many blocks as NCCL has channels, so that kernels that run at the same time lose the bandwidth and the
// multiprocessors that NCCL would take from them. Then one thread holds the stream until the network would be done.
// Ranks that are late are not imitated.
//
// One kernel takes the tensors of a collective together, from a table in its arguments. A tensor is divided into tiles,
// which the blocks take round robin. A thread has kInFlight packs of 16 bytes of a tile in flight before it uses the
// first. 16 blocks of 512 threads then have 1 MiB in flight: at a latency of 1 us, as under load on an H100, that is 1
// TB/s, more than twice what a link of NVLink 4 needs. Elements outside of the packs of 16 bytes are moved one by one.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <type_traits>

#include "engine/cuda/kernels/elements.h"
#include "engine/cuda/kernels/emulated_collective.h"

namespace krigtune::cuda {
namespace {

constexpr unsigned kChannels = 16;  // NCCL's default on one node of H100
constexpr unsigned kThreads = 512;
constexpr int kInFlight = 8;  // packs for each thread
constexpr std::int64_t kPackBytes = 16;

/// Neighbouring words of one tensor: packs of 16 bytes or single elements.
struct Piece {
  const void* from;
  void* to;
  std::int64_t words;  ///< for an all-reduce all words, otherwise those of one rank's part
  std::int64_t end_tile;
  schedule::DType type;
  bool packed;
};

/// The argument of a kernel, which may have 4 KiB.
struct PieceTable {
  static constexpr int kMost = 96;
  Piece at[kMost];
  int count = 0;

  std::int64_t tiles() const { return count == 0 ? 0 : at[count - 1].end_tile; }
};
static_assert(sizeof(PieceTable) <= 4000);

template <class Body>
__global__ void __launch_bounds__(kThreads) run_channels(const __grid_constant__ PieceTable table, Body body) {
  std::int64_t begin_tile = 0;
  int i = 0;
  for (std::int64_t tile = blockIdx.x; tile < table.at[table.count - 1].end_tile; tile += kChannels) {
    for (; tile >= table.at[i].end_tile; ++i) begin_tile = table.at[i].end_tile;
    body(table.at[i], tile - begin_tile);
  }
}

/// Collects pieces, and starts a kernel for each full table and for the last pieces.
template <class Body>
class Channels {
 public:
  Channels(Queue queue, Body body) : queue_(queue), body_(body) {}

  void add(Piece piece, std::int64_t tiles) {
    if (tiles == 0) return;
    if (table_.count == PieceTable::kMost) start();
    piece.end_tile = table_.tiles() + tiles;
    table_.at[table_.count++] = piece;
  }
  void start() {
    if (table_.count > 0) launch(queue_, kChannels, kThreads, 0, run_channels<Body>, table_, body_);
    table_.count = 0;
  }

 private:
  Queue queue_;
  Body body_;
  PieceTable table_;
};

std::int64_t tiles_of(std::int64_t words, std::int64_t tile_words) { return (words + tile_words - 1) / tile_words; }

bool is_aligned(const void* data, std::int64_t bytes) {
  return (reinterpret_cast<std::uintptr_t>(data) | static_cast<std::uintptr_t>(bytes)) % kPackBytes == 0;
}

/// A word of 16 bytes that contains numbers of one type.
template <schedule::DType kType>
struct PackedWord {
  using Word = PackedBits<8>;
  static constexpr bool kIsFp32 = kType == schedule::DType::kFp32;
  using Numbers = Pack<kIsFp32 ? 4 : 8>;

  static __device__ Numbers numbers(const Word& word) {
    Numbers numbers;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if constexpr (kIsFp32) {
        numbers.at[k] = __uint_as_float(word.two[k]);
      } else {
        numbers.at[2 * k] = widened(kType, static_cast<std::uint16_t>(word.two[k]));
        numbers.at[2 * k + 1] = widened(kType, static_cast<std::uint16_t>(word.two[k] >> 16U));
      }
    }
    return numbers;
  }
  static __device__ Word word(const Numbers& numbers) {
    Word word;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if constexpr (kIsFp32) {
        word.two[k] = __float_as_uint(numbers.at[k]);
      } else {
        word.two[k] = pack<kType == schedule::DType::kBf16>(numbers.at[2 * k], numbers.at[2 * k + 1]);
      }
    }
    return word;
  }
};

/// A word that is one number.
template <schedule::DType kType>
struct SingleWord {
  static constexpr bool kIsFp32 = kType == schedule::DType::kFp32;
  using Word = std::conditional_t<kIsFp32, std::uint32_t, std::uint16_t>;
  using Numbers = Pack<1>;

  static __device__ Numbers numbers(Word word) {
    if constexpr (kIsFp32) return {{__uint_as_float(word)}};
    return {{widened(kType, static_cast<std::uint16_t>(word))}};
  }
  static __device__ Word word(const Numbers& numbers) {
    if constexpr (kIsFp32) return __float_as_uint(numbers.at[0]);
    return static_cast<Word>(rounded(kType, numbers.at[0]));
  }
};

/// Calls f(PackedWord or SingleWord), depending on the piece's words.
template <class F>
__device__ void with_words(const Piece& piece, F f) {
  using schedule::DType;
  if (piece.type == DType::kFp32) {
    if (piece.packed) return f(PackedWord<DType::kFp32>{});
    return f(SingleWord<DType::kFp32>{});
  }
  if (piece.type == DType::kBf16) {
    if (piece.packed) return f(PackedWord<DType::kBf16>{});
    return f(SingleWord<DType::kBf16>{});
  }
  if (piece.packed) return f(PackedWord<DType::kFp16>{});
  f(SingleWord<DType::kFp16>{});
}

/// All-reduce: multiplies the words by a factor, in place.
struct Scale {
  static constexpr std::int64_t kTileWords = std::int64_t{kThreads} * kInFlight;
  float factor;

  __device__ void operator()(const Piece& piece, std::int64_t tile) const {
    with_words(piece, [&](auto kind) {
      using Kind = decltype(kind);
      using Word = typename Kind::Word;
      const std::int64_t first = tile * kTileWords + threadIdx.x;
      auto* words = static_cast<Word*>(piece.to);
      Word held[kInFlight] = {};
#pragma unroll
      for (int k = 0; k < kInFlight; ++k) {
        if (const std::int64_t i = first + k * kThreads; i < piece.words) held[k] = words[i];
      }
#pragma unroll
      for (int k = 0; k < kInFlight; ++k) {
        const auto scaled = map([this](float v) { return factor * v; }, Kind::numbers(held[k]));
        if (const std::int64_t i = first + k * kThreads; i < piece.words) words[i] = Kind::word(scaled);
      }
    });
  }
};

/// Reduce-scatter: replaces the words of the first part by the sums of those of all parts, in the order of the parts.
struct SumParts {
  static constexpr int kPlaces = 2;  // words of a thread in each part
  static constexpr int kParts = kInFlight / kPlaces;
  static constexpr std::int64_t kTileWords = std::int64_t{kThreads} * kPlaces;
  std::int64_t parts;

  __device__ void operator()(const Piece& piece, std::int64_t tile) const {
    with_words(piece, [&](auto kind) {
      using Kind = decltype(kind);
      using Word = typename Kind::Word;
      const std::int64_t first = tile * kTileWords + threadIdx.x;
      auto* words = static_cast<Word*>(piece.to);
      typename Kind::Numbers sums[kPlaces] = {};
      for (std::int64_t part = 0; part < parts; part += kParts) {
        Word held[kPlaces][kParts] = {};
#pragma unroll
        for (int j = 0; j < kPlaces * kParts; ++j) {
          const std::int64_t i = first + j / kParts * kThreads;
          const std::int64_t from = part + j % kParts;
          if (i < piece.words && from < parts) held[j / kParts][j % kParts] = words[from * piece.words + i];
        }
        // The condition is not needed for the result, because the other words are zeros, but without it nvcc 13 loads
        // each pack only when it is added.
#pragma unroll
        for (int j = 0; j < kPlaces * kParts; ++j) {
          auto& sum = sums[j / kParts];
          if (part + j % kParts < parts) sum = plus(sum, Kind::numbers(held[j / kParts][j % kParts]));
        }
      }
#pragma unroll
      for (int p = 0; p < kPlaces; ++p) {
        if (const std::int64_t i = first + p * kThreads; i < piece.words) words[i] = Kind::word(sums[p]);
      }
    });
  }
};

/// All-gather: fills part r of the whole with the shard, rotated by r words. The rank's own part is written only if it
/// is in another place.
struct TurnParts {
  static constexpr std::int64_t kTileWords = std::int64_t{kThreads} * kInFlight;

  __device__ void operator()(const Piece& piece, std::int64_t tile) const {
    if (piece.packed) return turn<PackedBits<8>>(piece, tile);
    if (piece.type == schedule::DType::kFp32) return turn<std::uint32_t>(piece, tile);
    turn<std::uint16_t>(piece, tile);
  }

  template <class Word>
  static __device__ void turn(const Piece& piece, std::int64_t tile) {
    const std::int64_t tiles = (piece.words + kTileWords - 1) / kTileWords;  // tiles of a part
    const std::int64_t rank = tile / tiles + (piece.from == piece.to ? 1 : 0);
    const std::int64_t first = tile % tiles * kTileWords + threadIdx.x;
    const std::int64_t turned = rank % piece.words;
    const auto* shard = static_cast<const Word*>(piece.from);
    Word* part = static_cast<Word*>(piece.to) + rank * piece.words;
    Word held[kInFlight] = {};
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      const std::int64_t i = first + k * kThreads;
      const std::int64_t from = i + turned < piece.words ? i + turned : i + turned - piece.words;
      if (i < piece.words) held[k] = shard[from];
    }
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) {
      if (const std::int64_t i = first + k * kThreads; i < piece.words) part[i] = held[k];
    }
  }
};

}  // namespace

void reserve_link(Moment* free_from, Moment* until, Moment length_ns, Queue queue) {
  launch_elements(queue, 1, [=] __device__(std::int64_t) {
    const Moment now = global_time_ns();
    Moment seen = *free_from;
    for (;;) {
      const Moment end = (seen > now ? seen : now) + length_ns;
      const Moment there = atomicCAS(free_from, seen, end);
      if (there == seen) {
        *until = end;
        return;
      }
      seen = there;
    }
  });
}

void hold_until(const Moment* until, Queue queue) {
  launch_elements(queue, 1, [=] __device__(std::int64_t) {
    constexpr std::uint32_t kPauseNs = 200;
    while (global_time_ns() < *until) pause_ns(kPauseNs);
  });
}

void gather_alone(std::span<const engine::OperandView> operands, std::int64_t ranks, Queue queue) {
  Channels channels(queue, TurnParts{});
  for (std::size_t i = 0; i + 1 < operands.size(); i += 2) {
    const engine::OperandView& shard = operands[i];
    void* whole = operands[i + 1].data;
    const std::int64_t bytes = shard.elems * schedule::size_bytes(shard.type);
    assert(schedule::size_bytes(shard.type) != 1);
    const bool packed = is_aligned(shard.data, bytes) && is_aligned(whole, bytes);
    const std::int64_t words = packed ? bytes / kPackBytes : shard.elems;
    const std::int64_t parts = shard.data == whole ? ranks - 1 : ranks;
    channels.add({shard.data, whole, words, 0, shard.type, packed}, parts * tiles_of(words, TurnParts::kTileWords));
  }
  channels.start();
}

void reduce_scatter_alone(std::span<const engine::OperandView> operands, std::int64_t ranks, Queue queue) {
  Channels channels(queue, SumParts{ranks});
  for (const engine::OperandView& view : operands) {
    const std::int64_t part = view.elems / ranks;
    const std::int64_t bytes = part * schedule::size_bytes(view.type);
    const bool packed = is_aligned(view.data, bytes);
    const std::int64_t words = packed ? bytes / kPackBytes : part;
    channels.add({view.data, view.data, words, 0, view.type, packed}, tiles_of(words, SumParts::kTileWords));
  }
  channels.start();
}

// Elements before the first aligned address and after the last whole pack are moved one by one.
void all_reduce_alone(std::span<const engine::OperandView> operands, std::int64_t ranks, Queue queue) {
  Channels channels(queue, Scale{static_cast<float>(std::sqrt(static_cast<double>(ranks)))});
  for (const engine::OperandView& view : operands) {
    const std::int64_t size = schedule::size_bytes(view.type);
    const auto behind = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(view.data) % kPackBytes);
    const std::int64_t before = std::min(view.elems, (kPackBytes - behind) % kPackBytes / size);
    const std::int64_t packs = (view.elems - before) * size / kPackBytes;
    const std::int64_t last = before + packs * kPackBytes / size;
    const auto add = [&](std::int64_t first_elem, std::int64_t words, bool packed) {
      void* at = static_cast<std::byte*>(view.data) + first_elem * size;
      channels.add({at, at, words, 0, view.type, packed}, tiles_of(words, Scale::kTileWords));
    };
    add(0, before, false);
    add(before, packs, true);
    add(last, view.elems - last, false);
  }
  channels.start();
}

}  // namespace krigtune::cuda
