#include "core/processor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/error.h"

namespace krigtune {
namespace {

constexpr const char* kVariable = "KRIGTUNE_VECTOR_UNIT";
constexpr std::array kAllKinds = {VectorUnitKind::kPlain, VectorUnitKind::kAvx2, VectorUnitKind::kAvx512};

std::string named_in_the_environment() {
  const char* name = std::getenv(kVariable);
  return name == nullptr ? "" : name;
}

std::string names_of(const std::vector<VectorUnitKind>& kinds) {
  std::string names;
  for (const VectorUnitKind kind : kinds) names += fmt::format("{}{}", names.empty() ? "" : ", ", to_string(kind));
  return names;
}

}  // namespace

const char* to_string(VectorUnitKind kind) {
  constexpr std::array kNames = {"plain", "avx2", "avx512"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::vector<VectorUnitKind> processor_vector_units() {
  std::vector<VectorUnitKind> units = {VectorUnitKind::kPlain};
#if defined(__x86_64__) && defined(__GNUC__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return units;
  units.push_back(VectorUnitKind::kAvx2);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw")) {
    units.push_back(VectorUnitKind::kAvx512);
  }
#endif
  return units;
}

VectorUnitKind choose_vector_unit(const std::string& name, const std::vector<VectorUnitKind>& available) {
  if (name.empty()) return available.back();
  const auto named = [&](VectorUnitKind kind) { return name == to_string(kind); };
  if (const auto found = std::find_if(available.begin(), available.end(), named); found != available.end()) {
    return *found;
  }
  const bool exists = std::any_of(kAllKinds.begin(), kAllKinds.end(), named);
  throw UserError(exists ? fmt::format("{} is '{}', which this processor does not have", kVariable, name)
                         : fmt::format("{} is '{}', which is not a vector unit", kVariable, name),
                  fmt::format("unset it, or use one that this machine has: {}", names_of(available)));
}

VectorUnitKind chosen_vector_unit() {
  static const VectorUnitKind kChosen = choose_vector_unit(named_in_the_environment(), processor_vector_units());
  return kChosen;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace krigtune
