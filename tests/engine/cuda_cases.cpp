#include "cuda_cases.h"

namespace krigtune::cuda {
namespace {

StepContext context() {
  StepContext at;
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

Shape shape(const Sizes& z, std::int64_t rows) {
  Shape s;
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
Shape shape(const Sizes& z = {}) { return shape(z, z.rows()); }

Shape with_dropout(Shape s) {
  s.dropout = 0.3;
  return s;
}

Shape with_inner(Shape s, std::int64_t inner) {
  s.inner = inner;
  return s;
}

// loss scale, good steps, factor, updates, norm
std::vector<float> control(float factor) { return {4.0F, 3.0F, factor, 2.0F, 0.0F}; }

void add_memory(Maker& m, const Sizes& z, std::vector<Case>& cases) {
  const auto add = [&](const char* name, OpKind kind, std::vector<Datum> operands) {
    cases.push_back({name, kind, shape(z), std::move(operands), 1.0, context()});
  };
  add("load_batch", OpKind::kLoadBatch, {m.tokens(z.rows(), 9, Access::kWrite), m.tokens(z.rows(), 9, Access::kWrite)});
  add("zero", OpKind::kZero, {m.out(50), m.tokens(9, 9, Access::kWrite)});
  add("copy", OpKind::kCopy,
      {m.in(40), m.single(40, 0, 1, Access::kWrite), m.single(9, 0, 1, Access::kRead), m.out(9), m.tokens(5, 9),
       m.tokens(5, 9, Access::kWrite)});
  cases.back().operands[3].access = Access::kWrite;
  add("accumulate", OpKind::kAccumulate, {m.in(40), m.single(40, 0, 1, Access::kReadWrite), m.in(300), m.out(300)});
  add("add", OpKind::kAdd, {m.in_place(300), m.in(300)});
}

void add_embedding(Maker& m, const Sizes& z, std::vector<Case>& cases) {
  const std::int64_t table = z.outer * z.hidden;
  const auto below = static_cast<std::uint64_t>(2 * z.outer);  // the other half is of rank 0
  for (const std::int64_t rows : {z.rows(), z.rows() / 2}) {
    const auto add = [&](const char* name, OpKind kind, std::vector<Datum> operands) {
      cases.push_back({name, kind, shape(z, rows), std::move(operands), 1.0, context()});
    };
    add("embedding_forward", OpKind::kEmbeddingForward, {m.tokens(rows, below), m.in(table), m.out(rows * z.hidden)});
    add("embedding_backward", OpKind::kEmbeddingBackward, {m.tokens(rows, below), m.in(rows * z.hidden), m.out(table)});
    add("positions_forward", OpKind::kPositionsForward, {m.in_place(rows * z.hidden), m.in(z.seq * z.hidden)});
    add("positions_backward", OpKind::kPositionsBackward, {m.in(rows * z.hidden), m.out(z.seq * z.hidden)});
  }
}

void add_norms(Maker& m, const Sizes& z, std::vector<Case>& cases) {
  const std::int64_t all = z.rows() * z.hidden;
  const auto add = [&](const char* name, OpKind kind, std::vector<Datum> operands) {
    cases.push_back({name, kind, shape(z), std::move(operands), 1.0, context()});
  };
  const auto stats = [&](std::int64_t elems) { return m.single(elems, 1.0, 0.1, Access::kRead); };
  const auto new_stats = [&](std::int64_t elems) { return m.single(elems, 0.0, 1.0, Access::kWrite); };
  add("layer_norm_forward", OpKind::kLayerNormForward,
      {m.in(all), m.in(z.hidden), m.in(z.hidden), m.out(all), new_stats(2 * z.rows())});
  add("layer_norm_backward", OpKind::kLayerNormBackward,
      {m.in(all), m.in(all), m.in(z.hidden), stats(2 * z.rows()), m.out(all), m.out(z.hidden), m.out(z.hidden)});
  add("rms_norm_forward", OpKind::kRmsNormForward, {m.in(all), m.in(z.hidden), m.out(all), new_stats(z.rows())});
  add("rms_norm_backward", OpKind::kRmsNormBackward,
      {m.in(all), m.in(all), m.in(z.hidden), stats(z.rows()), m.out(all), m.out(z.hidden)});
}

void add_linear(Maker& m, const Sizes& z, std::vector<Case>& cases) {
  const std::int64_t x = z.rows() * z.hidden, y = z.rows() * z.outer, w = z.outer * z.hidden;
  const auto add = [&](const char* name, OpKind kind, std::vector<Datum> operands) {
    cases.push_back({name, kind, shape(z), std::move(operands), 1.0, context()});
  };
  add("linear_forward", OpKind::kLinearForward, {m.in(x), m.in(w), m.out(y)});
  add("linear_forward with bias", OpKind::kLinearForward, {m.in(x), m.in(w), m.out(y), m.in(z.outer)});
  add("linear_backward_input", OpKind::kLinearBackwardInput, {m.in(y), m.in(w), m.out(x)});
  add("linear_backward_weight", OpKind::kLinearBackwardWeight, {m.in(y), m.in(x), m.out(w), m.out(z.outer)});
  add("add_bias", OpKind::kAddBias, {m.in_place(x), m.in(z.hidden)});
  add("bias_backward", OpKind::kBiasBackward, {m.in(x), m.out(z.hidden)});
}

void add_activations(Maker& m, const Sizes& z, std::vector<Case>& cases) {
  const std::int64_t all = z.rows() * z.hidden;
  const auto add = [&](const char* name, OpKind kind, const Shape& s, std::vector<Datum> operands) {
    cases.push_back({name, kind, s, std::move(operands), 1.0, context()});
  };
  add("gelu_forward", OpKind::kGeluForward, shape(z), {m.in(all), m.out(all)});
  add("gelu_backward", OpKind::kGeluBackward, shape(z), {m.in(all), m.in_place(all)});
  add("swiglu_forward", OpKind::kSwigluForward, shape(z), {m.in(2 * all), m.out(all)});
  add("swiglu_backward", OpKind::kSwigluBackward, shape(z), {m.in(2 * all), m.in(all), m.out(2 * all)});
  add("rotary_forward", OpKind::kRotaryForward, shape(z), {m.in_place(2 * all)});
  add("rotary_backward", OpKind::kRotaryBackward, shape(z), {m.in_place(2 * all)});
  for (const std::int64_t rows : {z.rows(), z.rows() / 2}) {
    const Shape s = with_dropout(shape(z, rows));
    add("dropout_forward", OpKind::kDropoutForward, s,
        {m.in_place(rows * z.hidden), m.mask(rows * z.hidden, Access::kWrite)});
    add("dropout_backward", OpKind::kDropoutBackward, s,
        {m.in_place(rows * z.hidden), m.mask(rows * z.hidden, Access::kRead)});
  }
}

// Of the whole vocabulary rank 0 holds z.outer tokens; here the last 3 columns fill up.
void add_losses(Maker& m, const Sizes& z, std::vector<Case>& cases) {
  const std::int64_t all = z.rows() * z.outer, vocabulary = 2 * z.outer - 3;
  const auto add = [&](const char* name, OpKind kind, std::vector<Datum> operands) {
    cases.push_back({name, kind, with_inner(shape(z), vocabulary), std::move(operands), 0.25, context()});
  };
  const auto loss = [&] {
    Datum datum = m.out(1);
    return bytes_of(DType::kFp32, datum.numbers(), datum.access);
  };
  const auto rows = [&](double mean, Access access) { return m.single(z.rows(), mean, 0.5, access); };
  const auto state = Maker::singles(control(1.0F), Access::kRead);
  add("cross_entropy", OpKind::kCrossEntropy,
      {m.in_place(all), m.tokens(z.rows(), static_cast<std::uint64_t>(z.outer)), loss()});
  add("cross_entropy, scaled", OpKind::kCrossEntropy,
      {m.in_place(all), m.tokens(z.rows(), static_cast<std::uint64_t>(z.outer)), loss(), state});
  add("vocab_max", OpKind::kVocabMax, {m.in(all), rows(0, Access::kWrite)});
  add("vocab_sum_exp", OpKind::kVocabSumExp,
      {m.in_place(all), m.tokens(z.rows(), static_cast<std::uint64_t>(vocabulary)), rows(2, Access::kRead),
       rows(0, Access::kWrite), rows(0, Access::kWrite)});
  Datum exponentials = m.in_place(all);  // the columns that fill up are 0
  std::vector<float> values = exponentials.numbers();
  const auto held = static_cast<std::size_t>(z.outer);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % held < held - 3 ? std::exp(values[i]) : 0.0F;
  add("vocab_cross_entropy", OpKind::kVocabCrossEntropy,
      {bytes_of(exponentials.type, values, Access::kReadWrite),
       m.tokens(z.rows(), static_cast<std::uint64_t>(vocabulary)), rows(9, Access::kRead), rows(0, Access::kRead),
       loss(), state});
}

void add_optimizers(Maker& m, const Sizes& z, std::vector<Case>& cases) {
  const auto add = [&](const char* name, OpKind kind, std::vector<Datum> operands) {
    cases.push_back({name, kind, shape(z), std::move(operands), 0.5, context()});
  };
  const auto state = [&](std::int64_t elems, double mean) { return m.single(elems, mean, 0.1, Access::kReadWrite); };
  add("gradient_norm", OpKind::kGradientNorm,
      {m.single(1, 1.0, 0.1, Access::kReadWrite), m.in(300), m.in(10000), m.in(3)});
  std::vector<Datum> many{m.single(1, 1.0, 0.1, Access::kReadWrite)};
  while (many.size() < 70) many.push_back(m.in(5));
  add("gradient_norm of many ranges", OpKind::kGradientNorm, std::move(many));
  for (const float sum : {0.01F, 9.0F, INFINITY, NAN}) {
    add("loss_scale", OpKind::kLossScale,
        {Maker::singles({sum}, Access::kRead), Maker::singles(control(1.0F), Access::kReadWrite)});
  }
  add("adamw", OpKind::kAdamW,
      {state(300, 0), m.in(300), state(300, 0), state(300, 2.0), state(9, 0), m.in(9), state(9, 0), state(9, 2.0)});
  add("sgd", OpKind::kSgd, {state(300, 0), m.in(300), state(300, 0)});
  for (const float factor : {0.5F, 0.0F}) {
    const Datum controlled = Maker::singles(control(factor), Access::kRead);
    add("adamw, controlled", OpKind::kAdamW, {state(300, 0), m.in(300), state(300, 0), state(300, 2.0), controlled});
    add("sgd, controlled", OpKind::kSgd, {state(300, 0), m.in(300), state(300, 0), controlled});
  }
}

Case attention(Maker& m, const char* name, const Shape& s, bool keeps) {
  const std::int64_t d = s.inner / s.heads;
  const std::int64_t scores = s.batch * s.heads * s.seq * s.seq;
  Case result{name, OpKind::kAttentionForward, s, {}, 1.0, context()};
  result.operands = {m.in(s.batch * s.seq * (s.inner + 2 * s.kv_heads * d)), m.out(s.batch * s.seq * s.inner),
                     m.single(s.batch * s.heads * s.seq, 0, 1, Access::kWrite)};
  const auto written = [&](Datum datum) {
    datum.access = Access::kWrite;
    return datum;
  };
  if (keeps) result.operands.push_back(written(m.out(scores)));
  if (keeps && s.dropout > 0.0) {
    result.operands.push_back(m.mask(scores, Access::kWrite));
    result.operands.push_back(written(m.out(scores)));
  }
  return result;
}

}  // namespace

std::vector<Case> kernel_cases(DType type, Access out, const Sizes& z) {
  Maker m(type, out);
  std::vector<Case> cases;
  add_memory(m, z, cases);
  add_embedding(m, z, cases);
  add_norms(m, z, cases);
  add_linear(m, z, cases);
  add_activations(m, z, cases);
  add_losses(m, z, cases);
  add_optimizers(m, z, cases);
  return cases;
}

std::vector<Case> attention_cases(DType type, Access out) {
  Maker m(type, out);
  Shape long_sequence = shape();
  long_sequence.batch = 1;
  long_sequence.seq = 1100;
  long_sequence.heads = 2;
  long_sequence.kv_heads = 1;
  long_sequence.inner = 4;
  std::vector<Case> cases = {
      attention(m, "flash", shape(), false), attention(m, "flash with dropout", with_dropout(shape()), false),
      attention(m, "eager", shape(), true), attention(m, "eager with dropout", with_dropout(shape()), true)};
  // It takes seconds, and the type changes nothing.
  if (type == DType::kFp32) cases.push_back(attention(m, "flash, several tiles", long_sequence, false));
  return cases;
}

Case backward_of(const Case& forward, Access out) {
  const DType type = forward.operands[0].type;
  Maker m(type, out);
  Case backward = forward;
  backward.kind = OpKind::kAttentionBackward;
  for (Datum& datum : backward.operands) datum.access = Access::kRead;
  backward.operands.insert(backward.operands.begin(), m.in(forward.operands[1].elems()));
  backward.operands.insert(backward.operands.begin() + 4, m.out(forward.operands[0].elems()));
  return backward;
}

}  // namespace krigtune::cuda
