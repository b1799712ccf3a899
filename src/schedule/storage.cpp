#include "krigtune/schedule/storage.h"

#include <array>

#include "krigtune/schedule/streams.h"

namespace krigtune {
namespace {

// In the order of the enumerators.
constexpr std::array<const char*, kTermCount> kTermNames = {
    "parameters", "gradients", "optimizer_state", "gathered_parameters", "reduce_buckets", "activations",
    "logits",     "workspace", "inputs"};
constexpr std::array<const char*, kPhaseCount> kPhaseNames = {"forward", "recompute", "backward", "optimizer"};

static_assert(kTermCount == static_cast<int>(Term::kInputs) + 1);
static_assert(kPhaseCount == static_cast<int>(Phase::kOptimizer) + 1);

}  // namespace

const char* to_string(Term term) { return kTermNames[static_cast<std::size_t>(term)]; }
const char* to_string(Phase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }

}  // namespace krigtune
