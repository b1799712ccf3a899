#pragma once
#include <array>
#include <cstdint>
#include <limits>

namespace krigtune {

enum class Precision { kFp32, kFp16, kBf16 };

/// "fp32", "fp16" or "bf16", as in a session and on the command line.
constexpr const char* to_string(Precision precision) {
  return precision == Precision::kFp32 ? "fp32" : precision == Precision::kFp16 ? "fp16" : "bf16";
}

/// Operations that share a rate. Collectives are none of them.
enum class OpClass : std::uint8_t {
  kProduct,    ///< matrix products
  kAttention,  ///< its core
  kMemory,     ///< elementwise kernels, norms, losses: bound by bytes
  kOptimizer,  ///< updates on the device, norms of gradients
  kCopy,       ///< between device and host
  kHost        ///< what the host computes: offloaded optimizers
};
inline constexpr int kOpClassCount = 6;
const char* to_string(OpClass of);  ///< product, attention, memory, optimizer, copy, host

/// t = launch + max((F + half) / rate, bytes / bandwidth): a product of `half_flops` reaches half the rate.
struct ClassRate {
  double launch_s = 0.0;
  double flops_per_s = std::numeric_limits<double>::infinity();
  double half_flops = 0.0;
  double bytes_per_s = std::numeric_limits<double>::infinity();

  double seconds(double flops, double bytes) const;
  friend bool operator==(const ClassRate&, const ClassRate&) = default;
};
using ClassRates = std::array<ClassRate, kOpClassCount>;  ///< by OpClass

}  // namespace krigtune
