#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/host/kernels/kernel.h"
#include "krigtune/rng.h"
#include "plan/op_traits.h"

namespace krigtune {

template <class T>
engine::OperandView reads(std::vector<T>& data) {
  return {data.data(), static_cast<std::int64_t>(data.size()), plan::Access::kRead};
}
template <class T>
engine::OperandView writes(std::vector<T>& data) {
  return {data.data(), static_cast<std::int64_t>(data.size()), plan::Access::kWrite};
}
template <class T>
engine::OperandView updates(std::vector<T>& data) {
  return {data.data(), static_cast<std::int64_t>(data.size()), plan::Access::kReadWrite};
}

template <class T>
void run_kernel(schedule::OpKind kind, const plan::Shape& shape, const std::vector<engine::OperandView>& operands,
                double scale = 1.0, const engine::StepContext& context = {}) {
  plan::Operation operation;
  operation.kind = kind;
  operation.shape = shape;
  operation.scale = scale;
  std::vector<T> scratch(static_cast<std::size_t>(engine::scratch_elems(kind, shape)));
  engine::kernel_for<T>(kind)({operation, operands, context, scratch.data()});
}

inline std::vector<double> random_vector(std::int64_t count, std::uint64_t stream, double stddev = 1.0) {
  Rng rng(42, stream);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) value = stddev * rng.normal();
  return values;
}

/// Returns the shape for an operation of that kind, from which it may need another one: the widths of a norm of queries
/// are that of a head and that of all heads.
inline std::vector<plan::Shape> shapes_for(schedule::OpKind kind, const plan::Shape& shape) {
  const bool norms = kind == schedule::OpKind::kQkNormForward || kind == schedule::OpKind::kQkNormBackward;
  if (!norms) return {shape};
  std::vector<plan::Shape> shapes(2, shape);
  shapes[0].outer = shape.inner / shape.heads;
  shapes[1].outer = shape.inner;
  return shapes;
}

/// Operands of one operation in double precision, as the table of op_table.cpp requires them. Numbers are random, and
/// operands that are only written contain garbage. Tokens are below shape.outer; a mask is written by the operation
/// that drops.
class KernelOperands {
 public:
  /// Uses the first `count` operands; operands of a group, which may have any size, have 48 elements each. `stddev` is
  /// that of operand 0.
  KernelOperands(const plan::OpTraits& traits, const plan::Shape& shape, std::size_t count, double stddev = 1.0)
      : traits_(&traits), values_(count) {
    constexpr std::int64_t kAnySize = 48;
    Rng rng(43, 0);
    for (std::size_t i = 0; i < count; ++i) {
      const plan::OperandTraits& operand = this->traits(i);
      const std::int64_t elems = operand.elems == nullptr ? kAnySize : operand.elems(shape);
      Values& values = values_[i];
      if (operand.name == "tokens" || operand.name == "targets") {
        for (std::int64_t e = 0; e < elems; ++e) {
          values.tokens.push_back(static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(shape.outer))));
        }
      } else if (operand.name == "mask") {
        values.mask.assign(static_cast<std::size_t>(elems), 99);
      } else if (operand.role == plan::Role::kOutput || operand.role == plan::Role::kSet) {
        values.numbers.assign(static_cast<std::size_t>(elems), 99.0);
      } else {
        values.numbers = random_vector(elems, i + 1, i == 0 ? stddev : 1.0);
      }
    }
  }

  std::size_t size() const { return values_.size(); }
  const plan::OperandTraits& traits(std::size_t i) const { return traits_->operand(i, size()); }
  std::vector<double>& numbers(std::size_t i) { return values_[i].numbers; }
  /// Copies an operand of another operation.
  void take(std::size_t i, const KernelOperands& from, std::size_t at) { values_[i] = from.values_[at]; }

  /// Valid as long as these operands exist. Operands that may be written or added to are written.
  std::vector<engine::OperandView> views() {
    std::vector<engine::OperandView> all;
    for (std::size_t i = 0; i < size(); ++i) {
      Values& values = values_[i];
      all.push_back(!values.tokens.empty() ? reads(values.tokens)
                    : !values.mask.empty() ? reads(values.mask)
                                           : reads(values.numbers));
      for (const plan::Access access : {plan::Access::kRead, plan::Access::kReadWrite, plan::Access::kWrite}) {
        if (plan::allows(traits(i).role, access)) all.back().access = access;
      }
    }
    return all;
  }

 private:
  struct Values {
    std::vector<double> numbers;
    std::vector<std::int32_t> tokens;
    std::vector<std::uint8_t> mask;
  };

  const plan::OpTraits* traits_;
  std::vector<Values> values_;
};

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Compares `gradient` with central differences of `loss` in every element of `x`, which `loss` reads. With h = 1e-5
/// the truncation error is about h^2 = 1e-10 of the third derivative, and the rounding error 1e-16 / h = 1e-11 of the
/// loss.
inline void expect_gradient(const std::function<double()>& loss, std::vector<double>& x,
                            const std::vector<double>& gradient, const std::string& what) {
  constexpr double kStep = 1e-5;
  constexpr double kTolerance = 2e-8;
  ASSERT_EQ(x.size(), gradient.size()) << what;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double kept = x[i];
    x[i] = kept + kStep;
    const double above = loss();
    x[i] = kept - kStep;
    const double below = loss();
    x[i] = kept;
    const double expected = (above - below) / (2.0 * kStep);
    EXPECT_LE(std::abs(gradient[i] - expected), kTolerance * std::max(1.0, std::abs(expected)))
        << what << "[" << i << "]: " << gradient[i] << " against " << expected;
  }
}

}  // namespace krigtune
