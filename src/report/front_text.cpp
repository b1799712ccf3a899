#include "report/front_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/json.h"
#include "core/text.h"
#include "report/labels.h"
#include "session/objectives.h"

namespace krigtune::report {

std::string values_text(const session::Session& session, const search::FrontMember& member) {
  const std::vector<session::Objective> objectives = session::all_objectives(session);
  std::vector<std::string> texts;
  for (std::size_t j = 0; j < objectives.size(); ++j) {
    texts.push_back(objectives[j].metric + " " + value_text(session, objectives[j], member.values[j]));
  }
  return join(texts, ", ");
}

std::vector<std::string> front_lines(const session::Session& session, const std::vector<search::FrontMember>& front) {
  std::vector<std::string> lines;
  for (const search::FrontMember& member : front) {
    lines.push_back(fmt::format("trial {}: {}{} ({})", member.trial, values_text(session, member),
                                mean_text(member.measurements), short_text(session, member.configuration)));
  }
  return lines;
}

std::string front_sentence(const session::Session& session, const std::vector<search::FrontMember>& front) {
  if (session.others.empty()) return "";
  if (front.empty()) return "no configuration is within the limits of all objectives yet";
  const std::vector<session::Objective> objectives = session::all_objectives(session);
  std::vector<std::string> ranges;
  for (std::size_t j = 0; j < objectives.size(); ++j) {
    const auto by_value = [j](const auto& a, const auto& b) { return a.values[j] < b.values[j]; };
    const auto [low, high] = std::minmax_element(front.begin(), front.end(), by_value);
    const std::string from = value_text(session, objectives[j], low->values[j]);
    const std::string to = value_text(session, objectives[j], high->values[j]);
    ranges.push_back(objectives[j].metric + " " + (from == to ? from : fmt::format("{} to {}", from, to)));
  }
  return fmt::format("a front of {}: {}", counted(std::ssize(front), "configuration"), join(ranges, ", "));
}

std::string pick_text(const session::Session& session, const answer::Answer& answer) {
  if (!answer.pick) return "";
  const search::FrontMember& member = answer.front[*answer.pick];
  const bool is_preferred = search::preferred(session, answer.front).has_value();
  return fmt::format("trial {}, {}{}", member.trial, values_text(session, member),
                     is_preferred ? fmt::format(" ({})", session.preference->text) : "");
}

std::string first_objective_note(const session::Session& session) {
  if (session.others.empty()) return "";
  return fmt::format("about {}, the first of {} objectives", session.objective.metric, session.others.size() + 1);
}

Json pick_json(const session::Session& session, const answer::Answer& answer) {
  return {{"prefer", session.preference ? Json(session.preference->text) : Json(nullptr)},
          {"pick", answer.pick ? Json(answer.front[*answer.pick].trial) : Json(nullptr)}};
}

Json front_json(const session::Session& session, const std::vector<search::FrontMember>& front) {
  if (session.others.empty()) return nullptr;
  const std::vector<session::Objective> objectives = session::all_objectives(session);
  Json list = Json::array();
  for (const search::FrontMember& member : front) {
    Json values = Json::object();
    for (std::size_t j = 0; j < objectives.size(); ++j) values[objectives[j].metric] = json_number(member.values[j]);
    list.push_back({{"trial", member.trial},
                    {"configuration", space::to_json(member.configuration)},
                    {"measurements", member.measurements},
                    {"values", std::move(values)}});
  }
  return list;
}

}  // namespace krigtune::report
