#include "report/trial_classes.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"

namespace krigtune::report {
namespace {

std::string class_of(const trial::Outcome& outcome) {
  const std::string reason = trial::reason_text(outcome);
  return reason.empty() ? trial::status_text(outcome) : fmt::format("{} ({})", trial::status_text(outcome), reason);
}

}  // namespace

std::vector<ClassCount> counts_by_class(const search::History& history) {
  std::vector<ClassCount> counts = {{"ok"}};
  for (const journal::Trial& trial : history) {
    if (!search::is_closed(trial)) continue;
    const std::string name = class_of(*trial.outcome);
    const auto found = std::find_if(counts.begin(), counts.end(), [&](const ClassCount& c) { return c.name == name; });
    if (found == counts.end()) {
      counts.push_back({name, 1, trial.number});
    } else {
      ++found->count;
    }
  }
  std::stable_sort(counts.begin() + 1, counts.end(),
                   [](const ClassCount& a, const ClassCount& b) { return a.count > b.count; });
  if (counts.front().count == 0) counts.erase(counts.begin());
  return counts;
}

std::string text_of(const std::vector<ClassCount>& counts) {
  std::vector<std::string> parts;
  for (const ClassCount& one : counts) parts.push_back(fmt::format("{} {}", one.count, one.name));
  return parts.empty() ? "none" : join(parts, ", ");
}

std::string last_line_of(const journal::Trial& trial) {
  const auto* failed = trial.outcome ? std::get_if<trial::Failed>(&*trial.outcome) : nullptr;
  if (failed == nullptr || search::is_interrupted(trial)) return "";
  const std::string& text = failed->last_lines;
  const std::size_t end = text.find_last_not_of(" \r\n");
  if (end == std::string::npos) return "";
  const std::size_t before = text.rfind('\n', end);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return text.substr(begin, end - begin + 1);
}

}  // namespace krigtune::report
