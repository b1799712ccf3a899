#include "programs/krigtune/diagnose_hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "core/processor.h"
#include "machine/environment_checks.h"
#include "programs/krigtune/plan_tables.h"

namespace krigtune::cli {
namespace {

// Returns which slowness of a machine this limit indicates; empty if it depends on the configuration alone.
std::vector<machine::Slowness> slowness_of(const diagnose::Verdict& verdict) {
  using machine::Slowness;
  switch (verdict.limit) {
    case diagnose::Limit::kStraggler:
      return {Slowness::kStraggler};
    case diagnose::Limit::kSlowDevice:
      return {Slowness::kDevice};
    case diagnose::Limit::kInput:
    case diagnose::Limit::kHost:
    case diagnose::Limit::kCopies:
    case diagnose::Limit::kOffload:
    case diagnose::Limit::kLongSteps:
      return {Slowness::kHost};
    case diagnose::Limit::kCommunication:
    case diagnose::Limit::kDataCommunication:
    case diagnose::Limit::kTensorCommunication:
    case diagnose::Limit::kContextCommunication:
    case diagnose::Limit::kExpertCommunication:
    case diagnose::Limit::kPipelineCommunication:
      return {Slowness::kNode, Slowness::kNetwork};
    default:
      return {};
  }
}

}  // namespace

Hints hints_of(const Context& context, const std::vector<diagnose::Verdict>& verdicts) {
  std::vector<machine::Slowness> kinds;
  for (const diagnose::Verdict& verdict : verdicts) {
    const std::vector<machine::Slowness> more = slowness_of(verdict);
    kinds.insert(kinds.end(), more.begin(), more.end());
  }
  if (kinds.empty()) return {};
  const machine::MachineView view = machine::this_machine(context.console.clock);
  return {machine::that_explain(machine::examine_environment(view), kinds)};
}

void print_hints(const Context& context, const Hints& hints) {
  if (hints.findings.empty()) return;
  std::ostream& out = context.console.out;
  out << fmt::format("\nWhat on this machine ({}) may explain it, if it ran here\n", host_name());
  for (const machine::Finding& finding : hints.findings) {
    std::string cost = finding.cost;
    std::replace(cost.begin(), cost.end(), '\n', ' ');
    out << "- " << wrapped(fmt::format("{}: {}: {}", finding.name, finding.what, cost), 2);
  }
}

Json to_json(const Hints& hints) {
  Json list = Json::array();
  for (const machine::Finding& finding : hints.findings) {
    list.push_back({{"name", finding.name}, {"what", finding.what}, {"cost", finding.cost}});
  }
  return list;
}

}  // namespace krigtune::cli
