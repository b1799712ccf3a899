#pragma once

namespace krigtune {

/// Lines of Optuna's JournalStorage: their "op_code" (optuna/storages/journal/_storage.py).
enum class JournalOperation {
  kCreateStudy = 0,
  kDeleteStudy = 1,
  kSetStudyUserAttr = 2,
  kSetStudySystemAttr = 3,
  kCreateTrial = 4,
  kSetTrialParam = 5,
  kSetTrialStateValues = 6,
  kSetTrialIntermediateValue = 7,
  kSetTrialUserAttr = 8,
  kSetTrialSystemAttr = 9,
};

/// Optuna's TrialState.
enum class TrialState { kRunning = 0, kComplete = 1, kPruned = 2, kFail = 3, kWaiting = 4 };

/// Optuna's StudyDirection.
inline constexpr int kMinimize = 1;
inline constexpr int kMaximize = 2;

inline constexpr const char* kStudyName = "krigtune";
inline constexpr const char* kMetricNames = "study:metric_names";

}  // namespace krigtune
