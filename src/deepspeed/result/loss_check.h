#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "deepspeed/job/ds_losses.h"
#include "report/run_view.h"

// Whether the best configuration trains as the reference does, by the losses of their first steps.
namespace krigtune::deepspeed {

struct LossCheck {
  enum class Verdict {
    kAgree,
    kDiffer,   ///< by more than rounding explains: a warning
    kUnknown,  ///< they cannot be compared: `why`
  };
  Verdict verdict = Verdict::kUnknown;
  int trial = 0;              ///< the best
  int reference_trial = 0;    ///< what it is compared with
  int compared = 0;           ///< how many losses of each
  std::int64_t interval = 1;  ///< steps from one to the next
  double largest = 0.0;       ///< relative difference; infinite: one of the two is no number
  int first = 0;              ///< kDiffer, or where data may differ: the first loss, from 1, beyond its tolerance
  double at_first = 0.0;      ///< its relative difference,
  double tolerance = 0.0;     ///< and what rounding explains there
  std::string why = {};       ///< kUnknown: a clause
};

/// What is the same in both.
struct SameData {
  bool batch = true;  ///< sequences of a step
  bool cut = true;    ///< of the batch into micro-batches: else a script may deal its data otherwise
};
/// Trials are numbered by the caller.
LossCheck compare_losses(const DsLosses& reference, const DsLosses& best, const SameData& same);

/// Of the best and the reference trial of a DeepSpeed job, or of another command whose losses are measured, by the
/// files of both trials. Empty: there is nothing to compare (another runner, no losses asked for, no best, or the
/// reference is the best).
std::optional<LossCheck> loss_check(const report::RunView& run);

inline bool is_warning(const LossCheck& check) { return check.verdict == LossCheck::Verdict::kDiffer; }
/// For people, one line: "the losses of trial 5 agree with those of trial 0: ...".
std::string loss_check_sentence(const LossCheck& check);
/// For programs; null for empty.
nlohmann::ordered_json loss_check_json(const std::optional<LossCheck>& check);

}  // namespace krigtune::deepspeed
