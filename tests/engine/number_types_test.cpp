// 16-bit numbers against their definition: value = (-1)^s 2^(e - bias) (1 + f / 2^bits), subnormals without the 1.
// Rounding gives the nearest value, found by search; of two nearest values, the one with an even last bit.
#include "engine/host/number_types.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/host/bound_plan.h"
#include "krigtune/rng.h"

namespace krigtune::number_types_test {

struct Format {
  int exponent_bits, fraction_bits;
  float (*from)(std::uint16_t);
  std::uint16_t (*to)(float);
};

const Format kFormats[] = {{8, 7, engine::from_bf16, engine::to_bf16}, {5, 10, engine::from_fp16, engine::to_fp16}};

double value_of(const Format& format, int bits) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int exponent = (bits >> format.fraction_bits) & ((1 << format.exponent_bits) - 1);
  const double fraction = std::ldexp(bits & ((1 << format.fraction_bits) - 1), -format.fraction_bits);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << format.exponent_bits) - 1) {
    return fraction == 0.0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  }
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1.0 + fraction, exponent - bias));
}

int first_infinite(const Format& format) { return ((1 << format.exponent_bits) - 1) << format.fraction_bits; }

TEST(NumberTypes, HaveTheValuesOfTheirDefinitionAndComeBackFromFloat) {
  for (const Format& format : kFormats) {
    for (int bits = 0; bits < 65536; ++bits) {
      const auto number = static_cast<std::uint16_t>(bits);
      const double value = value_of(format, bits);
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(format.from(number))) << bits;
        ASSERT_TRUE(std::isnan(value_of(format, format.to(format.from(number))))) << bits;
      } else {
        ASSERT_EQ(static_cast<double>(format.from(number)), value) << bits;
        ASSERT_EQ(format.to(format.from(number)), number) << bits;
      }
    }
  }
}

// Values of one sign grow with their bits. After the largest one comes the one that would be next: infinity.
int nearest(const Format& format, double magnitude) {
  int low = 0;
  int high = first_infinite(format);
  const auto value = [&](int bits) {
    return bits < first_infinite(format) ? value_of(format, bits)
                                         : 2.0 * value_of(format, bits - 1) - value_of(format, bits - 2);
  };
  if (magnitude >= value(high)) return high;
  while (high - low > 1) (value((low + high) / 2) <= magnitude ? low : high) = (low + high) / 2;
  const double below = magnitude - value(low);
  const double above = value(high) - magnitude;
  if (below == above) return low % 2 == 0 ? low : high;
  return below < above ? low : high;
}

void expect_rounding(const Format& format, float value) {
  if (std::isnan(value)) {
    ASSERT_TRUE(std::isnan(value_of(format, format.to(value))));
    return;
  }
  const int expected = nearest(format, std::abs(static_cast<double>(value))) + (std::signbit(value) ? 0x8000 : 0);
  ASSERT_EQ(format.to(value), expected) << value << " with " << format.fraction_bits << " bits";
}

TEST(NumberTypes, RoundToTheNearestAndTiesToEven) {
  Rng rng(7, 0);
  for (const Format& format : kFormats) {
    for (int i = 0; i < 200'000; ++i) expect_rounding(format, std::bit_cast<float>(rng()));  // floats of all sizes
    for (int bits = 0; bits < first_infinite(format); ++bits) {
      const auto from = static_cast<float>(value_of(format, bits));
      const double step = value_of(format, bits | 1) - value_of(format, (bits | 1) - 1);
      const auto middle = static_cast<float>(value_of(format, bits) + 0.5 * step);
      for (const float at : {from, middle}) {
        expect_rounding(format, at);
        expect_rounding(format, -at);
        expect_rounding(format, std::nextafter(at, std::numeric_limits<float>::infinity()));
        expect_rounding(format, std::nextafter(at, 0.0F));
      }
    }
    expect_rounding(format, std::numeric_limits<float>::infinity());
    expect_rounding(format, std::numeric_limits<float>::max());
  }
  EXPECT_EQ(engine::to_fp16(65519.0F), 0x7BFF);  // IEEE 754: 65520 is the smallest number that overflows
  EXPECT_EQ(engine::to_fp16(65520.0F), 0x7C00);
}

TEST(NumberTypes, ConvertArraysElementByElement) {
  Rng rng(8, 0);
  std::vector<float> values(1003);
  for (float& value : values) value = static_cast<float>(rng.normal());
  std::vector<std::uint16_t> rounded(values.size());
  std::vector<float> back(values.size());
  for (const schedule::DType type : {schedule::DType::kBf16, schedule::DType::kFp16}) {
    const Format& format = kFormats[type == schedule::DType::kBf16 ? 0 : 1];
    engine::round_to(type, values.data(), std::ssize(values), rounded.data());
    engine::widen(type, rounded.data(), std::ssize(values), back.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(rounded[i], format.to(values[i]));
      ASSERT_EQ(back[i], format.from(rounded[i]));
    }
  }
  EXPECT_TRUE(engine::is_16_bit(schedule::DType::kBf16) && engine::is_16_bit(schedule::DType::kFp16));
  EXPECT_FALSE(engine::is_16_bit(schedule::DType::kFp32) || engine::is_16_bit(schedule::DType::kUint8));
}

using Floats = std::vector<float>;
using Halves = std::vector<std::uint16_t>;

Floats random_floats(std::size_t count, std::uint64_t stream) {
  Rng rng(9, stream);
  Floats values(count);
  for (float& value : values) value = static_cast<float>(rng.normal());
  return values;
}

Halves rounded(const Floats& values, schedule::DType type) {
  Halves halves(values.size());
  engine::round_to(type, values.data(), std::ssize(values), halves.data());
  return halves;
}

Floats widened(const Halves& halves, schedule::DType type) {
  Floats values(halves.size());
  engine::widen(type, halves.data(), std::ssize(halves), values.data());
  return values;
}

engine::OperandView view(Floats& values, plan::Access access) {
  return {values.data(), std::ssize(values), access, schedule::DType::kFp32};
}
engine::OperandView view(Halves& values, plan::Access access, schedule::DType type = schedule::DType::kBf16) {
  return {values.data(), std::ssize(values), access, type};
}

void call(schedule::OpKind kind, const plan::Shape& shape, std::vector<engine::OperandView> operands,
          double scale = 1.0) {
  plan::Operation operation;
  operation.kind = kind;
  operation.shape = shape;
  operation.scale = scale;
  engine::BoundOperation bound;
  bound.operation = &operation;
  bound.kernel = engine::kernel_for<float>(kind);
  bound.operands = std::move(operands);
  Floats scratch(static_cast<std::size_t>(engine::call_scratch_elems(bound)), std::nanf(""));
  engine::call_kernel(bound, {}, scratch.data());
}

TEST(CallsOfKernels, ComputeInFloatAndRoundWhatTheyWrite) {
  const plan::Shape s{.rows = 5, .inner = 33, .outer = 7};
  for (const schedule::DType type : {schedule::DType::kBf16, schedule::DType::kFp16}) {
    Halves x = rounded(random_floats(165, 1), type), weight = rounded(random_floats(231, 2), type), y(35);
    Floats wide_x = widened(x, type), wide_weight = widened(weight, type), wide_y(35);
    call(schedule::OpKind::kLinearForward, s,
         {view(x, plan::Access::kRead, type), view(weight, plan::Access::kRead, type),
          view(y, plan::Access::kWrite, type)});
    call(schedule::OpKind::kLinearForward, s,
         {view(wide_x, plan::Access::kRead), view(wide_weight, plan::Access::kRead),
          view(wide_y, plan::Access::kWrite)});
    EXPECT_EQ(y, rounded(wide_y, type));
    Halves sums = rounded(random_floats(35, 3), type);
    Floats wide_sums = widened(sums, type);
    call(schedule::OpKind::kAdd, {}, {view(sums, plan::Access::kReadWrite, type), view(wide_y, plan::Access::kRead)});
    call(schedule::OpKind::kAdd, {}, {view(wide_sums, plan::Access::kReadWrite), view(wide_y, plan::Access::kRead)});
    EXPECT_EQ(sums, rounded(wide_sums, type));
  }
}

// Longer than a block of shadows, and with two ranges.
TEST(CallsOfKernels, WalkOverListsInBlocks) {
  constexpr std::size_t kLong = 100'003;
  Halves g = rounded(random_floats(kLong, 1), schedule::DType::kBf16),
         short_g = rounded(random_floats(7, 2), schedule::DType::kBf16);
  Floats wide = widened(g, schedule::DType::kBf16), short_wide = widened(short_g, schedule::DType::kBf16);
  const auto adam = [&](const engine::OperandView& gradient, const engine::OperandView& short_gradient) {
    Floats p(kLong, 1.0F), m(kLong), v(kLong), short_p(7, 2.0F), short_m(7), short_v(7);
    Floats control = {4.0F, 0.0F, 0.25F, 3.0F, 1.0F};
    call(schedule::OpKind::kAdamW, {},
         {view(p, plan::Access::kReadWrite), gradient, view(m, plan::Access::kReadWrite),
          view(v, plan::Access::kReadWrite), view(short_p, plan::Access::kReadWrite), short_gradient,
          view(short_m, plan::Access::kReadWrite), view(short_v, plan::Access::kReadWrite),
          view(control, plan::Access::kRead)});
    p.insert(p.end(), short_p.begin(), short_p.end());
    return p;
  };
  EXPECT_EQ(adam(view(g, plan::Access::kRead), view(short_g, plan::Access::kRead)),
            adam(view(wide, plan::Access::kRead), view(short_wide, plan::Access::kRead)));

  double squares = 0.0;
  for (const Floats* values : {&wide, &short_wide}) {
    for (const float value : *values) squares += 0.5 * static_cast<double>(value) * static_cast<double>(value);
  }
  Floats sum = {1.0F};
  const std::vector<engine::OperandView> ranges = {view(g, plan::Access::kRead), view(short_g, plan::Access::kRead)};
  call(schedule::OpKind::kGradientNorm, {}, {view(sum, plan::Access::kReadWrite), ranges[0], ranges[1]}, 0.5);
  EXPECT_LE(std::abs(static_cast<double>(sum[0]) - 1.0 - squares), 1e-6 * squares);
  call(schedule::OpKind::kGradientNorm, {}, {view(sum, plan::Access::kWrite), ranges[0], ranges[1]}, 0.5);
  EXPECT_LE(std::abs(static_cast<double>(sum[0]) - squares), 1e-6 * squares);

  Halves copy(kLong);
  Floats back(kLong);
  call(schedule::OpKind::kCopy, {}, {view(wide, plan::Access::kRead), view(copy, plan::Access::kWrite)});
  EXPECT_EQ(copy, g);
  call(schedule::OpKind::kCopy, {}, {view(copy, plan::Access::kRead), view(back, plan::Access::kWrite)});
  EXPECT_EQ(back, wide);
}

TEST(CallsOfKernels, CopyAndClearBytesOfEveryType) {
  std::vector<std::uint8_t> from = {1, 2, 3, 4, 5}, to(6, 9);
  const engine::OperandView source{from.data(), 5, plan::Access::kRead, schedule::DType::kUint8};
  const engine::OperandView destination{to.data(), 5, plan::Access::kWrite, schedule::DType::kUint8};
  call(schedule::OpKind::kCopy, {}, {source, destination});
  EXPECT_EQ(to, (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 9}));
  call(schedule::OpKind::kZero, {}, {destination});
  EXPECT_EQ(to, (std::vector<std::uint8_t>{0, 0, 0, 0, 0, 9}));
}

}  // namespace krigtune::number_types_test
