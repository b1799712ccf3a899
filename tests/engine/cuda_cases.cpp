#include "cuda_cases.h"

#include <set>

#include "plan/op_traits.h"

namespace krigtune::cuda {
namespace {

engine::StepContext context() {
  engine::StepContext at;
  at.options.seed = 11;
  at.step = 3;
  at.rank = 1;
  at.ranks = 2;
  at.tensor_rank = 1;
  at.tensor_ranks = 2;
  at.micro_steps = 2;
  at.gradient_clipping = 0.5;
  at.first_loss_scale = 8.0;
  return at;
}

plan::Shape shape(const Sizes& z, std::int64_t rows) {
  plan::Shape s;
  s.batch = z.batch;
  s.seq = z.seq;
  s.heads = 4;
  s.kv_heads = 2;
  s.rows = rows;
  s.inner = z.hidden;
  s.outer = z.outer;
  s.site = 2;
  return s;
}
plan::Shape shape(const Sizes& z = {}) { return shape(z, z.rows()); }

plan::Shape with_dropout(plan::Shape s) {
  s.dropout = 0.3;
  return s;
}

plan::Shape with_inner(plan::Shape s, std::int64_t inner) {
  s.inner = inner;
  return s;
}

// Returns loss scale, good steps, factor, updates and norm (schedule::ControlElement).
std::vector<float> control(float factor) { return {4.0F, 3.0F, factor, 2.0F, 0.0F}; }

void add_memory(Maker& m, const Sizes& z, std::vector<Case>& cases) {
  const auto add = [&](const char* name, schedule::OpKind kind, std::vector<Datum> operands) {
    cases.push_back({name, kind, shape(z), std::move(operands), 1.0, context()});
  };
  add("load_batch", schedule::OpKind::kLoadBatch,
      {m.tokens(z.rows(), 9, plan::Access::kWrite), m.tokens(z.rows(), 9, plan::Access::kWrite)});
  add("zero", schedule::OpKind::kZero, {m.out(50), m.tokens(9, 9, plan::Access::kWrite)});
  add("copy", schedule::OpKind::kCopy,
      {m.in(40), m.single(40, 0, 1, plan::Access::kWrite), m.single(9, 0, 1, plan::Access::kRead), m.out(9),
       m.tokens(5, 9), m.tokens(5, 9, plan::Access::kWrite)});
  cases.back().operands[3].access = plan::Access::kWrite;
  add("accumulate", schedule::OpKind::kAccumulate,
      {m.in(40), m.single(40, 0, 1, plan::Access::kReadWrite), m.in(300), m.out(300)});
}

// Returns an operand as the table of op_table.cpp describes it. Its numbers have the model's type, except for
// statistics, which are kept in fp32.
Datum operand_of(Maker& m, const plan::OperandTraits& operand, const plan::Shape& s) {
  constexpr std::int64_t kAnySize = 300;
  const std::int64_t elems = operand.elems == nullptr ? kAnySize : operand.elems(s);
  const bool is_read = operand.role == plan::Role::kInput;
  if (operand.name == "tokens")
    return m.tokens(elems, static_cast<std::uint64_t>(2 * s.outer));  // half belong to rank 0
  if (operand.name == "mask") return m.mask(elems, is_read ? plan::Access::kRead : plan::Access::kWrite);
  if (operand.name == "stats") {
    return is_read ? m.single(elems, 1.0, 0.1, plan::Access::kRead) : m.single(elems, 0.0, 1.0, plan::Access::kWrite);
  }
  if (is_read) return m.in(elems);
  const bool replaces = operand.role == plan::Role::kInPlace || operand.role == plan::Role::kAddedTo;
  return replaces ? m.in_place(elems) : m.out(elems);
}

// Returns the shapes to try: one for half of the batch too if the result depends on which part of the batch it is, one
// of half of the columns if it draws, and norms of queries with a norm for each head or for all.
std::vector<plan::Shape> shapes_of(const plan::OpTraits& traits, const Sizes& z) {
  const plan::OpTraits& forward = traits.backward_of ? plan::traits_of(*traits.backward_of) : traits;
  plan::Shape s = shape(z);
  if (forward.draws) s = with_dropout(s);
  std::vector<plan::Shape> shapes{s};
  const auto also = [&](std::int64_t plan::Shape::*size, std::int64_t value) {
    shapes.push_back(s);
    shapes.back().*size = value;
  };
  if (traits.looks_up() || traits.places_rows || traits.draws) also(&plan::Shape::rows, z.rows() / 2);
  if (traits.draws) also(&plan::Shape::width, 2 * s.inner);
  if (forward.kind != schedule::OpKind::kQkNormForward) return shapes;
  shapes.front().outer = s.inner / s.heads;
  also(&plan::Shape::outer, s.inner);
  return shapes;
}

// Adds cases for all operations that have none yet, as the table describes them: with and without their optional
// operands. Leaves out attention, because its backward pass reads what its forward pass has computed.
void add_from_table(Maker& m, const Sizes& z, std::vector<Case>& cases) {
  std::set<schedule::OpKind> has_cases;
  for (const Case& each : cases) has_cases.insert(each.kind);
  for (int k = 0; k < schedule::kOpKindCount; ++k) {
    const plan::OpTraits& traits = plan::traits_of(static_cast<schedule::OpKind>(k));
    const bool is_known = has_cases.count(traits.kind) > 0 || traits.family == plan::OpFamily::kAttention;
    if (is_known || plan::is_collective(traits.kind) || traits.predicted_only) continue;
    const std::size_t most = traits.operands.size() + traits.group.size();
    for (std::size_t count = 1; count <= most; ++count) {
      if (!traits.takes(count) || traits.operand(count - 1, count).predicted_only) continue;
      for (const plan::Shape& s : shapes_of(traits, z)) {
        Case added{traits.name, traits.kind, s, {}, 1.0, context()};
        if (count < most) added.name += " of " + std::to_string(count) + " operands";
        for (std::size_t i = 0; i < count; ++i) added.operands.push_back(operand_of(m, traits.operand(i, count), s));
        cases.push_back(std::move(added));
      }
    }
  }
}

// Products of some columns of y, as an adapter has them of a layer's outputs.
void add_columns(Maker& m, const Sizes& z, std::vector<Case>& cases) {
  plan::Shape s = shape(z);
  s.begin = 3;
  s.width = z.outer + 7;
  const auto add = [&](const char* name, schedule::OpKind kind, std::vector<Datum> operands) {
    cases.push_back({name, kind, s, std::move(operands), 1.0, context()});
  };
  const std::int64_t x = s.rows * s.inner, weight = s.outer * s.inner, y = s.rows * s.width;
  add("linear_forward of columns", schedule::OpKind::kLinearForward, {m.in(x), m.in(weight), m.in_place(y)});
  add("linear_backward_input of columns", schedule::OpKind::kLinearBackwardInput, {m.in(y), m.in(weight), m.out(x)});
  add("linear_backward_weight of columns", schedule::OpKind::kLinearBackwardWeight, {m.in(y), m.in(x), m.out(weight)});
}

// Rank 0 holds z.outer tokens of the vocabulary. On this rank the last 3 columns are padding.
void add_losses(Maker& m, const Sizes& z, std::vector<Case>& cases) {
  const std::int64_t all = z.rows() * z.outer, vocabulary = 2 * z.outer - 3;
  const auto add = [&](const char* name, schedule::OpKind kind, std::vector<Datum> operands) {
    cases.push_back({name, kind, with_inner(shape(z), vocabulary), std::move(operands), 0.25, context()});
  };
  const auto loss = [&] {
    Datum datum = m.out(1);
    return bytes_of(schedule::DType::kFp32, datum.numbers(), datum.access);
  };
  const auto rows = [&](double mean, plan::Access access) { return m.single(z.rows(), mean, 0.5, access); };
  const auto state = Maker::singles(control(1.0F), plan::Access::kRead);
  add("cross_entropy", schedule::OpKind::kCrossEntropy,
      {m.in_place(all), m.tokens(z.rows(), static_cast<std::uint64_t>(z.outer)), loss()});
  add("cross_entropy, scaled", schedule::OpKind::kCrossEntropy,
      {m.in_place(all), m.tokens(z.rows(), static_cast<std::uint64_t>(z.outer)), loss(), state});
  add("vocab_max", schedule::OpKind::kVocabMax, {m.in(all), rows(0, plan::Access::kWrite)});
  add("vocab_sum_exp", schedule::OpKind::kVocabSumExp,
      {m.in_place(all), m.tokens(z.rows(), static_cast<std::uint64_t>(vocabulary)), rows(2, plan::Access::kRead),
       rows(0, plan::Access::kWrite), rows(0, plan::Access::kWrite)});
  Datum exponentials = m.in_place(all);  // 0 in the columns of padding
  std::vector<float> values = exponentials.numbers();
  const auto held = static_cast<std::size_t>(z.outer);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % held < held - 3 ? std::exp(values[i]) : 0.0F;
  add("vocab_cross_entropy", schedule::OpKind::kVocabCrossEntropy,
      {bytes_of(exponentials.type, values, plan::Access::kReadWrite),
       m.tokens(z.rows(), static_cast<std::uint64_t>(vocabulary)), rows(9, plan::Access::kRead),
       rows(0, plan::Access::kRead), loss(), state});
}

void add_optimizers(Maker& m, const Sizes& z, std::vector<Case>& cases) {
  const auto add = [&](const char* name, schedule::OpKind kind, std::vector<Datum> operands) {
    cases.push_back({name, kind, shape(z), std::move(operands), 0.5, context()});
  };
  const auto state = [&](std::int64_t elems, double mean) {
    return m.single(elems, mean, 0.1, plan::Access::kReadWrite);
  };
  add("gradient_norm", schedule::OpKind::kGradientNorm,
      {m.single(1, 1.0, 0.1, plan::Access::kReadWrite), m.in(300), m.in(10000), m.in(3)});
  std::vector<Datum> many{m.single(1, 1.0, 0.1, plan::Access::kReadWrite)};
  while (many.size() < 70) many.push_back(m.in(5));
  add("gradient_norm of many ranges", schedule::OpKind::kGradientNorm, std::move(many));
  for (const float sum : {0.01F, 9.0F, INFINITY, NAN}) {
    add("loss_scale", schedule::OpKind::kLossScale,
        {Maker::singles({sum}, plan::Access::kRead), Maker::singles(control(1.0F), plan::Access::kReadWrite)});
  }
  add("adamw", schedule::OpKind::kAdamW,
      {state(300, 0), m.in(300), state(300, 0), state(300, 2.0), state(9, 0), m.in(9), state(9, 0), state(9, 2.0)});
  add("sgd", schedule::OpKind::kSgd, {state(300, 0), m.in(300), state(300, 0)});
  for (const float factor : {0.5F, 0.0F}) {
    const Datum controlled = Maker::singles(control(factor), plan::Access::kRead);
    add("adamw, controlled", schedule::OpKind::kAdamW,
        {state(300, 0), m.in(300), state(300, 0), state(300, 2.0), controlled});
    add("sgd, controlled", schedule::OpKind::kSgd, {state(300, 0), m.in(300), state(300, 0), controlled});
  }
}

Case attention(Maker& m, const char* name, const plan::Shape& s, bool keeps) {
  const std::int64_t d = s.inner / s.heads;
  const std::int64_t scores = s.batch * s.heads * s.seq * s.seq;
  Case result{name, schedule::OpKind::kAttentionForward, s, {}, 1.0, context()};
  result.operands = {m.in(s.batch * s.seq * (s.inner + 2 * s.kv_heads * d)), m.out(s.batch * s.seq * s.inner),
                     m.single(s.batch * s.heads * s.seq, 0, 1, plan::Access::kWrite)};
  const auto written = [&](Datum datum) {
    datum.access = plan::Access::kWrite;
    return datum;
  };
  if (keeps) result.operands.push_back(written(m.out(scores)));
  if (keeps && s.dropout > 0.0) {
    result.operands.push_back(m.mask(scores, plan::Access::kWrite));
    result.operands.push_back(written(m.out(scores)));
  }
  return result;
}

}  // namespace

std::vector<Case> kernel_cases(schedule::DType type, plan::Access out, const Sizes& z) {
  Maker m(type, out);
  std::vector<Case> cases;
  add_memory(m, z, cases);
  add_losses(m, z, cases);
  add_optimizers(m, z, cases);
  add_from_table(m, z, cases);
  add_columns(m, z, cases);
  return cases;
}

std::vector<Case> attention_cases(schedule::DType type, plan::Access out) {
  Maker m(type, out);
  plan::Shape long_sequence = shape();
  long_sequence.batch = 1;
  long_sequence.seq = 1100;
  long_sequence.heads = 2;
  long_sequence.kv_heads = 1;
  long_sequence.inner = 4;
  std::vector<Case> cases = {
      attention(m, "flash", shape(), false), attention(m, "flash with dropout", with_dropout(shape()), false),
      attention(m, "eager", shape(), true), attention(m, "eager with dropout", with_dropout(shape()), true)};
  // This case takes seconds, and other types would test nothing more.
  if (type == schedule::DType::kFp32) cases.push_back(attention(m, "flash, several tiles", long_sequence, false));
  return cases;
}

Case backward_of(const Case& forward, plan::Access out) {
  const schedule::DType type = forward.operands[0].type;
  Maker m(type, out);
  Case backward = forward;
  backward.kind = schedule::OpKind::kAttentionBackward;
  for (Datum& datum : backward.operands) datum.access = plan::Access::kRead;
  backward.operands.insert(backward.operands.begin(), m.in(forward.operands[1].elems()));
  backward.operands.insert(backward.operands.begin() + 4, m.out(forward.operands[0].elems()));
  return backward;
}

}  // namespace krigtune::cuda
