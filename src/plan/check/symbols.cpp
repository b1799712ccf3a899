#include "check/symbols.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace krigtune {
namespace {

Piece moved(Piece piece, std::int64_t by) {
  piece.begin += by;
  piece.end += by;
  piece.a -= static_cast<std::uint64_t>(by) * piece.b;
  return piece;
}

// 1 / x mod 2^64 for odd x: each step of Newton's method doubles the bits that are right (three at first).
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

// The index of the piece that begins at `at`, made so if need be.
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

}  // namespace krigtune
