// 16-bit numbers against their definition: value = (-1)^s 2^(e - bias) (1 + f / 2^bits), subnormals without the 1, and
// rounding = the nearest value found by search, of two the one with an even last bit.
#include "host/number_types.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "krigtune/core/rng.h"

namespace krigtune {
namespace {

struct Format {
  int exponent_bits, fraction_bits;
  float (*from)(std::uint16_t);
  std::uint16_t (*to)(float);
};

const Format kFormats[] = {{8, 7, from_bf16, to_bf16}, {5, 10, from_fp16, to_fp16}};

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

// Values of a sign grow with their bits. Behind the largest one stands the one that would come next: infinity.
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
  EXPECT_EQ(to_fp16(65519.0F), 0x7BFF);  // IEEE 754: 65520 is the first that overflows
  EXPECT_EQ(to_fp16(65520.0F), 0x7C00);
}

TEST(NumberTypes, ConvertArraysElementByElement) {
  Rng rng(8, 0);
  std::vector<float> values(1003);
  for (float& value : values) value = static_cast<float>(rng.normal());
  std::vector<std::uint16_t> rounded(values.size());
  std::vector<float> back(values.size());
  for (const DType type : {DType::kBf16, DType::kFp16}) {
    const Format& format = kFormats[type == DType::kBf16 ? 0 : 1];
    round_to(type, values.data(), std::ssize(values), rounded.data());
    widen(type, rounded.data(), std::ssize(values), back.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(rounded[i], format.to(values[i]));
      ASSERT_EQ(back[i], format.from(rounded[i]));
    }
  }
  EXPECT_TRUE(is_16_bit(DType::kBf16) && is_16_bit(DType::kFp16));
  EXPECT_FALSE(is_16_bit(DType::kFp32) || is_16_bit(DType::kUint8));
}

}  // namespace
}  // namespace krigtune
