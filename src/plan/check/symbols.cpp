#include "plan/check/symbols.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <optional>
#include <set>

#include "plan/op_traits.h"

namespace krigtune::plan {
namespace {

Piece moved(Piece piece, std::int64_t by) {
  piece.begin += by;
  piece.end += by;
  if (by != 0) piece.a = piece.at(-by);
  return piece;
}

bool continues(const Piece& x, const Piece& y) { return x.a == y.a && x.b == y.b && x.is_defined == y.is_defined; }

// Returns k so that element e of `piece` is element e + k of the symbol with the same b that has the value a at 0;
// nothing if it is no part of that symbol.
std::optional<std::int64_t> distance(std::uint64_t a, const Piece& piece) {
  constexpr std::int64_t kMost = std::int64_t{1} << 50U;
  if (piece.a == a) return 0;
  const std::uint64_t found = modular::product(modular::difference(piece.a, a), modular::inverse(piece.b));
  const auto forward = static_cast<std::int64_t>(found);
  const auto backward = forward - static_cast<std::int64_t>(modular::kPrime);
  if (forward <= kMost) return forward;
  return backward >= -kMost ? std::optional(backward) : std::nullopt;
}

}  // namespace

// (h 2^32 + l) y with the high and the low half of x; 2^61 = 1.
std::uint64_t modular::product(std::uint64_t x, std::uint64_t y) {
  const auto low = [](std::uint64_t z) { return z & 0xFFFFFFFFU; };
  const std::uint64_t middle = (x >> 32U) * low(y) + low(x) * (y >> 32U);  // less than 2^62
  const std::uint64_t lowest = low(x) * low(y);
  const std::uint64_t shifted = of(low(middle) << 32U);
  const std::uint64_t high = (x >> 32U) * (y >> 32U) + (middle >> 32U);  // of 2^64 = 8
  return sum(sum(of(lowest), shifted), of(of(high) << 3U));
}

// Fermat: x^(p - 2).
std::uint64_t modular::inverse(std::uint64_t x) {
  std::uint64_t power = x;
  std::uint64_t result = 1;
  for (std::uint64_t exponent = kPrime - 2; exponent > 0; exponent >>= 1U) {
    if ((exponent & 1U) != 0) result = product(result, power);
    power = product(power, power);
  }
  return result;
}

std::uint64_t mixed(std::uint64_t x, std::uint64_t y) {
  std::uint64_t z = x * 0x9E3779B97F4A7C15U + y + 0x632BE59BD9B4E019U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

std::int64_t place_in(const Piece& symbol, const Piece& piece, std::int64_t at) {
  if (symbol.b != piece.b || symbol.b == 0) return -1;
  const std::optional<std::int64_t> shift = distance(symbol.a, piece);
  const bool is_part = shift && at + *shift >= symbol.begin && at + *shift < symbol.end;
  return is_part ? at + *shift : -1;
}

Symbols::Symbols(std::int64_t elems) {
  if (elems > 0) pieces_.push_back({0, elems});
}

Symbols::Symbols(std::int64_t elems, std::uint64_t seed) {
  pieces_.push_back({0, elems, modular::of(mixed(seed, 1)), modular::of(mixed(seed, 2))});
}

Symbols Symbols::undefined(std::int64_t elems) {
  Symbols symbols(elems);
  for (Piece& piece : symbols.pieces_) piece.is_defined = false;
  return symbols;
}

Symbols Symbols::number(std::uint64_t value) {
  Symbols symbols(1);
  symbols.pieces_.front().a = modular::of(value);
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

void Symbols::add(std::int64_t begin, const Symbols& other) {
  for (const Piece& unmoved : other.pieces_) {
    const Piece piece = moved(unmoved, begin);
    const std::size_t from = cut(piece.begin);
    const std::size_t to = cut(piece.end);
    for (std::size_t i = from; i < to; ++i) {
      pieces_[i].a = modular::sum(pieces_[i].a, piece.a);
      pieces_[i].b = modular::sum(pieces_[i].b, piece.b);
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

// The weights belong to the first element and to the second differences, which are 0 within a piece.
std::uint64_t Symbols::weighed(std::uint64_t seed) const {
  if (pieces_.empty()) return 0;
  std::uint64_t result = modular::product(modular::of(mixed(seed, 0)), pieces_.front().at(pieces_.front().begin));
  std::uint64_t before = 0;  // the difference between the last two elements
  const auto differs_by = [&](std::uint64_t difference, std::int64_t from) {
    const std::uint64_t weight = modular::of(mixed(seed, unsigned_of(from) + 1));
    result = modular::sum(result, modular::product(weight, modular::difference(difference, before)));
    before = difference;
  };
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    if (piece.elems() > 1) differs_by(piece.b, piece.begin);
    if (i + 1 == pieces_.size()) continue;
    differs_by(modular::difference(pieces_[i + 1].at(piece.end), piece.at(piece.end - 1)), piece.end - 1);
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

bool reads_derivative(const OpTraits& traits, std::size_t operand, std::size_t count) {
  if (!traits.backward_of) return false;
  const auto is = find_forward(traits_of(*traits.backward_of), traits.operand(operand, count).name);
  return is && is->is_derivative;
}

Symbols SymbolicCall::result(const std::vector<SymbolicInput>& inputs, std::size_t operand, std::int64_t elems) const {
  std::uint64_t name = mixed(static_cast<std::uint64_t>(kind), place);
  for (const std::int64_t size :
       {shape.batch, shape.seq, shape.heads, shape.kv_heads, shape.rows, shape.inner, shape.outer, shape.values,
        shape.groups, shape.begin, shape.width, static_cast<std::int64_t>(shape.site)}) {
    name = mixed(name, static_cast<std::uint64_t>(size));
  }
  name = mixed(mixed(name, std::bit_cast<std::uint64_t>(shape.dropout)), std::bit_cast<std::uint64_t>(scale));
  for (const SymbolicInput& input : inputs) name = mixed(name, input.is_derivative ? 0 : input.value.hash());
  name = mixed(name, operand);
  if (std::ranges::none_of(inputs, &SymbolicInput::is_derivative)) return {elems, name};
  Piece sum{0, elems};
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k].is_derivative) continue;
    const std::uint64_t seed = mixed(name, k);
    sum.a = modular::sum(sum.a, inputs[k].value.weighed(mixed(seed, 1)));
    sum.b = modular::sum(sum.b, inputs[k].value.weighed(mixed(seed, 2)));
  }
  return Symbols(sum);
}

bool Derivatives::records(const Operation& operation) {
  if (operation.phase != schedule::Phase::kForward) return false;
  if (is_collective(operation.kind)) {
    const bool sums =
        operation.kind == schedule::OpKind::kAllReduce || operation.kind == schedule::OpKind::kReduceScatter;
    return sums && operation.group == schedule::Group::kTensor;
  }
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

// What is computed again from the same values, by another rank or later, gives the same values, and all that use them
// come after the first time.
void Derivatives::keep_first_executions() {
  std::set<std::uint64_t> seen;
  for (Entry& entry : tape_) {
    const auto kind = static_cast<std::uint64_t>(entry.operation->kind);
    if (is_collective(entry.operation->kind)) {
      std::uint64_t name = kind;
      for (const Executed& rank : entry.ranks) name = mixed(name, symbol_of(rank));
      if (!seen.insert(name).second) entry.ranks.clear();
      continue;
    }
    std::erase_if(entry.ranks, [&](const Executed& rank) { return !seen.insert(mixed(kind, symbol_of(rank))).second; });
  }
}

void Derivatives::differentiate() {
  keep_first_executions();
  for (auto entry = tape_.rbegin(); entry != tape_.rend(); ++entry) {
    if (is_collective(entry->operation->kind)) {
      differentiate_sum(*entry);
      continue;
    }
    for (const Executed& rank : entry->ranks) differentiate_rank(*entry, rank);
  }
  tape_.clear();
}

Symbols Derivatives::of(const Symbols& value) const {
  Symbols result;
  for (const Piece& piece : value.pieces()) {
    Symbols found(piece.elems());
    const auto known = of_.find(piece.b);
    for (std::size_t i = 0; piece.b != 0 && known != of_.end() && i < known->second.size(); ++i) {
      const OfSymbol& symbol = known->second[i];
      const std::optional<std::int64_t> shift = distance(symbol.a, piece);
      if (!shift) continue;
      const std::int64_t begin = std::max(piece.begin + *shift, symbol.begin);
      const std::int64_t end = std::min(piece.end + *shift, symbol.begin + symbol.derivative.elems());
      if (begin < end)
        found.put(begin - *shift - piece.begin, symbol.derivative.part(begin - symbol.begin, end - begin), -1);
    }
    result.append(found);
  }
  return result;
}

void Derivatives::add(const Symbols& value, const Symbols& derivative) {
  for (const Piece& piece : value.pieces()) {
    if (piece.b != 0) add(piece, derivative.part(piece.begin, piece.elems()));
  }
}

void Derivatives::add(const Piece& piece, const Symbols& derivative) {
  std::vector<OfSymbol>& known = of_[piece.b];
  const auto found = std::ranges::find_if(known, [&](const OfSymbol& of) { return distance(of.a, piece).has_value(); });
  if (found == known.end()) {
    known.push_back({piece.a, piece.begin, derivative});
    return;
  }
  const std::int64_t begin = piece.begin + *distance(found->a, piece);
  const std::int64_t missing = found->begin - begin;
  if (missing > 0) {
    Symbols longer(missing);
    longer.append(found->derivative);
    found->derivative = longer;
    found->begin = begin;
  }
  const std::int64_t end = found->begin + found->derivative.elems();
  if (begin + derivative.elems() > end) found->derivative.append(Symbols(begin + derivative.elems() - end));
  found->derivative.add(begin - found->begin, derivative);
}

void Derivatives::differentiate_rank(const Entry& entry, const Executed& rank) {
  const Operation& forward = *entry.operation;
  const OpTraits& traits = traits_of(forward.kind);
  if (traits.is_loss) return add(rank.before[0], rank.after[0]);
  for (const Backward& backward : backward_of(forward.kind)) {
    // Optional operands that the forward operation lacks are also missing in its backward operations.
    const auto is_there = [&](const Source& source) { return source.operand < forward.operands.size(); };
    std::vector<SymbolicInput> inputs;
    for (const Source& source : backward.operands) {
      if (source.what == Source::kTarget || !is_there(source)) continue;
      const Symbols& value = rank.after[source.operand];
      const bool is_value = source.what == Source::kValue;
      inputs.push_back({is_value ? value : of(value), !is_value});
    }
    const SymbolicCall call{backward.kind, forward.shape, 1.0, rank.place};
    for (std::size_t k = 0; k < backward.operands.size(); ++k) {
      const Source& source = backward.operands[k];
      const bool in_place = source.what == Source::kInPlace;
      if ((source.what != Source::kTarget && !in_place) || !is_there(source)) continue;
      const Symbols& target = rank.before[in_place ? source.target : source.operand];
      add(target, call.result(inputs, k, target.elems()));
    }
  }
  for (std::size_t k = 0; k < traits.passes_on; ++k) add(rank.before[k], of(rank.after[0]));
  for (std::size_t k = 0; k < forward.operands.size(); ++k) {  // a result that is added to what was there
    const bool adds = forward.operands[k].access == Access::kReadWrite &&
                      traits.operand(k, forward.operands.size()).role == Role::kOutput;
    if (adds) add(rank.before[k], of(rank.after[k]));
  }
}

// The derivative with respect to each part of a sum over ranks is that of the sum.
void Derivatives::differentiate_sum(const Entry& entry) {
  if (entry.ranks.empty()) return;
  for (std::size_t k = 0; k < entry.ranks.front().before.size(); ++k) {
    Symbols sum = entry.ranks.front().before[k];
    for (std::size_t r = 1; r < entry.ranks.size(); ++r) sum.add(entry.ranks[r].before[k]);
    const Symbols derivative = of(sum);
    for (const Executed& rank : entry.ranks) add(rank.before[k], derivative);
  }
}

}  // namespace krigtune::plan
