// ZeRO's stages, buckets, overlap, offload and the division of a fixed batch only change the order of sums, so the
// losses of the first steps must agree except for rounding. With a_j, b_j the losses of step j they differ if
//
//   |a_j - b_j| > (r_a + r_b) / 2 + j u max(|a_j|, |b_j|),   u = 2^-10
//
// with r the precision of the printed numbers. Each step adds its own rounding to the weights, and the loss depends on
// the weights, so the tolerance grows with j. u is a quarter of bf16's unit roundoff 2^-8, because the mean over a
// batch's tokens averages out most of the rounding. Measurements limit it from both sides (DeepSpeed 0.19.8, GPT of 1M
// parameters, 2 CPU ranks, 16 steps; tests/runner/deepspeed_outputs/losses.csv): largest |a_j - b_j| / (j max) of
//
//   stages 1 to 3, buckets, overlap and divisions in bf16  5.9e-4     rounding, must be tolerated
//   stage 0 against stages 1 to 3 in bf16                  2.1e-3     stage 0 keeps no fp32 weights: it trains worse
//   any of stages 0 to 3 in fp32                           4e-8
//
// and for reported faults 3.4e-3 (deepspeedai/DeepSpeed#1488, accumulation), 4e-2 (#5523, overlap_comm, the same
// configuration twice), and NaN from step 3 on (#7965, overlap_comm). u is the same for all precisions, because a
// script may compute in bf16 or TF32 although the file does not say so.
#include "deepspeed/result/loss_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/json.h"
#include "deepspeed/result/ds_result.h"
#include "report/labels.h"
#include "run/loop.h"
#include "runner/command.h"
#include "space/parallel_layout.h"
#include "space/well_known.h"

namespace krigtune::deepspeed {
namespace {

constexpr double kRoundingPerStep = 0x1p-10;

std::string percent_or_none(double fraction) {
  if (!std::isfinite(fraction)) return "without a number";
  return report::percent_text(fraction);
}

double relative_difference(double a, double b) {
  if (std::isfinite(a) != std::isfinite(b)) return std::numeric_limits<double>::infinity();
  const double size = std::max(std::abs(a), std::abs(b));
  return std::isfinite(a) && size > 0.0 ? std::abs(a - b) / size : 0.0;
}

double tolerance_of(double a, double b, double resolution, double steps) {
  const double size = std::max(std::abs(a), std::abs(b));
  const double printed = std::isfinite(size) && size > 0.0 ? resolution / size : 0.0;
  return printed + kRoundingPerStep * steps;
}

LossCheck unknown(std::string why) {
  LossCheck check;
  check.why = std::move(why);
  return check;
}

DsLosses losses_of(const report::RunView& run, const journal::Trial& trial, const char* file) {
  return read_losses(run.directory / "trials" / run::trial_folder(trial) / file);
}

bool has_same_cut(const space::Configuration& a, const space::Configuration& b) {
  std::vector<const char*> names = space::rank_divisors();
  names.insert(names.end(), {space::kMicroBatch, space::kAccumulation});
  for (const char* name : names) {
    const space::Value* one = a.find(name);
    const space::Value* other = b.find(name);
    const bool equal = one == nullptr ? other == nullptr : other != nullptr && space::same_value(*one, *other);
    if (!equal) return false;
  }
  return true;
}

SameData same_data(const DsUserJob& job, const space::Configuration& a, const space::Configuration& b) {
  return {ds_batch_of(job, a) == ds_batch_of(job, b), has_same_cut(a, b)};
}

LossCheck check_of_job(const report::RunView& run, const DsUserJob& job, const journal::Trial& reference,
                       const journal::Trial& best) {
  return compare_losses(losses_of(run, reference, "result.json"), losses_of(run, best, "result.json"),
                        same_data(job, reference.proposal.configuration, best.proposal.configuration));
}

// Compares the data of commands other than DeepSpeed jobs, using only the parameters.
SameData same_data(const space::Configuration& a, const space::Configuration& b) {
  const auto batch = [](const space::Configuration& one) {
    const auto count = [&](const char* name) { return static_cast<double>(one.integer(name, 1)); };
    return count(space::kMicroBatch) * count(space::kAccumulation) / static_cast<double>(space::ranks_of_replica(one));
  };
  SameData same;
  same.batch = batch(a) == batch(b);
  same.cut = has_same_cut(a, b);
  return same;
}

// A parameter that neither krigtune nor a recipe knows may change what is learned. In a recipe's command, the user's
// own words name the parameters that the recipe does not know.
std::string unknown_change(const runner::CommandSpec& command, const search::Changes& changes) {
  const auto names_it = [](const std::string& name) {
    return [placeholder = "{" + name + "}"](const std::string& word) { return word.find(placeholder) != word.npos; };
  };
  for (const search::Change& change : changes.each) {
    if (space::find_well_known(change.parameter) != nullptr) continue;
    const auto& own = command.users_command;
    if (own.empty() || std::any_of(own.begin(), own.end(), names_it(change.parameter))) return change.parameter;
  }
  return "";
}

LossCheck check_of_command(const report::RunView& run, const journal::Trial& reference, const journal::Trial& best) {
  const std::string other = unknown_change(*runner::command_of(run.session.runner), run.answer.best->changes);
  if (!other.empty()) return unknown(fmt::format("'{}' differs, which may change what is learned", other));
  return compare_losses(losses_of(run, reference, "measured.json"), losses_of(run, best, "measured.json"),
                        same_data(reference.proposal.configuration, best.proposal.configuration));
}

bool measures_losses(const session::Session& session) {
  const trial::MeasureSpec* spec = runner::measure_of(session.runner);
  return spec != nullptr && spec->find(trial::kLoss) != nullptr;
}

// Returns "step 3", or "loss 3" if the script prints only every tenth.
std::string place(const LossCheck& check, int number) {
  return fmt::format("{} {}", check.interval == 1 ? "step" : "loss", number);
}

std::string extent(const LossCheck& check) {
  if (check.interval == 1) return fmt::format("the first {} steps", check.compared);
  return fmt::format("the first {} that are printed, one in about {} steps", check.compared, check.interval);
}

}  // namespace

LossCheck compare_losses(const DsLosses& reference, const DsLosses& best, const SameData& same) {
  if (reference.values.empty() || best.values.empty()) {
    return unknown("the script prints none (one a step would do: \"loss 6.43\", or --logging_steps 1 of the Trainer)");
  }
  if (!same.batch) return unknown("their batches differ");
  if (reference.interval != best.interval) return unknown("the script prints them at different steps");
  LossCheck check;
  check.interval = best.interval;
  check.compared = static_cast<int>(std::min(reference.values.size(), best.values.size()));
  const double resolution = 0.5 * (reference.resolution + best.resolution);
  for (int i = 0; i < check.compared; ++i) {
    const double a = reference.values[static_cast<std::size_t>(i)];
    const double b = best.values[static_cast<std::size_t>(i)];
    const double difference = relative_difference(a, b);
    const double tolerance = tolerance_of(a, b, resolution, static_cast<double>((i + 1) * check.interval));
    check.largest = std::max(check.largest, difference);
    if (check.first > 0 || difference <= tolerance) continue;
    check.first = i + 1;
    check.at_first = difference;
    check.tolerance = tolerance;
  }
  check.verdict = check.first == 0 ? LossCheck::Verdict::kAgree
                  : same.cut       ? LossCheck::Verdict::kDiffer
                                   : LossCheck::Verdict::kUnknown;
  if (check.verdict != LossCheck::Verdict::kUnknown) return check;
  check.why = fmt::format(
      "micro-batch or accumulation differ, and with them perhaps the data of a step: they differ by {} at {}, more "
      "than rounding explains",
      percent_or_none(check.at_first), place(check, check.first));
  // NaN is a fault, whatever data the trials had.
  if (!std::isfinite(check.largest)) check.verdict = LossCheck::Verdict::kDiffer;
  return check;
}

std::optional<LossCheck> loss_check(const report::RunView& run) {
  const std::optional<DsUserJob> job = run.answer.best ? ds_user_job(run.session) : std::nullopt;
  if (!run.answer.best || (!job && !measures_losses(run.session)) || run.answer.is_reference) return std::nullopt;
  const journal::Trial* best = search::find_trial(run.history, run.answer.best->trial);
  const journal::Trial* reference = search::find_trial(run.history, run.answer.best->reference_trial);
  if (best == nullptr || reference == nullptr) return std::nullopt;
  LossCheck check = job ? check_of_job(run, *job, *reference, *best) : check_of_command(run, *reference, *best);
  check.trial = best->number;
  check.reference_trial = reference->number;
  return check;
}

std::string loss_check_sentence(const LossCheck& check) {
  const std::string who = fmt::format("the losses of trial {}", check.trial);
  switch (check.verdict) {
    case LossCheck::Verdict::kAgree:
      return fmt::format("{} agree with those of trial {} within {} over {}", who, check.reference_trial,
                         percent_or_none(check.largest), extent(check));
    case LossCheck::Verdict::kDiffer:
      if (!std::isfinite(check.at_first)) {
        return fmt::format("{} and of trial {} differ from {} on: one of the two is not a number there", who,
                           check.reference_trial, place(check, check.first));
      }
      return fmt::format(
          "{} differ from those of trial {} from {} on: by {} there, where rounding explains {}, and by up to {} over "
          "{}; it may not train alike: train both for longer before you take it",
          who, check.reference_trial, place(check, check.first), percent_or_none(check.at_first),
          percent_or_none(check.tolerance), percent_or_none(check.largest), extent(check));
    case LossCheck::Verdict::kUnknown:
      break;
  }
  return fmt::format("{} cannot be compared with those of trial {}: {}", who, check.reference_trial, check.why);
}

Json loss_check_json(const std::optional<LossCheck>& check) {
  if (!check) return nullptr;
  constexpr const char* kWords[] = {"agree", "differ", "unknown"};
  Json json = {{"verdict", kWords[static_cast<int>(check->verdict)]},
               {"reference_trial", check->reference_trial},
               {"compared", check->compared},
               {"interval", check->interval},
               {"largest_difference", std::isfinite(check->largest) ? json_number(check->largest) : Json(nullptr)}};
  if (check->first > 0) {
    json["first"] = {{"loss", check->first},
                     {"difference", std::isfinite(check->at_first) ? json_number(check->at_first) : Json(nullptr)},
                     {"tolerance", json_number(check->tolerance)}};
  }
  json["sentence"] = loss_check_sentence(*check);
  return json;
}

}  // namespace krigtune::deepspeed
