#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/units.h"
#include "plan/build_plan.h"

namespace krigtune::plan {

/// Places all buffers of the plan in one arena for each place, and sets arena_bytes and host_arena_bytes. Two buffers
/// share bytes only if stream order and waits guarantee that every access to one happens before every access to the
/// other, so they cannot collide in any execution.
void lay_out(StepPlan& plan);

/// The composition of one place's peak: the bytes of each term when the most bytes are in use.
struct PlaceReport {
  std::int64_t peak_bytes = 0;  ///< size of the arena
  std::array<std::int64_t, schedule::kTermCount> term_bytes{};
  std::int64_t lower_bound_bytes = 0;    ///< sum of the terms: no layout needs less
  std::int64_t fragmentation_bytes = 0;  ///< peak_bytes - lower_bound_bytes: gaps between buffers
  std::string peak_at;                   ///< "backward of block 3, micro-step 1"
};
/// For the device, and for the host memory of one rank (empty unless something is offloaded).
struct MemoryReport : PlaceReport {
  PlaceReport host;
};
MemoryReport explain(const StepPlan& plan);

enum class Verdict { kFits, kUncertain, kTooLarge };
const char* to_string(Verdict verdict);  ///< fits, uncertain, too_large

/// The purposes of a peak's bytes, separated as far as programs differ from the plan.
enum class MemoryPart : std::uint8_t {
  kStates,            ///< parameters and the optimizer's states
  kGradients,         ///< kept during the step
  kShardedGradients,  ///< of gradients: what less there is (negative) if they are sharded where only the optimizer's
                      ///< states are planned to be
  // Including workspace; one of the three in each configuration. What a framework keeps of a layer that it recomputes
  // in part is a matter of its own.
  kActivations,           ///< if nothing is recomputed
  kSelectiveActivations,  ///< if layers are recomputed in part
  kFullActivations,       ///< if layers are recomputed whole
  kOtherSplit,  ///< of activations: what more there is (negative: less) if tokens are split over the tensor-parallel
                ///< ranks where they are planned whole, or the other way round
  kLogits,
  kBuffers,   ///< gathered parameters, reduce buckets, inputs
  kOverhead,  ///< context, communicators, fragmentation: not counted by an allocator
};
inline constexpr int kMemoryPartCount = 10;
using MemoryParts = std::array<double, kMemoryPartCount>;  ///< bytes, by part

/// Whether a configuration fits. If kTooLarge it is never tried; if kUncertain its score is weighted by the
/// probability.
struct MemoryVerdict {
  Verdict verdict = Verdict::kUncertain;
  double probability_fits = 0.5;
  Bytes predicted;
  /// The uncertainty of `predicted`; empty if a plan is exact.
  struct Spread {
    double log_stddev = 0.0;             ///< of the peak relative to `predicted`
    double margin = 0.0;                 ///< log(usable / predicted), in units of that stddev
    Bytes allocated;                     ///< the part of `predicted` that the program's allocator counts
    Bytes usable;                        ///< the limit used in the comparison
    double own_log_stddev = 0.0;         ///< of peaks, from the framework's traits; for MemoryShape
    std::vector<MemoryParts> moments{};  ///< planned moments that may be the peak of a step
  };
  std::optional<Spread> spread{};
};
/// Returns the verdict of an exact plan: it fits or it does not.
MemoryVerdict exact_verdict(Bytes predicted, Bytes usable);

/// Bytes that one rank sends in one optimizer step, by collective. Scalars (the loss) are not counted.
struct WireBytes {
  std::int64_t all_reduce = 0;
  std::int64_t reduce_scatter = 0;
  std::int64_t all_gather = 0;
};
WireBytes wire_bytes(const StepPlan& plan);

}  // namespace krigtune::plan
