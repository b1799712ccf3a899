#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "deepspeed/job/ds_losses.h"
#include "report/run_view.h"

// Checks by the losses of the first steps whether the best configuration trains like the reference.
namespace krigtune::deepspeed {

struct LossCheck {
  enum class Verdict {
    kAgree,
    kDiffer,   ///< by more than rounding can explain: a warning
    kUnknown,  ///< they cannot be compared; `why` has the reason
  };
  Verdict verdict = Verdict::kUnknown;
  int trial = 0;              ///< trial with the best configuration
  int reference_trial = 0;    ///< trial of the comparison
  int compared = 0;           ///< number of losses compared
  std::int64_t interval = 1;  ///< steps between two losses
  double largest = 0.0;       ///< relative difference; infinite if one of the two is not a number
  int first = 0;              ///< kDiffer, or if data may differ: index of the first loss, from 1, beyond its tolerance
  double at_first = 0.0;      ///< its relative difference
  double tolerance = 0.0;     ///< the relative difference that rounding explains there
  std::string why = {};       ///< kUnknown: a clause
};

/// What both trials have in common.
struct SameData {
  bool batch = true;  ///< sequences per step
  /// Division of the batch into micro-batches; if it differs, a script may distribute its data differently.
  bool cut = true;
};
/// The caller fills in the trial numbers.
LossCheck compare_losses(const DsLosses& reference, const DsLosses& best, const SameData& same);

/// Compares the best and the reference trial by their files, for a DeepSpeed job or another command whose losses are
/// measured. Empty if there is nothing to compare (another runner, losses not requested, no best configuration, or the
/// reference is the best).
std::optional<LossCheck> loss_check(const report::RunView& run);

inline bool is_warning(const LossCheck& check) { return check.verdict == LossCheck::Verdict::kDiffer; }
/// For people, one line: "the losses of trial 5 agree with those of trial 0: ...".
std::string loss_check_sentence(const LossCheck& check);
/// For programs; null if empty.
nlohmann::ordered_json loss_check_json(const std::optional<LossCheck>& check);

}  // namespace krigtune::deepspeed
