#pragma once

namespace krigtune {

/// What krigtune-bench tells who started it; 128 + n are signals.
struct BenchExit {
  static constexpr int kOk = 0;
  static constexpr int kBadInput = 2;
  static constexpr int kEnvironmentLacks = 3;
  static constexpr int kInternal = 4;
  static constexpr int kPredictedOutOfMemory = 10;
  static constexpr int kOutOfMemory = 11;
  static constexpr int kHang = 12;           ///< no step has ended for --hang-s
  static constexpr int kCommunication = 13;  ///< another process of the job is gone
  static constexpr int kNumericalFailure = 14;
  static constexpr int kNoDevice = 77;
};

}  // namespace krigtune
