#include "plan/check/symbols.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <set>

#include "plan/op_traits.h"

namespace krigtune::plan {
namespace {

Piece moved(Piece piece, std::int64_t by) {
  piece.begin += by;
  piece.end += by;
  piece.a -= static_cast<std::uint64_t>(by) * piece.b;
  return piece;
}

// Returns 1 / x mod 2^64 for odd x. Each step of Newton's method doubles the number of correct bits (three at first).
std::uint64_t inverse(std::uint64_t x) {
  std::uint64_t y = x;
  for (int step = 0; step < 5; ++step) y *= 2 - x * y;
  return y;
}

bool continues(const Piece& x, const Piece& y) { return x.a == y.a && x.b == y.b && x.is_defined == y.is_defined; }

}  // namespace

std::uint64_t mixed(std::uint64_t x, std::uint64_t y) {
  std::uint64_t z = x * 0x9E3779B97F4A7C15U + y + 0x632BE59BD9B4E019U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

std::int64_t place_in(const Piece& symbol, const Piece& piece, std::int64_t at) {
  if (symbol.b != piece.b || symbol.b == 0) return -1;
  const std::uint64_t distance = piece.a + static_cast<std::uint64_t>(at) * piece.b - symbol.a;
  const int twos = std::countr_zero(symbol.b);
  if (distance != 0 && std::countr_zero(distance) < twos) return -1;
  const std::uint64_t place = ((distance >> twos) * inverse(symbol.b >> twos)) << twos >> twos;
  const auto found = static_cast<std::int64_t>(place);
  return found >= symbol.begin && found < symbol.end ? found : -1;
}

Symbols::Symbols(std::int64_t elems) { pieces_.push_back({0, elems}); }

Symbols::Symbols(std::int64_t elems, std::uint64_t seed) {
  pieces_.push_back({0, elems, mixed(seed, 1), mixed(seed, 2) | 1U});
}

Symbols Symbols::undefined(std::int64_t elems) {
  Symbols symbols(elems);
  symbols.pieces_.front().is_defined = false;
  return symbols;
}

Symbols Symbols::number(std::uint64_t value) {
  Symbols symbols(1);
  symbols.pieces_.front().a = value;
  return symbols;
}

bool Symbols::is_defined() const {
  return std::all_of(pieces_.begin(), pieces_.end(), [](const Piece& piece) { return piece.is_defined; });
}

bool Symbols::is_zero() const {
  return std::all_of(pieces_.begin(), pieces_.end(), [](const Piece& piece) { return piece.is_zero(); });
}

Symbols Symbols::part(std::int64_t begin, std::int64_t elems) const {
  Symbols result;
  auto at = std::upper_bound(pieces_.begin(), pieces_.end(), begin,
                             [](std::int64_t place, const Piece& piece) { return place < piece.end; });
  for (; at != pieces_.end() && at->begin < begin + elems; ++at) {
    Piece piece = *at;
    piece.begin = std::max(piece.begin, begin);
    piece.end = std::min(piece.end, begin + elems);
    result.pieces_.push_back(moved(piece, -begin));
  }
  return result;
}

// Returns the index of the piece that begins at `at`, splitting a piece if necessary.
std::size_t Symbols::cut(std::int64_t at) {
  const auto found = std::lower_bound(pieces_.begin(), pieces_.end(), at,
                                      [](const Piece& piece, std::int64_t place) { return piece.end <= place; });
  const auto index = static_cast<std::size_t>(found - pieces_.begin());
  if (found == pieces_.end() || found->begin == at) return index;
  Piece behind = *found;
  found->end = at;
  behind.begin = at;
  pieces_.insert(pieces_.begin() + static_cast<std::ptrdiff_t>(index) + 1, behind);
  return index + 1;
}

void Symbols::put(std::int64_t begin, const Symbols& values, std::int32_t writer) {
  std::vector<Piece> fresh;
  for (const Piece& piece : values.pieces_) {
    fresh.push_back(moved(piece, begin));
    fresh.back().writer = writer;
  }
  const auto from = static_cast<std::ptrdiff_t>(cut(begin));
  const auto to = static_cast<std::ptrdiff_t>(cut(begin + values.elems()));
  const auto hole = pieces_.erase(pieces_.begin() + from, pieces_.begin() + to);
  pieces_.insert(hole, fresh.begin(), fresh.end());
}

void Symbols::append(const Symbols& behind) {
  const std::int64_t by = elems();
  for (const Piece& piece : behind.pieces_) pieces_.push_back(moved(piece, by));
}

void Symbols::add(const Symbols& other) {
  for (const Piece& piece : other.pieces_) {
    const std::size_t from = cut(piece.begin);
    const std::size_t to = cut(piece.end);
    for (std::size_t i = from; i < to; ++i) {
      pieces_[i].a += piece.a;
      pieces_[i].b += piece.b;
      pieces_[i].is_defined = pieces_[i].is_defined && piece.is_defined;
    }
  }
}

std::uint64_t Symbols::hash() const {
  std::uint64_t result = static_cast<std::uint64_t>(elems());
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (i > 0 && continues(pieces_[i - 1], pieces_[i])) continue;
    const Piece& piece = pieces_[i];
    result = mixed(result, static_cast<std::uint64_t>(piece.begin) * 2 + (piece.is_defined ? 1 : 0));
    result = mixed(mixed(result, piece.a), piece.b);
  }
  return result;
}

namespace {

/// An operand of a backward operation, in terms of the forward operation's operands.
struct Source {
  enum What : std::uint8_t { kValue, kDerivative, kTarget, kInPlace } what;
  std::size_t operand;     ///< whose value or derivative; kTarget: whose derivative is the result
  std::size_t target = 0;  ///< kInPlace: reads the derivative of `operand`, becomes that of `target`
};

struct Backward {
  schedule::OpKind kind;
  std::vector<Source> operands;
};

Source source_of(const OpTraits& forward, const OperandTraits& operand) {
  const ForwardOperand is = *find_forward(forward, operand.name);
  if (operand.role == Role::kInput) return {is.is_derivative ? Source::kDerivative : Source::kValue, is.operand};
  if (operand.role != Role::kInPlace) return {Source::kTarget, is.operand};
  const std::string_view after = operand.becomes.empty() ? operand.name : operand.becomes;
  return {Source::kInPlace, is.operand, find_forward(forward, after)->operand};
}

using Backwards = std::array<std::vector<Backward>, schedule::kOpKindCount>;  // by the forward operation's kind

Backwards all_backwards() {
  Backwards backwards;
  for (std::size_t k = 0; k < backwards.size(); ++k) {
    const OpTraits& traits = traits_of(static_cast<schedule::OpKind>(k));
    if (!traits.backward_of) continue;
    Backward backward{traits.kind, {}};
    for (const OperandTraits& operand : traits.operands) {
      if (operand.role != Role::kHeld) backward.operands.push_back(source_of(traits_of(*traits.backward_of), operand));
    }
    backwards[static_cast<std::size_t>(*traits.backward_of)].push_back(std::move(backward));
  }
  return backwards;
}

// Sums are not here: see OpTraits::passes_on.
const std::vector<Backward>& backward_of(schedule::OpKind forward) {
  static const Backwards kBackwards = all_backwards();
  return kBackwards[static_cast<std::size_t>(forward)];
}

std::uint64_t symbol_of(const Executed& rank) {
  std::uint64_t name = rank.place;
  for (const Symbols& value : rank.before) name = mixed(name, value.hash());
  for (const Symbols& value : rank.after) name = mixed(name, value.hash());
  return name;
}

}  // namespace

std::uint64_t SymbolicCall::result(const std::vector<std::uint64_t>& inputs, std::size_t operand) const {
  std::uint64_t name = mixed(static_cast<std::uint64_t>(kind), place);
  for (const std::int64_t size : {shape.batch, shape.seq, shape.heads, shape.kv_heads, shape.rows, shape.inner,
                                  shape.outer, shape.values, shape.groups, static_cast<std::int64_t>(shape.site)}) {
    name = mixed(name, static_cast<std::uint64_t>(size));
  }
  name = mixed(mixed(name, std::bit_cast<std::uint64_t>(shape.dropout)), std::bit_cast<std::uint64_t>(scale));
  for (const std::uint64_t input : inputs) name = mixed(name, input);
  return mixed(name, operand);
}

bool Derivatives::records(const Operation& operation) {
  if (operation.phase != schedule::Phase::kForward) return false;
  if (is_collective(operation.kind)) return operation.group == schedule::Group::kTensor;
  const OpTraits& traits = traits_of(operation.kind);
  return traits.is_loss || traits.passes_on > 0 || !backward_of(operation.kind).empty();
}

bool Derivatives::depend_on_place(schedule::OpKind forward) {
  return std::ranges::any_of(backward_of(forward), [](const Backward& backward) {
    const OpTraits& traits = traits_of(backward.kind);
    return traits.looks_up() || traits.places_rows;
  });
}

void Derivatives::record(const Operation& operation, std::vector<Executed> ranks) {
  tape_.push_back({&operation, std::move(ranks)});
}

void Derivatives::differentiate() {
  for (auto entry = tape_.rbegin(); entry != tape_.rend(); ++entry) {
    if (is_collective(entry->operation->kind)) {
      differentiate_collective(*entry);
      continue;
    }
    std::set<std::uint64_t> seen;
    for (const Executed& rank : entry->ranks) {
      if (seen.insert(symbol_of(rank)).second) differentiate_rank(*entry, rank);
    }
  }
  tape_.clear();
}

Symbols Derivatives::of(const Symbols& value) const {
  const auto found = of_.find(value.hash());
  return found == of_.end() ? Symbols(value.elems()) : found->second;
}

void Derivatives::add(const Symbols& value, const Symbols& derivative) {
  of_.try_emplace(value.hash(), value.elems()).first->second.add(derivative);
}

void Derivatives::differentiate_rank(const Entry& entry, const Executed& rank) {
  const Operation& forward = *entry.operation;
  const OpTraits& traits = traits_of(forward.kind);
  if (traits.is_loss) return add(rank.before[0], rank.after[0]);
  for (const Backward& backward : backward_of(forward.kind)) {
    // Optional operands that the forward operation lacks are also missing in its backward operations.
    const auto is_there = [&](const Source& source) { return source.operand < forward.operands.size(); };
    std::vector<std::uint64_t> inputs;
    for (const Source& source : backward.operands) {
      if (source.what == Source::kTarget || !is_there(source)) continue;
      const Symbols& value = rank.after[source.operand];
      inputs.push_back(source.what == Source::kValue ? value.hash() : of(value).hash());
    }
    const SymbolicCall call{backward.kind, forward.shape, 1.0, rank.place};
    for (std::size_t k = 0; k < backward.operands.size(); ++k) {
      const Source& source = backward.operands[k];
      const bool in_place = source.what == Source::kInPlace;
      if ((source.what != Source::kTarget && !in_place) || !is_there(source)) continue;
      const Symbols& target = rank.before[in_place ? source.target : source.operand];
      add(target, Symbols(target.elems(), call.result(inputs, k)));
    }
  }
  for (std::size_t k = 0; k < traits.passes_on; ++k) add(rank.before[k], of(rank.after[0]));
}

// The derivative with respect to each part of a sum over ranks is that of the sum.
void Derivatives::differentiate_collective(const Entry& entry) {
  const std::vector<Executed>& ranks = entry.ranks;
  const schedule::OpKind kind = entry.operation->kind;
  const auto parts = static_cast<std::int64_t>(ranks.size());
  const std::size_t stride = kind == schedule::OpKind::kAllGather ? 2 : 1;
  for (std::size_t k = 0; k < ranks.front().before.size(); k += stride) {
    Symbols joined;
    for (std::int64_t r = 0; r < parts; ++r) {
      const Symbols& after = ranks[static_cast<std::size_t>(r)].after[k];
      const std::int64_t part = after.elems() / parts;
      if (kind == schedule::OpKind::kReduceScatter) joined.append(of(after.part(r * part, part)));
    }
    for (std::int64_t r = 0; r < parts; ++r) {
      const Executed& rank = ranks[static_cast<std::size_t>(r)];
      const std::int64_t elems = rank.before[k].elems();
      if (kind == schedule::OpKind::kAllReduce) add(rank.before[k], of(rank.after[k]));
      if (kind == schedule::OpKind::kReduceScatter) add(rank.before[k], joined);
      if (kind == schedule::OpKind::kAllGather) add(rank.before[k], of(rank.after[k + 1]).part(r * elems, elems));
    }
  }
}

}  // namespace krigtune::plan
