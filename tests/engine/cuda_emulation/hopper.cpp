#include "hopper.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "engine/host/number_types.h"

namespace krigtune::emulation {
namespace {

constexpr unsigned kGroup = 128;  // threads of a warp group
constexpr unsigned kRows = 64;
constexpr unsigned kInner = 16;
constexpr unsigned kMostColumns = 256;
constexpr unsigned kRegisterFile = 65536;

struct Phases {
  unsigned expected = 0;
  unsigned missing = 0;
  std::int64_t bytes = 0;  ///< announced, but not copied yet
  unsigned ended = 0;
  bool published = false;
  unsigned made_by = 0;
};

struct BoxCopy {
  BoxedPlanes planes;  ///< without sizes: the copy is of contiguous bytes
  std::uint32_t bytes = 0;
  std::uint32_t to = 0;
  Phases* barrier = nullptr;
  std::array<int, 3> at{};  ///< column, row, plane
};

/// Registers that a product uses, with their contents when it began.
struct Watched {
  const void* at = nullptr;
  std::vector<std::byte> bytes;

  Watched(const void* registers, std::size_t size) : at(registers), bytes(size) {
    std::memcpy(bytes.data(), registers, size);
  }
  bool unchanged() const { return std::memcmp(at, bytes.data(), bytes.size()) == 0; }
};

struct ThreadProducts {
  bool fenced = false;
  std::vector<GroupProduct> begun;                 ///< not in a group yet
  std::deque<std::vector<GroupProduct>> groups{};  ///< not yet waited for
  std::vector<Watched> watched;

  void watch(const GroupProduct& product) {
    const std::size_t sums_bytes = std::size_t{4} * product.parts * sizeof(float);
    const auto add = [this](const void* at, std::size_t bytes) {
      for (const Watched& each : watched) {
        if (each.at == at) return;
      }
      watched.emplace_back(at, bytes);
    };
    add(product.sums, sums_bytes);
    if (product.left != nullptr) add(product.left, 4 * sizeof(std::uint32_t));
  }
  void watch_all() {
    watched.clear();
    for (const auto& group : groups) {
      for (const GroupProduct& product : group) watch(product);
    }
    for (const GroupProduct& product : begun) watch(product);
  }
};

/// A place where threads wait for each other.
struct Meeting {
  unsigned here = 0;
  unsigned round = 0;
  Site site{};
};

struct Background {
  std::size_t shared_bytes = 0;
  bool eager = false;
  std::map<const void*, Phases> barriers;
  std::vector<BoxCopy> copies;
  std::minstd_rand random{1};
  std::vector<ThreadProducts> threads;
  std::vector<Meeting> groups;
  std::array<Meeting, 16> named;
  std::vector<unsigned> registers;  ///< of each thread
  unsigned free_registers = 0;
};
thread_local Background block;

[[noreturn]] void complain(const std::string& what, Site site) {
  const ThreadPlace& at = this_thread();
  throw KernelError(fmt::format("{}: thread {} of block ({},{},{}) at {}:{}", what, this_thread_index(), at.block.x,
                                at.block.y, at.block.z, site.file, site.line));
}

std::byte* in_shared(std::uint32_t address, std::size_t bytes) {
  if (address < kSharedBase || address - kSharedBase + bytes > block.shared_bytes) {
    throw KernelError(fmt::format("address {} is outside of the {} bytes of shared memory, which begin at {}", address,
                                  block.shared_bytes, kSharedBase));
  }
  return shared_memory() + (address - kSharedBase);
}

// Permutes the chunks of 16 bytes within 128 bytes: bits 4 to 6 of an address are XORed with bits 7 to 9.
std::uint32_t swizzled(std::uint32_t address) { return address ^ ((address >> 7U & 7U) << 4U); }

Phases& phases_of(const void* barrier, Site site) {
  const auto found = block.barriers.find(barrier);
  if (found == block.barriers.end()) complain("a barrier that nobody has initialised", site);
  return found->second;
}

void end_phase_if_done(Phases& phases) {
  if (phases.missing > 0 || phases.bytes != 0) return;
  phases.missing = phases.expected;
  ++phases.ended;
}

void copy_box(const BoxCopy& copy) {
  const BoxedPlanes& from = copy.planes;
  constexpr std::size_t kElem = sizeof(std::uint16_t);
  for (std::uint32_t r = 0; r < from.box[1]; ++r) {
    const std::int64_t row = copy.at[1] + static_cast<std::int64_t>(r);
    for (std::uint32_t c = 0; c < from.box[0]; ++c) {
      const std::int64_t column = copy.at[0] + static_cast<std::int64_t>(c);
      const std::uint32_t to = copy.to + (r * from.box[0] + c) * static_cast<std::uint32_t>(kElem);
      const bool there =
          row >= 0 && column >= 0 && copy.at[2] >= 0 && static_cast<std::uint64_t>(column) < from.sizes[0] &&
          static_cast<std::uint64_t>(row) < from.sizes[1] && static_cast<std::uint64_t>(copy.at[2]) < from.sizes[2];
      std::uint16_t value = 0;
      if (there) {
        const std::byte* at = from.data + static_cast<std::uint64_t>(copy.at[2]) * from.strides_bytes[1] +
                              static_cast<std::uint64_t>(row) * from.strides_bytes[0] +
                              static_cast<std::uint64_t>(column) * kElem;
        std::memcpy(&value, at, kElem);
      }
      std::memcpy(in_shared(swizzled(to), kElem), &value, kElem);
    }
  }
}

void do_copy(const BoxCopy& copy) {
  if (copy.planes.sizes[0] > 0) {
    copy_box(copy);
  } else {
    std::memcpy(in_shared(copy.to, copy.bytes), copy.planes.data, copy.bytes);
  }
  copy.barrier->bytes -= copy.bytes;
  end_phase_if_done(*copy.barrier);
}

void meet(Meeting& meeting, unsigned threads, const char* what, Site site, const std::function<void()>& once) {
  if (meeting.here > 0 && meeting.site != site) {
    complain(fmt::format("others of its {} are at {}:{}", what, meeting.site.file, meeting.site.line), site);
  }
  meeting.site = site;
  const unsigned round = meeting.round;
  if (++meeting.here == threads) {
    once();
    meeting.here = 0;
    ++meeting.round;
  }
  wait_until([&meeting, round] { return meeting.round != round; }, what, site);
}

/// One side of a product in shared memory, as its descriptor defines it (PTX ISA, "Matrix descriptor").
class SharedSide {
 public:
  explicit SharedSide(std::uint64_t descriptor, Site site)
      : first_(bytes(descriptor)), leading_(bytes(descriptor >> 16U)), stride_(bytes(descriptor >> 32U)) {
    constexpr std::uint64_t k128Bytes = 1;
    if (descriptor >> 62U != k128Bytes) complain("only the 128-byte swizzle is emulated", site);
    if ((descriptor >> 49U & 7U) != 0) complain("a pattern that does not begin at a multiple of 1024 bytes", site);
  }
  /// Return element `k` of the inner dimension, which goes along rows or down them.
  std::uint16_t along(unsigned row, unsigned k) const { return at(row / 8 * stride_ + row % 8 * 128 + 2 * k); }
  std::uint16_t down(unsigned column, unsigned k) const {
    return at(column / 64 * leading_ + column % 64 * 2 + k / 8 * stride_ + k % 8 * 128);
  }

 private:
  static std::uint32_t bytes(std::uint64_t field) { return static_cast<std::uint32_t>(field & 0x3FFFU) << 4U; }
  std::uint16_t at(std::uint32_t offset) const {
    std::uint16_t value = 0;
    std::memcpy(&value, in_shared(swizzled(first_ + offset), sizeof(value)), sizeof(value));
    return value;
  }
  std::uint32_t first_, leading_, stride_;
};

float number_of(bool bf16, std::uint16_t bits) { return bf16 ? engine::from_bf16(bits) : engine::from_fp16(bits); }

// Return where a thread's sums or pairs of elements are. Within the 16 rows of a warp the layout of 16 x 8 sums and
// 16 x 16 elements is that of multiply_add in ptx.h.
unsigned row_of(unsigned thread, unsigned lower) { return thread / 32 * 16 + thread % 32 / 4 + 8 * lower; }
unsigned column_of(unsigned thread) { return thread % 4 * 2; }

// Rows of numbers, on the heap because a fiber's stack is small.
using Left = std::vector<std::array<float, kInner>>;
using Right = std::vector<std::array<float, kMostColumns>>;

Left left_of(const std::vector<const GroupProduct*>& products) {
  Left left(kRows);
  const GroupProduct& first = *products.front();
  if (first.left == nullptr) {
    const SharedSide side(first.a, first.site);
    for (unsigned row = 0; row < kRows; ++row) {
      for (unsigned k = 0; k < kInner; ++k) left[row][k] = number_of(first.bf16, side.along(row, k));
    }
    return left;
  }
  for (unsigned t = 0; t < kGroup; ++t) {
    for (unsigned i = 0; i < 4; ++i) {
      const std::uint32_t two = products[t]->left[i];
      const unsigned k = column_of(t) + 8 * (i / 2);
      left[row_of(t, i % 2)][k] = number_of(first.bf16, static_cast<std::uint16_t>(two));
      left[row_of(t, i % 2)][k + 1] = number_of(first.bf16, static_cast<std::uint16_t>(two >> 16U));
    }
  }
  return left;
}

Right right_of(const GroupProduct& product) {
  Right right(kInner);
  const SharedSide side(product.b, product.site);
  for (unsigned column = 0; column < 8 * product.parts; ++column) {
    for (unsigned k = 0; k < kInner; ++k) {
      const std::uint16_t bits = product.down_the_rows ? side.down(column, k) : side.along(column, k);
      right[k][column] = number_of(product.bf16, bits);
    }
  }
  return right;
}

// Computes one product for all threads of a warp group.
void multiply(const std::vector<const GroupProduct*>& products) {
  const GroupProduct& first = *products.front();
  const Left left = left_of(products);
  const Right right = right_of(first);
  const unsigned columns = 8 * first.parts;
  std::vector<std::array<float, kMostColumns>> sums(kRows);
  for (unsigned row = 0; row < kRows; ++row) {
    for (unsigned k = 0; k < kInner; ++k) {
      for (unsigned column = 0; column < columns; ++column) sums[row][column] += left[row][k] * right[k][column];
    }
  }
  for (unsigned t = 0; t < kGroup; ++t) {
    for (unsigned e = 0; e < 4 * first.parts; ++e) {
      const float sum = sums[row_of(t, e % 4 / 2)][e / 4 * 8 + column_of(t) + e % 2];
      float& to = products[t]->sums[e];
      to = first.adds ? to + sum : sum;
    }
  }
}

bool are_one_product(GroupProduct a, const GroupProduct& b) {
  if ((a.left == nullptr) != (b.left == nullptr)) return false;
  a.sums = b.sums;
  a.left = b.left;
  return a == b;
}

void complete_oldest_group(unsigned first) {
  const std::size_t count = block.threads[first].groups.front().size();
  for (unsigned t = first; t < first + kGroup; ++t) {
    if (block.threads[t].groups.front().size() != count) {
      throw KernelError(fmt::format("threads {} and {} of a warp group have begun different products", first, t));
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<const GroupProduct*> products;
    for (unsigned t = first; t < first + kGroup; ++t) products.push_back(&block.threads[t].groups.front()[i]);
    for (const GroupProduct* product : products) {
      if (are_one_product(*products.front(), *product)) continue;
      throw KernelError(
          fmt::format("the warps of a group disagree on the product at {}:{}", product->site.file, product->site.line));
    }
    multiply(products);
  }
  for (unsigned t = first; t < first + kGroup; ++t) block.threads[t].groups.pop_front();
}

void complete(unsigned first, std::size_t groups_left) {
  while (block.threads[first].groups.size() > groups_left) {
    for (unsigned t = first; t < first + kGroup; ++t) {
      if (block.threads[t].groups.empty()) {
        throw KernelError(fmt::format("threads {} and {} of a warp group have committed different groups", first, t));
      }
    }
    complete_oldest_group(first);
  }
  for (unsigned t = first; t < first + kGroup; ++t) block.threads[t].watch_all();
}

}  // namespace

void begin_background(unsigned threads, std::size_t shared_bytes, bool eager) {
  const auto random = block.random;
  block = {};
  block.random = random;
  block.shared_bytes = shared_bytes;
  block.eager = eager;
  block.threads.resize(threads);
  block.groups.resize(threads / kGroup + 1);
  const unsigned each = std::min(kRegisterFile / threads, 255U) / 8 * 8;
  block.registers.assign(threads, each);
}

bool do_a_copy() {
  if (block.copies.empty()) return false;
  const auto drawn = block.copies.begin() + static_cast<std::ptrdiff_t>(block.random() % block.copies.size());
  const BoxCopy copy = *drawn;
  block.copies.erase(drawn);
  do_copy(copy);
  return true;
}

void end_background() {
  if (!block.copies.empty()) throw KernelError("a copy is under way when its block ends");
  for (const auto& [at, phases] : block.barriers) {
    if (phases.bytes != 0) throw KernelError("bytes that a barrier expects have not come when the block ends");
  }
  for (const ThreadProducts& thread : block.threads) {
    if (!thread.begun.empty() || !thread.groups.empty()) {
      throw KernelError("a product is under way when its block ends");
    }
  }
}

std::uint32_t address_in_shared(const void* shared) {
  return kSharedBase + static_cast<std::uint32_t>(static_cast<const std::byte*>(shared) - shared_memory());
}

void init_phases(void* barrier, unsigned arrivals, Site site) {
  if (reinterpret_cast<std::uintptr_t>(barrier) % sizeof(std::uint64_t) != 0) complain("a barrier is unaligned", site);
  block.barriers[barrier] = {arrivals, arrivals, 0, 0, false, this_thread_index()};
}

void publish_phases() {
  for (auto& [at, phases] : block.barriers) phases.published |= phases.made_by == this_thread_index();
}

void arrive_at(void* barrier, std::int64_t bytes, Site site) {
  Phases& phases = phases_of(barrier, site);
  if (phases.missing == 0) complain("more arrivals than the phase expects", site);
  phases.bytes += bytes;
  --phases.missing;
  end_phase_if_done(phases);
  if (block.eager && bytes == 0) give_way();
}

void wait_for_phase_of(void* barrier, unsigned parity, Site site) {
  const Phases& phases = phases_of(barrier, site);
  wait_until([&phases, parity] { return phases.ended % 2 != parity; }, "phase", site);
}

namespace {

void begin_copy_of(const BoxCopy& copy, std::uint32_t alignment, Site site) {
  if (!copy.barrier->published) complain("a barrier that copies cannot see: publish_barriers is missing", site);
  if (copy.to % alignment != 0) complain(fmt::format("a copy to what is not aligned to {} bytes", alignment), site);
  block.copies.push_back(copy);
  if (block.eager) do_a_copy();
}

}  // namespace

void begin_box(void* shared, const BoxedPlanes& planes, void* barrier, int column, int row, int plane, Site site) {
  constexpr std::uint32_t kRowBytes = 128;
  constexpr std::uint32_t kElemBytes = 2;
  begin_copy_of({planes,
                 planes.box[0] * planes.box[1] * kElemBytes,
                 address_in_shared(shared),
                 &phases_of(barrier, site),
                 {column, row, plane}},
                kRowBytes, site);
}

void begin_bytes(void* shared, const void* global, std::uint32_t bytes, void* barrier, Site site) {
  constexpr std::uint32_t kChunkBytes = 16;
  if (bytes % kChunkBytes != 0 || reinterpret_cast<std::uintptr_t>(global) % kChunkBytes != 0) {
    complain("a copy of what is not aligned to 16 bytes", site);
  }
  BoxedPlanes from;
  from.data = static_cast<const std::byte*>(global);
  begin_copy_of({from, bytes, address_in_shared(shared), &phases_of(barrier, site), {}}, kChunkBytes, site);
}

void wait_for_named(unsigned id, unsigned threads, Site site) {
  if (id == 0 || id >= block.named.size()) complain("a barrier is numbered from 1 to 15", site);
  meet(block.named[id], threads, "named barrier", site, [] {});
}

void give_or_take_registers(unsigned count, bool gives, Site site) {
  unsigned& mine = block.registers[this_thread_index()];
  if (count % 8 != 0 || count < 24 || count > 256) complain("registers come in eights, from 24 to 256", site);
  if (gives ? count > mine : count < mine) complain("registers are given or taken the wrong way", site);
  if (gives) {
    block.free_registers += mine - count;
  } else {
    const unsigned more = count - mine;
    while (block.free_registers < more) {
      wait_until([more] { return block.free_registers >= more; }, "registers", site);
    }
    block.free_registers -= more;
  }
  mine = count;
}

void fence_registers() { block.threads[this_thread_index()].fenced = true; }

void begin_product(const GroupProduct& product) {
  ThreadProducts& mine = block.threads[this_thread_index()];
  if (!mine.fenced) complain("a product begins and nobody has fenced its registers", product.site);
  mine.begun.push_back(product);
  mine.watch(product);
}

void commit_group_products() {
  ThreadProducts& mine = block.threads[this_thread_index()];
  mine.groups.push_back(std::exchange(mine.begun, {}));
}

void wait_for_group_products(std::size_t groups_left, Site site) {
  ThreadProducts& mine = block.threads[this_thread_index()];
  mine.fenced = false;
  for (const Watched& registers : mine.watched) {
    if (!registers.unchanged()) complain("registers were changed while a product had them", site);
  }
  const unsigned group = this_thread_index() / kGroup;
  meet(block.groups[group], kGroup, "warp group", site, [=] { complete(group * kGroup, groups_left); });
}

}  // namespace krigtune::emulation
