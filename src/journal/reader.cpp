#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "krigtune/core/error.h"
#include "krigtune/core/files.h"
#include "krigtune/core/text.h"
#include "krigtune/journal/journal.h"
#include "python_json.h"
#include "replayed_study.h"

namespace krigtune {
namespace {

// Names by id, as ReplayedStudy counts them. A line that is none it will complain of.
std::map<int, std::string> studies_in(std::string_view text) {
  std::map<int, std::string> studies;
  int next = 0;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n', begin)) {
    const Json log = parse_python_json(text.substr(begin, end - begin));
    begin = end + 1;
    if (!log.is_object() || !log.contains("op_code")) continue;
    if (log["op_code"] == static_cast<int>(JournalOperation::kDeleteStudy)) studies.erase(log.value("study_id", -1));
    if (log["op_code"] != static_cast<int>(JournalOperation::kCreateStudy)) continue;
    const auto name = log.value("study_name", std::string());
    const bool is_known =
        std::any_of(studies.begin(), studies.end(), [&](const auto& study) { return study.second == name; });
    if (!is_known) studies[next++] = name;
  }
  return studies;
}

}  // namespace

std::vector<Trial> read_journal(const std::filesystem::path& file) {
  ReplayedStudy study(file.string());
  study.apply(read_text(file));  // a torn last line is one that is being written
  return study.trials();
}

JournalStudy read_study(const std::filesystem::path& file, const std::string& name) {
  const std::string text = read_text(file);
  const std::map<int, std::string> studies = studies_in(text);
  std::vector<std::string> names;
  for (const auto& [id, other] : studies) names.push_back(other);
  if (names.empty()) throw UserError(file.string() + " holds no study", "name a journal of Optuna's");
  if (name.empty() && names.size() > 1) {
    throw UserError(fmt::format("{} holds the studies {}", file.string(), join(names, ", ")),
                    fmt::format("name one: {}:{}", file.string(), names.front()));
  }
  for (const auto& [id, other] : studies) {
    if (!name.empty() && other != name) continue;
    ReplayedStudy study(file.string(), id);
    study.apply(text);
    return {other, study.metric(), study.direction() == kMaximize, study.trials()};
  }
  throw UserError(fmt::format("{} holds no study '{}'", file.string(), name), suggestion(name, names));
}

}  // namespace krigtune
