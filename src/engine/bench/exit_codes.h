#pragma once

namespace krigtune {

// What krigtune-bench tells its caller; 128 + n are signals.
inline constexpr int kBadInput = 2;
inline constexpr int kEnvironmentLacks = 3;
inline constexpr int kInternal = 4;
inline constexpr int kPredictedOutOfMemory = 10;
inline constexpr int kOutOfMemory = 11;
inline constexpr int kHang = 12;           // no step has ended for --hang-s
inline constexpr int kCommunication = 13;  // another process of the job is gone
inline constexpr int kNumericalFailure = 14;
inline constexpr int kNoDevice = 77;

}  // namespace krigtune
