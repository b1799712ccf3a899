#include "report/trial_classes.h"

#include <fmt/format.h>

#include "core/text.h"

namespace krigtune::report {

std::string text_of(const std::vector<answer::ClassCount>& counts) {
  std::vector<std::string> parts;
  for (const answer::ClassCount& one : counts) parts.push_back(fmt::format("{} {}", one.count, one.name));
  return parts.empty() ? "none" : join(parts, ", ");
}

std::string status_text_of(const answer::TrialCounts& trials) {
  std::vector<std::string> parts;
  for (const auto& [status, count] : trials.by_status) {
    if (count > 0) parts.push_back(fmt::format("{} {}", count, status));
  }
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
