#include "cuda_cases.h"

namespace krigtune::cuda {
namespace {

constexpr std::int64_t kBatch = 2, kSeq = 7, kRows = kBatch * kSeq, kHidden = 24, kOuter = 10;

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

Shape shape(std::int64_t rows = kRows) {
  Shape s;
  s.batch = kBatch;
  s.seq = kSeq;
  s.heads = 4;
  s.kv_heads = 2;
  s.rows = rows;
  s.inner = kHidden;
  s.outer = kOuter;
  s.site = 2;
  return s;
}

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

void add_memory(Maker& m, std::vector<Case>& cases) {
  const auto add = [&](const char* name, OpKind kind, std::vector<Datum> operands) {
    cases.push_back({name, kind, shape(), std::move(operands), 1.0, context()});
  };
  add("load_batch", OpKind::kLoadBatch, {m.tokens(kRows, 9, Access::kWrite), m.tokens(kRows, 9, Access::kWrite)});
  add("zero", OpKind::kZero, {m.out(50), m.tokens(9, 9, Access::kWrite)});
  add("copy", OpKind::kCopy,
      {m.in(40), m.single(40, 0, 1, Access::kWrite), m.single(9, 0, 1, Access::kRead), m.out(9), m.tokens(5, 9),
       m.tokens(5, 9, Access::kWrite)});
  cases.back().operands[3].access = Access::kWrite;
  add("accumulate", OpKind::kAccumulate, {m.in(40), m.single(40, 0, 1, Access::kReadWrite), m.in(300), m.out(300)});
  add("add", OpKind::kAdd, {m.in_place(300), m.in(300)});
}

void add_embedding(Maker& m, std::vector<Case>& cases) {
  const std::int64_t table = kOuter * kHidden;
  for (const std::int64_t rows : {kRows, kRows / 2}) {
    const auto add = [&](const char* name, OpKind kind, std::vector<Datum> operands) {
      cases.push_back({name, kind, shape(rows), std::move(operands), 1.0, context()});
    };
    add("embedding_forward", OpKind::kEmbeddingForward, {m.tokens(rows, 20), m.in(table), m.out(rows * kHidden)});
    add("embedding_backward", OpKind::kEmbeddingBackward, {m.tokens(rows, 20), m.in(rows * kHidden), m.out(table)});
    add("positions_forward", OpKind::kPositionsForward, {m.in_place(rows * kHidden), m.in(kSeq * kHidden)});
    add("positions_backward", OpKind::kPositionsBackward, {m.in(rows * kHidden), m.out(kSeq * kHidden)});
  }
}

void add_norms(Maker& m, std::vector<Case>& cases) {
  const std::int64_t all = kRows * kHidden;
  const auto add = [&](const char* name, OpKind kind, std::vector<Datum> operands) {
    cases.push_back({name, kind, shape(), std::move(operands), 1.0, context()});
  };
  const auto stats = [&](std::int64_t elems) { return m.single(elems, 1.0, 0.1, Access::kRead); };
  const auto new_stats = [&](std::int64_t elems) { return m.single(elems, 0.0, 1.0, Access::kWrite); };
  add("layer_norm_forward", OpKind::kLayerNormForward,
      {m.in(all), m.in(kHidden), m.in(kHidden), m.out(all), new_stats(2 * kRows)});
  add("layer_norm_backward", OpKind::kLayerNormBackward,
      {m.in(all), m.in(all), m.in(kHidden), stats(2 * kRows), m.out(all), m.out(kHidden), m.out(kHidden)});
  add("rms_norm_forward", OpKind::kRmsNormForward, {m.in(all), m.in(kHidden), m.out(all), new_stats(kRows)});
  add("rms_norm_backward", OpKind::kRmsNormBackward,
      {m.in(all), m.in(all), m.in(kHidden), stats(kRows), m.out(all), m.out(kHidden)});
}

void add_linear(Maker& m, std::vector<Case>& cases) {
  const std::int64_t x = kRows * kHidden, y = kRows * kOuter, w = kOuter * kHidden;
  const auto add = [&](const char* name, OpKind kind, std::vector<Datum> operands) {
    cases.push_back({name, kind, shape(), std::move(operands), 1.0, context()});
  };
  add("linear_forward", OpKind::kLinearForward, {m.in(x), m.in(w), m.out(y)});
  add("linear_forward with bias", OpKind::kLinearForward, {m.in(x), m.in(w), m.out(y), m.in(kOuter)});
  add("linear_backward_input", OpKind::kLinearBackwardInput, {m.in(y), m.in(w), m.out(x)});
  add("linear_backward_weight", OpKind::kLinearBackwardWeight, {m.in(y), m.in(x), m.out(w), m.out(kOuter)});
  add("add_bias", OpKind::kAddBias, {m.in_place(x), m.in(kHidden)});
  add("bias_backward", OpKind::kBiasBackward, {m.in(x), m.out(kHidden)});
}

void add_activations(Maker& m, std::vector<Case>& cases) {
  const std::int64_t all = kRows * kHidden;
  const auto add = [&](const char* name, OpKind kind, const Shape& s, std::vector<Datum> operands) {
    cases.push_back({name, kind, s, std::move(operands), 1.0, context()});
  };
  add("gelu_forward", OpKind::kGeluForward, shape(), {m.in(all), m.out(all)});
  add("gelu_backward", OpKind::kGeluBackward, shape(), {m.in(all), m.in_place(all)});
  add("swiglu_forward", OpKind::kSwigluForward, shape(), {m.in(2 * all), m.out(all)});
  add("swiglu_backward", OpKind::kSwigluBackward, shape(), {m.in(2 * all), m.in(all), m.out(2 * all)});
  add("rotary_forward", OpKind::kRotaryForward, shape(), {m.in_place(2 * all)});
  add("rotary_backward", OpKind::kRotaryBackward, shape(), {m.in_place(2 * all)});
  for (const std::int64_t rows : {kRows, kRows / 2}) {
    const Shape s = with_dropout(shape(rows));
    add("dropout_forward", OpKind::kDropoutForward, s,
        {m.in_place(rows * kHidden), m.mask(rows * kHidden, Access::kWrite)});
    add("dropout_backward", OpKind::kDropoutBackward, s,
        {m.in_place(rows * kHidden), m.mask(rows * kHidden, Access::kRead)});
  }
}

// The whole vocabulary has 17 tokens: 10 on rank 0, 7 here, and 3 columns that fill up.
void add_losses(Maker& m, std::vector<Case>& cases) {
  const std::int64_t all = kRows * kOuter, vocabulary = 17;
  const auto add = [&](const char* name, OpKind kind, std::vector<Datum> operands) {
    cases.push_back({name, kind, with_inner(shape(), vocabulary), std::move(operands), 0.25, context()});
  };
  const auto loss = [&] {
    Datum datum = m.out(1);
    return bytes_of(DType::kFp32, datum.numbers(), datum.access);
  };
  const auto rows = [&](double mean, Access access) { return m.single(kRows, mean, 0.5, access); };
  const auto state = Maker::singles(control(1.0F), Access::kRead);
  add("cross_entropy", OpKind::kCrossEntropy, {m.in_place(all), m.tokens(kRows, kOuter), loss()});
  add("cross_entropy, scaled", OpKind::kCrossEntropy, {m.in_place(all), m.tokens(kRows, kOuter), loss(), state});
  add("vocab_max", OpKind::kVocabMax, {m.in(all), rows(0, Access::kWrite)});
  add("vocab_sum_exp", OpKind::kVocabSumExp,
      {m.in_place(all), m.tokens(kRows, vocabulary), rows(2, Access::kRead), rows(0, Access::kWrite),
       rows(0, Access::kWrite)});
  Datum exponentials = m.in_place(all);  // the columns that fill up are 0
  std::vector<float> values = exponentials.numbers();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % kOuter < 7 ? std::exp(values[i]) : 0.0F;
  add("vocab_cross_entropy", OpKind::kVocabCrossEntropy,
      {bytes_of(exponentials.type, values, Access::kReadWrite), m.tokens(kRows, vocabulary), rows(9, Access::kRead),
       rows(0, Access::kRead), loss(), state});
}

void add_optimizers(Maker& m, std::vector<Case>& cases) {
  const auto add = [&](const char* name, OpKind kind, std::vector<Datum> operands) {
    cases.push_back({name, kind, shape(), std::move(operands), 0.5, context()});
  };
  const auto state = [&](std::int64_t elems, double mean) { return m.single(elems, mean, 0.1, Access::kReadWrite); };
  add("gradient_norm", OpKind::kGradientNorm,
      {m.single(1, 1.0, 0.1, Access::kReadWrite), m.in(300), m.in(10000), m.in(3)});
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

std::vector<Case> kernel_cases(DType type, Access out) {
  Maker m(type, out);
  std::vector<Case> cases;
  add_memory(m, cases);
  add_embedding(m, cases);
  add_norms(m, cases);
  add_linear(m, cases);
  add_activations(m, cases);
  add_losses(m, cases);
  add_optimizers(m, cases);
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
  return {attention(m, "flash", shape(), false), attention(m, "flash with dropout", with_dropout(shape()), false),
          attention(m, "eager", shape(), true), attention(m, "eager with dropout", with_dropout(shape()), true),
          attention(m, "flash, several tiles", long_sequence, false)};
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
