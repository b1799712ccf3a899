#pragma once
#include <cmath>
#include <string>
#include <utility>
#include <variant>

#include "space/configuration.h"

// Spaces that cannot be listed, and objectives over them.
namespace krigtune {

// Two continuous axes, a list and an integer range.
inline constexpr const char* kReal = R"({"lr": {"type": "real", "min": 1e-5, "max": 1e-1, "scale": "log"},
    "momentum": {"type": "real", "min": 0, "max": 1}, "kind": ["a", "b"], "depth": {"min": 1, "max": 8}})";
// 101^4 configurations, which is more than 10^8.
inline constexpr const char* kHuge = R"({"a": {"min": 0, "max": 100}, "b": {"min": 0, "max": 100},
    "c": {"min": 0, "max": 100}, "d": {"min": 0, "max": 100}})";

inline double number(const space::Configuration& c, const char* name) { return space::as_number(*c.find(name)); }

// Its maximum is 100 at lr = 1e-3, momentum = 0.8, kind b, depth 5.
inline double real_hill(const space::Configuration& c) {
  const double lr = std::log10(number(c, "lr")) + 3.0;
  const double momentum = number(c, "momentum") - 0.8;
  const double depth = number(c, "depth") - 5.0;
  const double kind = std::get<std::string>(*c.find("kind")) == "b" ? 1.0 : 0.8;
  return 100.0 * kind * std::exp(-0.3 * lr * lr - 2.0 * momentum * momentum - 0.02 * depth * depth);
}

// Its maximum is 100 at (70, 20, 50, 90).
inline double huge_hill(const space::Configuration& c) {
  double sum = 0.0;
  for (const auto& [name, top] : {std::pair("a", 70.0), {"b", 20.0}, {"c", 50.0}, {"d", 90.0}}) {
    sum += std::pow((number(c, name) - top) / 100.0, 2);
  }
  return 100.0 * std::exp(-2.0 * sum);
}

}  // namespace krigtune
