#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "host/kernels/kernel.h"
#include "krigtune/core/rng.h"

namespace krigtune {

template <class T>
OperandView reads(std::vector<T>& data) {
  return {data.data(), static_cast<std::int64_t>(data.size()), Access::kRead};
}
template <class T>
OperandView writes(std::vector<T>& data) {
  return {data.data(), static_cast<std::int64_t>(data.size()), Access::kWrite};
}
template <class T>
OperandView updates(std::vector<T>& data) {
  return {data.data(), static_cast<std::int64_t>(data.size()), Access::kReadWrite};
}

template <class T>
void run_kernel(OpKind kind, const Shape& shape, const std::vector<OperandView>& operands, double scale = 1.0,
                const StepContext& context = {}) {
  Operation operation;
  operation.kind = kind;
  operation.shape = shape;
  operation.scale = scale;
  std::vector<T> scratch(static_cast<std::size_t>(scratch_elems(kind, shape)));
  kernel_for<T>(kind)({operation, operands, context, scratch.data()});
}

inline std::vector<double> random_vector(std::int64_t count, std::uint64_t stream, double stddev = 1.0) {
  Rng rng(42, stream);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) value = stddev * rng.normal();
  return values;
}

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Compares `gradient` with central differences of `loss` in every element of `x`, which `loss` reads.
/// With h = 1e-5 truncation is about h^2 = 1e-10 of the third derivative, rounding 1e-16 / h = 1e-11 of the loss.
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
