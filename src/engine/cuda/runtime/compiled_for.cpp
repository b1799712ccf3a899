#include "engine/cuda/runtime/compiled_for.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace krigtune::cuda {
namespace {

struct Target {
  int version = 0;  ///< 10 major + minor
  char suffix = 0;  ///< 'a', 'f' or none
  bool real = false, ptx = false;
};

std::optional<Target> target_from(std::string_view text) {
  Target target;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, target.version);
  if (read.ec != std::errc()) return std::nullopt;
  std::string_view rest(read.ptr, static_cast<std::size_t>(end - read.ptr));
  if (!rest.empty() && (rest.front() == 'a' || rest.front() == 'f')) {
    target.suffix = rest.front();
    rest.remove_prefix(1);
  }
  target.real = rest.empty() || rest == "-real";
  target.ptx = rest.empty() || rest == "-virtual";
  return target.real || target.ptx ? std::optional(target) : std::nullopt;
}

bool runs_on(const Target& target, int version) {
  constexpr int kMajor = 10;
  if (target.suffix == 'a') return target.version == version;
  const bool same_major = target.version / kMajor == version / kMajor;
  return target.version <= version && (same_major || (target.ptx && target.suffix == 0));
}

std::string dotted(int version) { return fmt::format("{}.{}", version / 10, version % 10); }

// Returns the targets in their order. An entry is empty if its text does not begin with a number, such as "native".
std::vector<std::optional<Target>> targets_from(std::string_view texts) {
  std::vector<std::optional<Target>> targets;
  while (!texts.empty()) {
    const std::size_t end = std::min(texts.find(','), texts.size());
    targets.push_back(target_from(texts.substr(0, end)));
    texts.remove_prefix(std::min(end + 1, texts.size()));
  }
  return targets;
}

}  // namespace

std::string why_not_compiled_for(std::string_view targets, int major, int minor) {
  const int version = 10 * major + minor;
  std::vector<std::string> names;
  int oldest = version;
  bool any = false;
  for (const std::optional<Target>& target : targets_from(targets)) {
    if (!target || runs_on(*target, version)) return "";
    oldest = any ? std::min(oldest, target->version) : target->version;
    any = true;
    const std::string name = dotted(target->version);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (!any) return "";
  return fmt::format("compute capability {} is {} this program was compiled for ({})", dotted(version),
                     version < oldest ? "older than what" : "not among those that", fmt::join(names, ", "));
}

bool has_hopper_code(std::string_view targets, int major, int minor) {
  constexpr int kHopper = 90;
  if (10 * major + minor != kHopper) return false;
  for (const std::optional<Target>& target : targets_from(targets)) {
    if (target && target->version == kHopper && target->suffix == 'a') return true;
  }
  return false;
}

std::string_view compiled_targets() { return KRIGTUNE_CUDA_TARGETS; }

}  // namespace krigtune::cuda
