#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/units.h"
#include "plan/build_plan.h"

namespace krigtune::plan {

/// Lays all buffers of the plan into one arena a place and sets arena_bytes and host_arena_bytes. Two buffers share
/// bytes only where every access to one happens before every access to the other by stream order and waits, so no
/// schedule can make them collide.
void lay_out(StepPlan& plan);

/// Where the peak of one place comes from: the bytes in use in each term when most bytes are in use.
struct PlaceReport {
  std::int64_t peak_bytes = 0;  ///< the arena
  std::array<std::int64_t, schedule::kTermCount> term_bytes{};
  std::int64_t lower_bound_bytes = 0;    ///< sum of the terms: no layout needs less
  std::int64_t fragmentation_bytes = 0;  ///< peak_bytes - lower_bound_bytes: gaps between buffers
  std::string peak_at;                   ///< "backward of block 3, micro-step 1"
};
/// Of the device, and of the host memory of one rank (empty unless something is offloaded).
struct MemoryReport : PlaceReport {
  PlaceReport host;
};
MemoryReport explain(const StepPlan& plan);

enum class Verdict { kFits, kUncertain, kTooLarge };
const char* to_string(Verdict verdict);  ///< fits, uncertain, too_large

/// What the bytes of a peak are for, as far as programs keep more or less of it than is planned.
enum class MemoryPart : std::uint8_t {
  kStates,       ///< parameters and the optimizer's states
  kGradients,    ///< kept over the step
  kActivations,  ///< and workspace
  kOtherSplit,   ///< of activations: what more there is (negative: less) if tokens are split over the tensor-parallel
                 ///< ranks where they are planned whole, or the other way round
  kLogits,
  kBuffers,   ///< gathered parameters, reduce buckets, inputs
  kOverhead,  ///< context, communicators, fragmentation: not counted by an allocator
};
inline constexpr int kMemoryPartCount = 7;
using MemoryParts = std::array<double, kMemoryPartCount>;  ///< bytes, by part

/// Whether a configuration fits: never asked when kTooLarge, weighed by the probability when kUncertain.
struct MemoryVerdict {
  Verdict verdict = Verdict::kUncertain;
  double probability_fits = 0.5;
  Bytes predicted;
  /// How far `predicted` may be off; empty where a plan is exact.
  struct Spread {
    double log_stddev = 0.0;             ///< of the peak over `predicted`
    double margin = 0.0;                 ///< log(usable / predicted), in those stddevs
    Bytes allocated;                     ///< the part of `predicted` that a program's allocator counts
    Bytes usable;                        ///< that it was compared with
    double own_log_stddev = 0.0;         ///< of peaks, as the framework's traits have it: for MemoryShape
    std::vector<MemoryParts> moments{};  ///< of a step that may be the peak, as planned
  };
  std::optional<Spread> spread{};
};
/// For an exact plan: it fits or it does not.
MemoryVerdict exact_verdict(Bytes predicted, Bytes usable);

/// Bytes that one rank sends in one optimizer step, by collective. Scalars (loss) are not counted.
struct WireBytes {
  std::int64_t all_reduce = 0;
  std::int64_t reduce_scatter = 0;
  std::int64_t all_gather = 0;
};
WireBytes wire_bytes(const StepPlan& plan);

}  // namespace krigtune::plan
