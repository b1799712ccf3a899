#pragma once
#include <cstddef>
#include <cstdint>

namespace krigtune {

/// The logical streams of one rank. Operations of one stream run in order; streams are ordered by waits only.
/// kCopy moves bytes between device and host memory, kHost computes on the host (offloaded optimizers).
enum class Stream : std::uint8_t { kCompute, kGather, kReduce, kCopy, kHost };
inline constexpr int kStreamCount = 5;
inline constexpr std::size_t index_of(Stream stream) { return static_cast<std::size_t>(stream); }

/// Among whom a collective communicates. World rank = data rank * tensor ranks + tensor rank (Megatron's order).
enum class Group : std::uint8_t { kData, kTensor };
inline constexpr int kGroupCount = 2;

enum class Phase : std::uint8_t { kForward, kRecompute, kBackward, kOptimizer };
inline constexpr int kPhaseCount = 4;
const char* to_string(Phase phase);

}  // namespace krigtune
