// AdamW (Loshchilov and Hutter 2019, algorithm 2) and SGD with momentum (Polyak 1964), both with decoupled weight
// decay:
//
//   adamw: m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
//          p = p - lr (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon) + weight_decay p)
//   sgd:   m = b1 m + g;  p = p - lr (m + weight_decay p)
//
// With a control, t counts the updates that were done, g is multiplied by the control's factor, and a factor of 0
// updates nothing. One thread first computes what all elements share into scratch memory.
//
// One launch updates up to 64 ranges, whose table is an argument of the kernel. A block updates a tile of one range:
// 256 threads with four packs of 8 elements each. With gradients of 16 bits, the memory traffic is 26 bytes an element.
// If a copy of the parameters directly follows the update (plan/zero_operations.cpp: fp32 masters to parameters of 16
// bits), the same kernel writes it from registers: 28 bytes an element instead of 32.
#include <stdexcept>

#include "engine/cuda/kernels/elements.h"

namespace krigtune::cuda {
namespace {

/// The factors of a step. The host does not know them, because the device finds out whether this step overflows.
struct StepFactors {
  float of_gradient;
  float correct1, correct2;  ///< 1 / (1 - beta^t)
};
constexpr std::int64_t kStepFloats = sizeof(StepFactors) / sizeof(float);

// Computes in fp64, because 1 - beta^t of an early step loses digits.
__device__ inline float correction(double beta, double t) { return static_cast<float>(1.0 / (1.0 - pow(beta, t))); }

/// Starts the computation of the factors. Operands are in groups of `group`; an operand that remains is the control.
const StepFactors* find_factors(const DeviceCall& call, std::size_t group) {
  const bool controlled = call.operands.size() % group != 0;
  const float* control = controlled ? call.data<const float>(call.operands.size() - 1) : nullptr;
  const std::int64_t* step = call.step;
  const double beta1 = call.context.options.beta1;
  const double beta2 = call.context.options.beta2;
  auto* factors = reinterpret_cast<StepFactors*>(call.scratch);
  launch_elements(call.queue, 1, [=] __device__(std::int64_t) {
    const double t =
        control == nullptr ? static_cast<double>(*step + 1) : static_cast<double>(control[schedule::kUpdatesElement]);
    *factors = {control == nullptr ? 1.0F : control[schedule::kFactorElement], correction(beta1, t),
                correction(beta2, t)};
  });
  return factors;
}

/// TrainingOptions in the kernels' precision.
struct Rates {
  float learning_rate, beta1, beta2, epsilon, decay;

  explicit Rates(const engine::TrainingOptions& o)
      : learning_rate(static_cast<float>(o.learning_rate)),
        beta1(static_cast<float>(o.beta1)),
        beta2(static_cast<float>(o.beta2)),
        epsilon(static_cast<float>(o.epsilon)),
        decay(static_cast<float>(o.weight_decay)) {}

  __device__ float moved(float p, float direction) const { return p - learning_rate * (direction + decay * p); }
};

/// One range of a table.
struct UpdatedRange {
  float* p;
  void* gradient;
  float* m;
  float* v;    ///< null: SGD
  void* copy;  ///< null: none
  std::int64_t elems;
  std::uint32_t first_tile;
  schedule::DType copy_type;
  bool in_packs;  ///< whether all of them may be accessed 16 bytes at a time
};

struct UpdateTable {
  static constexpr int kMost = 64;  // takes 3.6 of the 4 KB of arguments that all drivers accept
  static constexpr int kPack = 8;
  static constexpr std::int64_t kTileElems = std::int64_t{kBlockThreads} * kPack * 4;
  UpdatedRange ranges[kMost];
  int count = 0;
  std::uint32_t tiles = 0;

  __device__ const UpdatedRange& of_tile(unsigned tile) const {
    int low = 0;
    for (int high = count; high - low > 1;) {
      const int middle = (low + high) / 2;
      (ranges[middle].first_tile <= tile ? low : high) = middle;
    }
    return ranges[low];
  }
};

struct AdamW {
  static constexpr std::size_t kGroup = 4;
  Rates rates;

  template <class At, int kWidth>
  __device__ Pack<kWidth> updated(const UpdatedRange& range, const StepFactors& step, At at, const Pack<kWidth>& p,
                                  const Pack<kWidth>& g) const {
    const Elements m(range.m, schedule::DType::kFp32, false);
    const Elements v(range.v, schedule::DType::kFp32, false);
    const auto first =
        map([r = rates](float old, float each) { return r.beta1 * old + (1.0F - r.beta1) * each; }, m(at), g);
    const auto second =
        map([r = rates](float old, float each) { return r.beta2 * old + (1.0F - r.beta2) * each * each; }, v(at), g);
    m.set(at, first);
    v.set(at, second);
    const auto moved = [r = rates, step](float old, float mean, float square) {
      const float stddev = sqrtf(square * step.correct2);
      return r.moved(old, mean * step.correct1 / (stddev + r.epsilon));
    };
    return map(moved, p, first, second);
  }
};

struct Sgd {
  static constexpr std::size_t kGroup = 3;
  Rates rates;

  template <class At, int kWidth>
  __device__ Pack<kWidth> updated(const UpdatedRange& range, const StepFactors& /*step*/, At at, const Pack<kWidth>& p,
                                  const Pack<kWidth>& g) const {
    const Elements m(range.m, schedule::DType::kFp32, false);
    const auto momentum = map([r = rates](float old, float each) { return r.beta1 * old + each; }, m(at), g);
    m.set(at, momentum);
    return map([r = rates](float old, float direction) { return r.moved(old, direction); }, p, momentum);
  }
};

// The copy is written after an overflow too, as the operation that it replaces would do.
template <class Rule, class At, class AtGradient>
__device__ void update_pack(const Rule& rule, const UpdatedRange& range, const StepFactors& step, At at,
                            AtGradient at_gradient) {
  const Elements p(range.p, schedule::DType::kFp32, false);
  auto values = p(at);
  if (step.of_gradient != 0.0F) {
    const Elements gradient(range.gradient, Rule::kGradient, false);
    const auto g = map([=](float each) { return step.of_gradient * each; }, gradient(at_gradient));
    values = rule.updated(range, step, at, values, g);
    p.set(at, values);
  }
  if (range.copy != nullptr) Elements(range.copy, range.copy_type, false).set(Place<At::width>{at.first}, values);
}

template <class Rule_, schedule::DType kGradient_>
struct OfGradients : Rule_ {
  static constexpr schedule::DType kGradient = kGradient_;
};

template <class Rule>
__global__ void __launch_bounds__(kBlockThreads)
    update_ranges(const __grid_constant__ UpdateTable table, const Rule rule, const StepFactors* factors) {
  constexpr int kPack = UpdateTable::kPack;
  const UpdatedRange& range = table.of_tile(blockIdx.x);
  const StepFactors step = *factors;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x - range.first_tile) * UpdateTable::kTileElems;
  const std::int64_t end =
      begin + UpdateTable::kTileElems < range.elems ? begin + UpdateTable::kTileElems : range.elems;
  if (!range.in_packs) {
    for (std::int64_t i = begin + threadIdx.x; i < end; i += kBlockThreads) {
      update_pack(rule, range, step, Place<1>{i}, Place<1>{i});
    }
    return;
  }
  std::int64_t i = begin + threadIdx.x * kPack;
  for (; i + kPack <= end; i += kBlockThreads * kPack) {
    update_pack(rule, range, step, Place<kPack, schedule::DType::kFp32>{i}, Place<kPack, Rule::kGradient>{i});
  }
  for (; i < end; ++i) update_pack(rule, range, step, Place<1>{i}, Place<1>{i});
}

template <class Rule>
void launch_table(Queue queue, const UpdateTable& table, schedule::DType gradient, const Rule& rule,
                  const StepFactors* factors) {
  const auto with = [&](auto typed) {
    launch(queue, table.tiles, kBlockThreads, 0, update_ranges<decltype(typed)>, table, typed, factors);
  };
  switch (gradient) {
    case schedule::DType::kFp32:
      return with(OfGradients<Rule, schedule::DType::kFp32>{rule});
    case schedule::DType::kBf16:
      return with(OfGradients<Rule, schedule::DType::kBf16>{rule});
    default:
      return with(OfGradients<Rule, schedule::DType::kFp16>{rule});
  }
}

/// The copies of an update's parameters, in the update's order.
class Copies {
 public:
  /// `copy` is null if there is none.
  explicit Copies(const DeviceCall* copy) : copy_(copy) {}
  /// Returns where the parameter is copied to; null if nowhere.
  const engine::OperandView* next(const engine::OperandView& parameter) {
    if (copy_ == nullptr || i_ + 1 >= copy_->operands.size()) return nullptr;
    const engine::OperandView& from = copy_->operands[i_];
    if (from.data != parameter.data || from.elems != parameter.elems || from.type != parameter.type) return nullptr;
    i_ += 2;
    return &copy_->operands[i_ - 1];
  }
  bool at_end() const { return copy_ == nullptr || i_ >= copy_->operands.size(); }

 private:
  const DeviceCall* copy_;
  std::size_t i_ = 0;
};

/// Returns the range of the update's `i`-th operand and those after it, `group` together.
UpdatedRange range_of(const DeviceCall& call, std::size_t i, std::size_t group, const engine::OperandView* copy) {
  if (call.operands[i].type != schedule::DType::kFp32) throw std::logic_error("an optimizer updates fp32 only");
  UpdatedRange range{};
  range.p = call.data<float>(i);
  range.gradient = call.data<void>(i + 1);
  range.m = call.data<float>(i + 2);
  range.v = group > 3 ? call.data<float>(i + 3) : nullptr;
  range.elems = call.operands[i].elems;
  range.in_packs = true;
  for (std::size_t k = i; k < i + group; ++k) {
    range.in_packs = range.in_packs && fits(Elements(call, k), UpdateTable::kPack);
  }
  if (copy != nullptr) {
    range.copy = copy->data;
    range.copy_type = copy->type;
    range.in_packs = range.in_packs && fits(Elements(copy->data, copy->type, false), UpdateTable::kPack);
  }
  return range;
}

// All ranges of a table have gradients of one type. If the plan has several types, a table ends where the type changes.
template <class Rule>
void run_update(const DeviceCall& update, const DeviceCall* copy) {
  const Rule rule{Rates(update.context.options)};
  const StepFactors* factors = find_factors(update, Rule::kGroup);
  UpdateTable table{};
  schedule::DType gradient{};
  const auto flush = [&] {
    if (table.count > 0) launch_table(update.queue, table, gradient, rule, factors);
    table = {};
  };
  Copies copies(copy);
  for (std::size_t i = 0; i + Rule::kGroup <= update.operands.size(); i += Rule::kGroup) {
    UpdatedRange range = range_of(update, i, Rule::kGroup, copies.next(update.operands[i]));
    if (range.elems <= 0) continue;
    if (table.count == UpdateTable::kMost || update.operands[i + 1].type != gradient) flush();
    gradient = update.operands[i + 1].type;
    range.first_tile = table.tiles;
    table.tiles += static_cast<std::uint32_t>((range.elems + UpdateTable::kTileElems - 1) / UpdateTable::kTileElems);
    table.ranges[table.count++] = range;
  }
  flush();
}

std::size_t group_of(schedule::OpKind kind) {
  return kind == schedule::OpKind::kAdamW ? AdamW::kGroup : kind == schedule::OpKind::kSgd ? Sgd::kGroup : 0;
}

}  // namespace

std::int64_t optimizer_scratch(const plan::Operation& /*operation*/) { return kStepFloats; }

void adamw(const DeviceCall& call) { run_update<AdamW>(call, nullptr); }
void sgd(const DeviceCall& call) { run_update<Sgd>(call, nullptr); }

void update_and_copy(const DeviceCall& update, const DeviceCall& copy) {
  if (update.operation.kind == schedule::OpKind::kSgd) return run_update<Sgd>(update, &copy);
  run_update<AdamW>(update, &copy);
}

bool update_copy_fits(const DeviceCall& update, const DeviceCall& copy) {
  const std::size_t group = group_of(update.operation.kind);
  if (group == 0 || copy.operation.kind != schedule::OpKind::kCopy) return false;
  Copies copies(&copy);
  for (std::size_t i = 0; i + group <= update.operands.size(); i += group) copies.next(update.operands[i]);
  if (!copies.at_end()) return false;
  // The fused kernel writes the copy earlier than two operations would, so nothing that the update still reads may
  // overlap it.
  for (std::size_t i = 1; i < copy.operands.size(); i += 2) {
    for (const engine::OperandView& operand : update.operands) {
      if (overlap(copy.operands[i], operand)) return false;
    }
  }
  return true;
}

}  // namespace krigtune::cuda
