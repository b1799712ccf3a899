// Numbers without a source of their own are experiments/data/README.md's.
#include <fmt/format.h>

#include <array>
#include <cassert>

#include "krigtune/cost/framework.h"

namespace krigtune {
namespace {

// One line per framework.
const std::array<FrameworkTraits, 5>& registry() {
  static const std::array<FrameworkTraits, 5> kTraits = {{
      {.framework = Framework::kKrigtune,
       .name = "krigtune",
       .exact_memory = true,
       .context_bytes = 0.0,
       .fragmentation = 1.0,
       .log_stddev = 0.0,
       .step_overhead_s = 0.0},
      {.framework = Framework::kDeepSpeed, .name = "deepspeed", .dialect = Dialect::kDeepSpeed, .logits_bytes = 12.0},
      {.framework = Framework::kFsdp, .name = "fsdp", .whole_units = true},
      {.framework = Framework::kMegatron,
       .name = "megatron",
       .logits_bytes = 2.0,
       .gradient_bytes = 4.0,
       .reduced_bytes = 4.0,
       .bucket_bytes = 1.6e8,
       .even_stages = true},
      {.framework = Framework::kNanotron,
       .name = "nanotron",
       .activation_factor = 1.5,
       .logits_bytes = 12.0,
       .gradient_bytes = 4.0,
       .context_bytes = 1e9,
       .reduced_bytes = 4.0,
       .bucket_bytes = 25e6},
  }};
  return kTraits;
}

}  // namespace

const FrameworkTraits& traits_of(Framework framework) {
  for (const FrameworkTraits& traits : registry()) {
    if (traits.framework == framework) return traits;
  }
  assert(false);
  return registry().front();
}

std::vector<std::string> framework_names() {
  std::vector<std::string> names;
  for (const FrameworkTraits& traits : registry()) names.emplace_back(traits.name);
  return names;
}

}  // namespace krigtune
