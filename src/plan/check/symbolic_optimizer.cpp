// The optimizer's part of the symbolic run: which values, gradients and moments an update combines.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plan/check/symbolic_run.h"
#include "plan/op_traits.h"

namespace krigtune::plan {
namespace {

constexpr std::uint64_t kValueSeed = 1, kMomentSeed = 2, kNormSeed = 6, kDirectionSeed = 7;

// Returns the sum of a symbol's elements [begin, begin + elems). It does not depend on how they are divided or on the
// order.
std::uint64_t sum_of(const Symbols& symbol, std::int64_t begin, std::int64_t elems) {
  std::uint64_t sum = 0;
  const Symbols part = symbol.part(begin, elems);
  for (const Piece& piece : part.pieces()) {
    const std::int64_t ends = piece.begin + piece.end - 1;
    const bool even = piece.elems() % 2 == 0;
    const std::uint64_t places =
        modular::product(modular::of(even ? piece.elems() / 2 : piece.elems()), modular::of(even ? ends : ends / 2));
    sum = modular::sum(sum, modular::product(modular::of(piece.elems()), piece.a));
    sum = modular::sum(sum, modular::product(places, piece.b));
  }
  return sum;
}

}  // namespace

std::uint64_t SymbolicRun::name_of(std::size_t tensor, std::int64_t tensor_rank) const {
  const bool is_split = plan_.tensors[tensor].split != schedule::Split::kNone;
  return mixed(unsigned_of(static_cast<std::int64_t>(tensor)), is_split ? unsigned_of(tensor_rank + 1) : 0);
}

// A frozen tensor keeps its first values.
Symbols SymbolicRun::value_of(std::size_t tensor, std::int64_t tensor_rank, std::int64_t version) const {
  if (!plan_.tensors[tensor].trained) version = 0;
  const std::uint64_t name = mixed(mixed(kValueSeed, name_of(tensor, tensor_rank)), unsigned_of(version));
  return {plan_.tensors[tensor].elems, name};
}

Symbols SymbolicRun::moment_of(const Parameter& parameter, std::size_t which, std::int64_t version) const {
  const std::int64_t elems = plan_.tensors[parameter.tensor].elems;
  if (version == 0) return Symbols(elems);
  return {elems, mixed(mixed(mixed(kMomentSeed, parameter.name), which), unsigned_of(version))};
}

// What a matrix is updated with instead of its gradient; zeros if the loss does not depend on it.
Symbols SymbolicRun::direction_of(const Parameter& parameter) const {
  const std::int64_t elems = plan_.tensors[parameter.tensor].elems;
  if (parameter.derivative.is_zero()) return Symbols(elems);
  return {elems, mixed(mixed(kDirectionSeed, parameter.name), unsigned_of(steps_))};
}

// When an optimizer operation runs, all forward passes of the step have been executed.
void SymbolicRun::know_parameters() {
  if (knows_parameters_) return;
  knows_parameters_ = true;
  derivatives_.differentiate();
  for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
    const bool is_split = plan_.tensors[t].split != schedule::Split::kNone;
    for (std::int64_t r = 0; r < (is_split ? plan_.tensor_ranks : 1); ++r) {
      const Symbols value = value_of(t, r, steps_);
      parameters_.push_back({t, name_of(t, r), value, derivatives_.of(value)});
      by_value_[value.pieces().front().b] = parameters_.size() - 1;
      for (const Piece& piece : parameters_.back().derivative.pieces()) {
        if (!piece.is_zero()) by_derivative_[piece.b] = parameters_.size() - 1;
      }
    }
  }
}

const SymbolicRun::Parameter* SymbolicRun::parameter_at(const Piece& piece, bool derivative,
                                                        std::int64_t* place) const {
  const auto& by = derivative ? by_derivative_ : by_value_;
  const auto found = by.find(piece.b);
  if (found == by.end()) return nullptr;
  const Parameter& parameter = parameters_[found->second];
  for (const Piece& symbol : (derivative ? parameter.derivative : parameter.value).pieces()) {
    *place = place_in(symbol, piece, piece.begin);
    if (*place >= 0) return *place + piece.elems() <= symbol.end ? &parameter : nullptr;
  }
  return nullptr;
}

// Squares of a gradient. Parameters may have the same one: biases of branches that are added to the same tokens.
Symbols SymbolicRun::squares_of(const Parameter& parameter) {
  return {parameter.value.elems(), mixed(kNormSeed, parameter.derivative.hash())};
}

// Ranges with the value zero are padding.
void SymbolicRun::add_norm(std::size_t i, const Place& place) {
  know_parameters();
  const Operation& operation = plan_.operations[i];
  std::uint64_t sum = 0;
  for (std::size_t k = 1; k < operation.operands.size(); ++k) {
    const Symbols values = look(i, k, place);
    for (const Piece& piece : values.pieces()) {
      std::int64_t begin = 0;
      if (piece.is_zero()) continue;
      const Parameter* of = parameter_at(piece, true, &begin);
      if (of == nullptr) {
        complain(i, operation.operands[k].range.buffer, "takes the norm of what is not a sum over all ranks");
        continue;
      }
      sum = modular::sum(sum, sum_of(squares_of(*of), begin, piece.elems()));
    }
  }
  // A value that t tensor ranks share counts 1/t on each; multiplying by t keeps the numbers integers.
  const double times = operation.scale * static_cast<double>(plan_.tensor_ranks);
  Symbols counted = Symbols::number(modular::product(sum, modular::of(std::int64_t{std::llround(times)})));
  if (operation.operands[0].access == Access::kReadWrite) counted.add(look(i, 0, place));
  write(i, 0, place, counted);
}

void SymbolicRun::scale_loss(std::size_t i, const Place& place) {
  know_parameters();
  std::uint64_t expected = 0;
  for (const Parameter& of : parameters_) {
    // Parameters that are frozen or do not influence the loss do not count.
    if (of.derivative.is_zero() || !plan_.tensors[of.tensor].trained) continue;
    expected = modular::sum(expected, sum_of(squares_of(of), 0, of.value.elems()));
  }
  const Symbols sum = look(i, 0, place);
  const BufferId buffer = plan_.operations[i].operands[0].range.buffer;
  if (!(sum == Symbols::number(modular::product(expected, modular::of(plan_.tensor_ranks))))) {
    complain(i, buffer, "reads a norm that does not count every gradient once");
  }
  if (controls_.count(look(i, 1, place).hash()) != 0) {
    complain(i, plan_.operations[i].operands[1].range.buffer, "adapts what is adapted already");
  }
  const std::uint64_t name = mixed(look(i, 1, place).hash(), sum.hash());
  Symbols control(schedule::kControlElementCount, name);
  controls_.insert(control.hash());
  write(i, 1, place, control);
}

void SymbolicRun::check_control(std::size_t i, const Place& place, bool is_there) {
  const Operation& operation = plan_.operations[i];
  const std::size_t last = operation.operands.size() - 1;
  if (is_there != (plan_.control >= 0)) {
    return complain(i, operation.operands[last].range.buffer,
                    "updates without the step's control, or with one that "
                    "the plan does not have");
  }
  if (is_there && controls_.count(look(i, last, place).hash()) == 0) {
    complain(i, operation.operands[last].range.buffer, "updates with the control of another step");
  }
}

void SymbolicRun::update(std::size_t i, const Place& place) {
  know_parameters();
  const Operation& operation = plan_.operations[i];
  const std::size_t stride = traits_of(operation.kind).group.size();
  check_control(i, place, operation.operands.size() % stride == 1);
  for (std::size_t k = 0; k + stride <= operation.operands.size(); k += stride) {
    const Symbols values = look(i, k, place);
    for (const Piece& piece : values.pieces()) update_part(i, place, k, stride, piece);
  }
}

void SymbolicRun::update_part(std::size_t i, const Place& place, std::size_t first, std::size_t stride,
                              const Piece& piece) {
  const Operation& operation = plan_.operations[i];
  const auto part = [&](std::size_t k) { return look(i, k, place).part(piece.begin, piece.elems()); };
  const auto buffer = [&](std::size_t k) { return operation.operands[k].range.buffer; };
  if (piece.is_zero()) {  // padding
    if (!part(first + 1).is_zero()) complain(i, buffer(first + 1), "updates padding");
    return;
  }
  std::int64_t begin = 0;
  const Parameter* of = parameter_at(piece, false, &begin);
  if (of == nullptr)
    return complain(i, buffer(first), "updates what is not this step's parameters: twice, or too late");
  const schedule::ParameterTensor& tensor = plan_.tensors[of->tensor];
  if (!tensor.trained) return complain(i, buffer(first), fmt::format("updates {}, which is frozen", tensor.name));
  const bool by_direction = orthogonalizes_ && tensor.columns > 0;
  if (!(part(first + 1) == (by_direction ? direction_of(*of) : of->derivative).part(begin, piece.elems()))) {
    complain(
        i, buffer(first + 1),
        fmt::format("updates {} with what is not its {}", tensor.name,
                    by_direction ? "momentum's orthogonal matrix" : "gradient, once from every rank and micro-step"));
  }
  const auto put = [&](std::size_t k, const Symbols& whole) {
    put_part(i, k, place, piece, whole.part(begin, piece.elems()));
  };
  put(first, value_of(of->tensor, place.tensor, steps_ + 1));
  for (std::size_t which = 2; which < stride; ++which) {
    if (!(part(first + which) == moment_of(*of, which, steps_).part(begin, piece.elems()))) {
      complain(i, buffer(first + which), fmt::format("does not find the state of {}", tensor.name));
    }
    put(first + which, moment_of(*of, which, steps_ + 1));
  }
}

// Writes the elements of a piece of an operand.
void SymbolicRun::put_part(std::size_t i, std::size_t k, const Place& place, const Piece& piece,
                           const Symbols& values) {
  Symbols now = look(i, k, place);
  now.put(piece.begin, values, static_cast<std::int32_t>(i));
  write(i, k, place, now);
}

// The momentum of a matrix (operand 0), of its gradient.
void SymbolicRun::accumulate_momentum(std::size_t i, const Place& place) {
  know_parameters();
  const Operation& operation = plan_.operations[i];
  check_control(i, place, operation.operands.size() == 3);
  const Symbols gradient = look(i, 1, place);
  for (const Piece& piece : gradient.pieces()) {
    const Symbols before = look(i, 0, place).part(piece.begin, piece.elems());
    std::int64_t begin = 0;
    const Parameter* of = piece.is_zero() ? nullptr : parameter_at(piece, true, &begin);
    if (of == nullptr && piece.is_zero() && before.is_zero()) {  // padding
      put_part(i, 0, place, piece, before);
    } else if (of == nullptr) {
      complain(i, operation.operands[1].range.buffer, "accumulates what is not a gradient, once from every rank");
    } else {
      if (!(before == moment_of(*of, 2, steps_).part(begin, piece.elems())))
        complain(i, operation.operands[0].range.buffer, "does not find the momentum of the last step");
      const Symbols whole = moment_of(*of, 2, steps_ + 1);
      by_momentum_[whole.pieces().front().b] = static_cast<std::size_t>(of - parameters_.data());
      put_part(i, 0, place, piece, whole.part(begin, piece.elems()));
    }
  }
}

// The orthogonal matrix (operand 1) of a momentum. Ranks that share a matrix are taken to exchange what they need.
void SymbolicRun::orthogonalize(std::size_t i, const Place& place) {
  const Operation& operation = plan_.operations[i];
  const Symbols momentum = look(i, 0, place);
  for (const Piece& piece : momentum.pieces()) {
    const auto found = by_momentum_.find(piece.b);
    if (piece.is_zero() || found == by_momentum_.end()) {
      if (!piece.is_zero()) complain(i, operation.operands[0].range.buffer, "reads what is not this step's momentum");
      put_part(i, 1, place, piece, Symbols(piece.elems()));
      continue;
    }
    const Parameter& of = parameters_[found->second];
    const Symbols whole = moment_of(of, 2, steps_ + 1);
    const std::int64_t begin = place_in(whole.pieces().front(), piece, piece.begin);
    const Shape& shape = operation.shape;
    if (begin < 0 || shape.groups * shape.rows * shape.inner != plan_.tensors[of.tensor].elems)
      complain(i, operation.operands[0].range.buffer, "does not work on the matrices of the tensor");
    if (begin >= 0) put_part(i, 1, place, piece, direction_of(of).part(begin, piece.elems()));
  }
}

void SymbolicRun::check_homes() {
  for (const Place& place : world_) {
    for (const auto* homes : {&plan_.parameters, &plan_.copies}) {
      for (const TensorHome& home : *homes) {
        const auto tensor = static_cast<std::size_t>(home.tensor);
        const std::int64_t first = home.first_elem + (home.sharded ? place.data * home.range.elems : 0);
        const Symbols now =
            memory(place, home.range.buffer)
                .part(home.range.begin_elems + place.data * home.range.rank_stride_elems, home.range.elems);
        Symbols whole = value_of(tensor, place.tensor, steps_ + 1);
        whole.append(Symbols(plan_.tensors[tensor].padded_elems - whole.elems()));
        if (now == whole.part(first, home.range.elems)) continue;
        const std::string text =
            fmt::format("{} is not everywhere updated once after the step: buffer {} '{}'", plan_.tensors[tensor].name,
                        home.range.buffer, buffer_of(plan_, home.range).name);
        if (reported_.insert(std::hash<std::string>()(text)).second) findings_.add(text);
      }
    }
  }
}

void SymbolicRun::check_losses() {
  std::int64_t micro_step = 0;
  for (const Piece& piece : memory(world_.front(), plan_.loss).pieces()) {
    const bool is_written = piece.is_defined && piece.writer >= 0 && piece.elems() == 1;
    if (!is_written || plan_.operations[static_cast<std::size_t>(piece.writer)].micro_step != micro_step++) {
      const std::string text = fmt::format("the loss of micro-step {} is not there", piece.begin);
      if (reported_.insert(std::hash<std::string>()(text)).second) findings_.add(text);
    }
  }
}

}  // namespace krigtune::plan
