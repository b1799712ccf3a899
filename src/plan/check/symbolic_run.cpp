#include "plan/check/symbolic_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/op_traits.h"

namespace krigtune::plan {
namespace {

constexpr std::uint64_t kControlSeed = 4, kMaskSeed = 5;

bool reads_operand(Role role, Access access) {
  return role == Role::kInput || role == Role::kInPlace || (role != Role::kHeld && access == Access::kReadWrite);
}

// Returns whether each tensor rank gets a different result from the same inputs, because it uses another part of a
// table or other tokens.
bool depends_on_rank(const OpTraits& traits, const Shape& shape) {
  return traits.looks_up() || (traits.places_rows && shape.rows < shape.batch * shape.seq);
}

}  // namespace

SymbolicRun::SymbolicRun(const StepPlan& plan, Findings& findings)
    : plan_(plan), findings_(findings), is_used_(plan.operations.size(), false) {
  for (const Operation& operation : plan.operations)
    orthogonalizes_ = orthogonalizes_ || operation.kind == schedule::OpKind::kOrthogonalize;
  for (std::int64_t r = 0; r < plan.world(); ++r) world_.push_back({r, r / plan.tensor_ranks, r % plan.tensor_ranks});
  for (const Place& place : world_) {
    memory_.emplace_back();
    for (const Buffer& buffer : plan.buffers) {
      memory_.back().push_back(buffer.persistent ? Symbols(buffer.elems) : Symbols::undefined(buffer.elems));
    }
    for (const auto* homes : {&plan.parameters, &plan.copies}) {
      for (const TensorHome& home : *homes) {
        const auto tensor = static_cast<std::size_t>(home.tensor);
        Symbols whole = value_of(tensor, place.tensor, 0);
        whole.append(Symbols(plan.tensors[tensor].padded_elems - whole.elems()));
        const std::int64_t first = home.first_elem + (home.sharded ? place.data * home.range.elems : 0);
        memory(place, home.range.buffer)
            .put(home.range.begin_elems + place.data * home.range.rank_stride_elems,
                 whole.part(first, home.range.elems), -1);
      }
    }
    if (plan.control >= 0)
      memory(place, plan.control).put(0, Symbols(schedule::kControlElementCount, kControlSeed), -1);
  }
}

void SymbolicRun::step() {
  start();
  for (std::size_t i = 0; i < plan_.operations.size(); ++i) {
    const Operation& operation = plan_.operations[i];
    if (is_collective(operation.kind)) {
      run_group(i, operation.group);
      continue;
    }
    std::vector<Executed> executed(static_cast<std::size_t>(plan_.tensor_ranks));
    const bool records = Derivatives::records(operation);
    for (const Place& place : world_) {
      execute(i, place, records ? &executed[static_cast<std::size_t>(place.tensor)] : nullptr);
      if (!records || place.tensor + 1 < plan_.tensor_ranks) continue;
      derivatives_.record(operation, executed);
    }
  }
  know_parameters();
  check_homes();
  check_losses();
  for (const Parameter& parameter : parameters_) {
    if (plan_.tensors[parameter.tensor].trained) stale_.insert(parameter.value.pieces().front().b);
  }
  ++steps_;
}

void SymbolicRun::start() {
  knows_parameters_ = false;
  parameters_.clear();
  by_value_.clear();
  by_derivative_.clear();
  controls_.clear();
  by_momentum_.clear();
  if (plan_.control >= 0) control_ = memory(world_.front(), plan_.control).part(0, schedule::kControlElementCount);
  batch_.assign(static_cast<std::size_t>(plan_.ranks), {});
  for (auto* of : {&logits_, &exponentials_, &tops_, &sums_, &at_target_}) {
    of->assign(static_cast<std::size_t>(plan_.ranks),
               std::vector<Symbols>(static_cast<std::size_t>(plan_.tensor_ranks)));
  }
  derivatives_ = Derivatives();
  for (const Place& place : world_) {
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const bool is_result = static_cast<BufferId>(b) == plan_.loss;
      if (is_result || !plan_.buffers[b].persistent) {
        memory(place, static_cast<BufferId>(b)) = Symbols::undefined(plan_.buffers[b].elems);
      }
    }
  }
}

void SymbolicRun::execute(std::size_t i, const Place& place, Executed* executed) {
  const Operation& operation = plan_.operations[i];
  const std::size_t count = operation.operands.size();
  if (executed != nullptr) *executed = {{}, {}, Derivatives::depend_on_place(operation.kind) ? place_of(i, place) : 0};
  for (std::size_t k = 0; k < count; ++k) {
    const Role role = traits_of(operation.kind).operand(k, count).role;
    if (role == Role::kHeld || reads_operand(role, operation.operands[k].access)) read(i, k, place);
    if (executed != nullptr) executed->before.push_back(look(i, k, place));
  }
  compute(i, place);
  if (executed == nullptr) return;
  for (std::size_t k = 0; k < count; ++k) executed->after.push_back(look(i, k, place));
}

void SymbolicRun::run_group(std::size_t i, schedule::Group group) {
  const std::int64_t others = plan_.world() / plan_.group_ranks(group);
  const bool records = Derivatives::records(plan_.operations[i]);
  for (std::int64_t g = 0; g < others; ++g) {
    std::vector<Place> members;
    for (const Place& place : world_) {
      if ((group == schedule::Group::kData ? place.tensor : place.data) == g) members.push_back(place);
    }
    std::vector<Executed> executed;
    communicate(i, members, records ? &executed : nullptr);
    if (records) derivatives_.record(plan_.operations[i], std::move(executed));
  }
}

void SymbolicRun::communicate(std::size_t i, const std::vector<Place>& group, std::vector<Executed>* executed) {
  const Operation& operation = plan_.operations[i];
  const auto parts = static_cast<std::int64_t>(group.size());
  const bool gathers = operation.kind == schedule::OpKind::kAllGather;
  if (executed != nullptr) executed->resize(group.size());
  for (std::size_t k = 0; k < operation.operands.size(); k += gathers ? 2 : 1) {
    Symbols result;
    for (std::size_t r = 0; r < group.size(); ++r) {
      const Symbols own = read(i, k, group[r]);
      if (executed != nullptr) (*executed)[r].before.push_back(own);
      if (gathers) {
        result.append(own);
      } else {
        const bool sums = operation.kind != schedule::OpKind::kAllReduceMax;
        const Symbols part = sums ? own : Symbols(own.elems(), own.hash());
        if (r == 0) {
          result = part;
        } else {
          result.add(part);
        }
      }
    }
    if (operation.kind == schedule::OpKind::kAllReduceMax) result = Symbols(result.elems(), result.hash());
    for (std::int64_t r = 0; r < parts; ++r) {
      Symbols mine = result;
      if (operation.kind == schedule::OpKind::kReduceScatter) {
        const std::int64_t part = result.elems() / parts;
        mine = look(i, k, group[static_cast<std::size_t>(r)]);  // other elements keep their values
        mine.put(r * part, result.part(r * part, part), -1);
      }
      const Place& place = group[static_cast<std::size_t>(r)];
      write(i, gathers ? k + 1 : k, place, mine);
      if (executed != nullptr) (*executed)[static_cast<std::size_t>(r)].after.push_back(look(i, k, place));
    }
  }
}

void SymbolicRun::compute(std::size_t i, const Place& place) {
  const Operation& operation = plan_.operations[i];
  const std::size_t count = operation.operands.size();
  SymbolicCall call{operation.kind, operation.shape, operation.scale, place_of(i, place)};
  if (is_update(operation.kind)) return update(i, place);
  if (operation.kind == schedule::OpKind::kMomentum) return accumulate_momentum(i, place);
  if (operation.kind == schedule::OpKind::kOrthogonalize) return orthogonalize(i, place);
  switch (operation.kind) {
    case schedule::OpKind::kZero:
      for (std::size_t k = 0; k < count; ++k) write(i, k, place, Symbols(operation.operands[k].range.elems));
      return;
    case schedule::OpKind::kCopy:
    case schedule::OpKind::kAccumulate:
    case schedule::OpKind::kAdd:
      return pairwise(i, place);
    case schedule::OpKind::kLoadBatch:
      return load(i, place, call);
    case schedule::OpKind::kGradientNorm:
      return add_norm(i, place);
    case schedule::OpKind::kLossScale:
      return scale_loss(i, place);
    default:
      return compute_layer(i, place, call);
  }
}

void SymbolicRun::compute_layer(std::size_t i, const Place& place, const SymbolicCall& call) {
  const Operation& operation = plan_.operations[i];
  const std::size_t count = operation.operands.size();
  check_batch(i, place);
  check_split_loss(i, place);
  const OpTraits& traits = traits_of(operation.kind);
  std::vector<SymbolicInput> inputs;
  for (std::size_t k = 0; k < count; ++k) {
    const Role role = traits.operand(k, count).role;
    if (role == Role::kInput || role == Role::kInPlace)
      inputs.push_back({look(i, k, place), reads_derivative(traits, k, count)});
  }
  for (std::size_t k = 0; k < count; ++k) {
    const Operand& operand = operation.operands[k];
    if (operand.access == Access::kRead) continue;
    Symbols value = call.result(inputs, k, operand.range.elems);
    const bool adds = traits.operand(k, count).role != Role::kInPlace;
    if (operand.access == Access::kReadWrite && adds) value.add(look(i, k, place));
    write(i, k, place, value);
  }
  const auto keep = [&](std::vector<std::vector<Symbols>>& of, std::size_t k) {
    of[static_cast<std::size_t>(place.data)][static_cast<std::size_t>(place.tensor)] = look(i, k, place);
  };
  if (operation.kind == schedule::OpKind::kVocabMax) {
    keep(logits_, 0);
    keep(tops_, 1);
  }
  if (operation.kind != schedule::OpKind::kVocabSumExp) return;
  keep(exponentials_, 0);
  keep(sums_, 3);
  keep(at_target_, 4);
}

void SymbolicRun::pairwise(std::size_t i, const Place& place) {
  const Operation& operation = plan_.operations[i];
  const bool adds_to_first = operation.kind == schedule::OpKind::kAdd;
  for (std::size_t k = 0; k + 1 < operation.operands.size(); k += 2) {
    const std::size_t from = adds_to_first ? k + 1 : k;
    const std::size_t to = adds_to_first ? k : k + 1;
    Symbols value = look(i, from, place);
    if (operation.operands[to].access == Access::kReadWrite) value.add(look(i, to, place));
    write(i, to, place, value);
  }
}

// Further dependencies of an operation in addition to its inputs: dropout depends on the position in the job's stream
// of sequences, positions depend on which tokens of the batch this rank holds, and look-ups on its part of the table.
std::uint64_t SymbolicRun::place_of(std::size_t i, const Place& place) const {
  const Operation& operation = plan_.operations[i];
  const OpTraits& traits = traits_of(operation.kind);
  std::uint64_t name = 0;
  if (depends_on_rank(traits, operation.shape)) name = mixed(name, unsigned_of(place.tensor));
  if (!traits.draws || !(operation.shape.dropout > 0.0)) return name;
  const std::int64_t batch = (steps_ * plan_.micro_steps + operation.micro_step) * plan_.ranks + place.data;
  for (const std::int64_t part : {batch, static_cast<std::int64_t>(operation.layer)}) {
    name = mixed(mixed(name, kMaskSeed), unsigned_of(part));
  }
  return name;
}

Range SymbolicRun::at(const Operation& operation, std::size_t operand, const Place& place) const {
  Range range = operation.operands[operand].range;
  range.begin_elems +=
      (operation.group == schedule::Group::kData ? place.data : place.tensor) * range.rank_stride_elems;
  return range;
}

Symbols& SymbolicRun::memory(const Place& place, BufferId buffer) {
  return memory_[static_cast<std::size_t>(place.world)][static_cast<std::size_t>(buffer)];
}

Symbols SymbolicRun::look(std::size_t i, std::size_t operand, const Place& place) {
  const Range range = at(plan_.operations[i], operand, place);
  return memory(place, range.buffer).part(range.begin_elems, range.elems);
}

Symbols SymbolicRun::read(std::size_t i, std::size_t operand, const Place& place) {
  Symbols values = look(i, operand, place);
  const BufferId buffer = plan_.operations[i].operands[operand].range.buffer;
  for (const Piece& piece : values.pieces()) {
    if (piece.writer >= 0) is_used_[static_cast<std::size_t>(piece.writer)] = true;
  }
  if (!values.is_defined()) complain(i, buffer, fmt::format("reads what nobody has written (operand {})", operand));
  check_fresh(i, values, buffer);
  return values;
}

void SymbolicRun::check_fresh(std::size_t i, const Symbols& values, BufferId buffer) {
  if (stale_.empty() || plan_.operations[i].phase == schedule::Phase::kOptimizer) return;
  for (const Piece& piece : values.pieces()) {
    if (stale_.count(piece.b) != 0) complain(i, buffer, "reads parameters of an earlier step");
  }
}

void SymbolicRun::write(std::size_t i, std::size_t operand, const Place& place, const Symbols& values) {
  const Range range = at(plan_.operations[i], operand, place);
  memory(place, range.buffer).put(range.begin_elems, values, static_cast<std::int32_t>(i));
}

void SymbolicRun::complain(std::size_t i, BufferId buffer, const std::string& what) {
  const std::uint64_t name = mixed(mixed(i, unsigned_of(buffer)), std::hash<std::string>()(what));
  if (reported_.insert(name).second) findings_.add(i, buffer, what);
}

// Two properties that differentiation does not check: which tokens the model reads, and whether a loss over a split
// vocabulary uses the numbers of all ranks.
namespace {

constexpr std::uint64_t kBatchSeed = 3;

}  // namespace

void SymbolicRun::load(std::size_t i, const Place& place, const SymbolicCall& call) {
  const std::int64_t batch = (steps_ * plan_.micro_steps + plan_.operations[i].micro_step) * plan_.ranks + place.data;
  for (std::size_t k = 0; k < 2; ++k) {
    const std::vector<SymbolicInput> of_batch = {{Symbols::number(mixed(kBatchSeed, unsigned_of(batch)))}};
    const Symbols values = call.result(of_batch, k, plan_.operations[i].operands[k].range.elems);
    batch_[static_cast<std::size_t>(place.data)][k] = values;
    write(i, k, place, values);
  }
}

void SymbolicRun::expect(std::size_t i, std::size_t operand, const Place& place, const Symbols& value,
                         const std::string& what) {
  if (look(i, operand, place) == value) return;
  complain(i, plan_.operations[i].operands[operand].range.buffer, fmt::format("does not read {}", what));
}

void SymbolicRun::check_batch(std::size_t i, const Place& place) {
  const Operation& operation = plan_.operations[i];
  const std::size_t last = operation.operands.size() - 1;
  const OpTraits& traits = traits_of(operation.kind);
  const bool is_loss = traits.is_loss;
  const bool is_scaled = is_loss && operation.operands[last].access == Access::kRead;
  if (is_scaled) expect(i, last, place, control_, "the step's control");
  if (is_loss && is_scaled != (plan_.control >= 0)) {
    complain(i, operation.operands[last].range.buffer, "does not scale the loss as the plan says");
  }
  const auto& [tokens, targets] = batch_[static_cast<std::size_t>(place.data)];
  for (std::size_t k = 0; k < traits.operands.size(); ++k) {
    const std::string_view name = traits.operands[k].name;
    if (name == "tokens") expect(i, k, place, tokens, "the micro-step's tokens");
    if (name == "targets") expect(i, k, place, targets, "the micro-step's targets");
  }
}

// The largest logit of all ranks, then the sums over all ranks.
void SymbolicRun::check_split_loss(std::size_t i, const Place& place) {
  const auto data = static_cast<std::size_t>(place.data);
  const auto sum_of_all = [](const std::vector<Symbols>& ranks) {
    Symbols sum = ranks.front();
    for (std::size_t r = 1; r < ranks.size(); ++r) sum.add(ranks[r]);
    return sum;
  };
  const schedule::OpKind kind = plan_.operations[i].kind;
  const auto tensor = static_cast<std::size_t>(place.tensor);
  if (kind == schedule::OpKind::kVocabSumExp) {
    expect(i, 0, place, logits_[data][tensor], "the logits whose largest is known");
    std::vector<Symbols> names;
    for (const Symbols& top : tops_[data]) names.emplace_back(top.elems(), top.hash());
    const Symbols top = sum_of_all(names);
    expect(i, 2, place, Symbols(top.elems(), top.hash()), "the largest logits of all tensor ranks");
  }
  if (kind == schedule::OpKind::kVocabCrossEntropy) {
    expect(i, 0, place, exponentials_[data][tensor], "the exponentials that were summed");
    expect(i, 2, place, sum_of_all(sums_[data]), "the sums over all tensor ranks");
    expect(i, 3, place, sum_of_all(at_target_[data]), "the targets' logits, whose rank may be another");
  }
}

void SymbolicRun::check_uses() {
  for (const Place& place : world_) {
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      // Gradients are used by the optimizer; everything else that persists is used by the next step.
      if (!plan_.buffers[b].persistent || plan_.buffers[b].term == schedule::Term::kGradients) continue;
      for (const Piece& piece : memory(place, static_cast<BufferId>(b)).pieces()) {
        if (piece.writer >= 0) is_used_[static_cast<std::size_t>(piece.writer)] = true;
      }
    }
  }
  std::vector<std::size_t> last_use(plan_.buffers.size(), 0);
  for (std::size_t i = 0; i < plan_.operations.size(); ++i) {
    for (const Operand& operand : plan_.operations[i].operands) {
      last_use[static_cast<std::size_t>(operand.range.buffer)] = i;
    }
  }
  const bool has_frozen = std::ranges::any_of(plan_.tensors, [](const auto& tensor) { return !tensor.trained; });
  for (std::size_t i = 0; i < is_used_.size(); ++i) {
    const Operation& operation = plan_.operations[i];
    // Recomputation runs to the end of a layer or of a module, as in frameworks, although the last output is not
    // needed. So does the backward pass to the first layer's input, although the embedding may be frozen.
    const auto is_last = [&](const Operand& operand) {
      return operand.access != Access::kRead && last_use[static_cast<std::size_t>(operand.range.buffer)] == i;
    };
    const bool runs_on = operation.phase == schedule::Phase::kRecompute ||
                         (has_frozen && operation.phase == schedule::Phase::kBackward && operation.layer == 0);
    const bool is_end = runs_on && std::ranges::any_of(operation.operands, is_last);
    if (!is_used_[i] && !is_end) findings_.add(i, "computes what nobody reads");
  }
}

}  // namespace krigtune::plan
