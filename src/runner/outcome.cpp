#include "krigtune/runner/outcome.h"

#include <array>
#include <utility>

namespace krigtune {
namespace {

constexpr std::array<std::pair<FailureReason, const char*>, 7> kReasons = {{
    {FailureReason::kTimeout, "timeout"},
    {FailureReason::kHang, "hang"},
    {FailureReason::kCrash, "crash"},
    {FailureReason::kInvalid, "invalid"},
    {FailureReason::kInterrupted, "interrupted"},
    {FailureReason::kBadResult, "bad_result"},
    {FailureReason::kEnvironment, "environment"},
}};

struct StatusOf {
  const char* operator()(const Measured& /*outcome*/) const { return "ok"; }
  const char* operator()(const OutOfMemory& /*outcome*/) const { return "oom"; }
  const char* operator()(const Failed& /*outcome*/) const { return "failed"; }
  const char* operator()(const Bounded& /*outcome*/) const { return "bounded"; }
};

struct ReasonOf {
  std::string operator()(const Measured& /*outcome*/) const { return ""; }
  std::string operator()(const OutOfMemory& outcome) const { return outcome.predicted ? "predicted" : ""; }
  std::string operator()(const Failed& outcome) const { return to_string(outcome.reason); }
  std::string operator()(const Bounded& /*outcome*/) const { return ""; }
};

}  // namespace

const char* to_string(FailureReason reason) {
  for (const auto& [value, text] : kReasons) {
    if (value == reason) return text;
  }
  return "crash";
}

FailureReason failure_reason_from(const std::string& text) {
  for (const auto& [value, word] : kReasons) {
    if (text == word) return value;
  }
  return FailureReason::kCrash;
}

bool ran(const Outcome& outcome) {
  return std::holds_alternative<Measured>(outcome) || std::holds_alternative<Bounded>(outcome);
}

bool ran_out_of_memory(const Outcome& outcome) {
  const auto* oom = std::get_if<OutOfMemory>(&outcome);
  return oom != nullptr && !oom->predicted;
}

bool is_unforeseen_failure(const Outcome& outcome) {
  return std::holds_alternative<Failed>(outcome) || ran_out_of_memory(outcome);
}

const char* status_text(const Outcome& outcome) { return std::visit(StatusOf{}, outcome); }

std::string reason_text(const Outcome& outcome) { return std::visit(ReasonOf{}, outcome); }

}  // namespace krigtune
