// The front of a session with several objectives: the first one against each of the others, and its members as a table.
#include <fmt/format.h>

#include <algorithm>

#include "page/chart/chart.h"
#include "page/document.h"
#include "page/html/html.h"
#include "page/report/sections.h"
#include "report/front_text.h"
#include "report/labels.h"
#include "session/objectives.h"
#include "trial/measure_spec.h"

namespace krigtune::page {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

bool is_memory(const session::Objective& objective) { return objective.field == trial::kPeakMemory; }

double number_on_axis(const session::Objective& objective, double value) {
  return is_memory(objective) ? value / kGib : value;
}

std::string axis_title(const session::Objective& objective) {
  const std::string unit = is_memory(objective) ? "GiB" : objective.unit;
  return unit.empty() ? objective.metric : fmt::format("{} ({})", objective.metric, unit);
}

std::string front_table(const RunFacts& facts) {
  const std::vector<session::Objective> objectives = session::all_objectives(facts.session());
  HtmlTable shown{"The front", {"trial", "configuration"}, {}};
  for (const session::Objective& objective : objectives) shown.columns.push_back(escaped(objective.metric));
  const std::vector<search::FrontMember>& front = facts.answer().front;
  for (const search::FrontMember& member : front) {
    const bool is_pick = facts.answer().pick && &member == &front[*facts.answer().pick];
    std::vector<std::string>& row = shown.rows.emplace_back();
    row = {fmt::format("{}{}", member.trial, is_pick ? " ★" : ""),
           user_text(report::short_text(facts.session(), member.configuration))};
    for (std::size_t j = 0; j < objectives.size(); ++j) {
      row.push_back(escaped(report::value_text(facts.session(), objectives[j], member.values[j])));
    }
  }
  return table(shown);
}

bool is_picked(const RunFacts& facts, const journal::Trial& trial) {
  const answer::Answer& answer = facts.answer();
  return answer.pick && answer.front[*answer.pick].configuration == trial.proposal.configuration;
}

std::string sentences_of(const RunFacts& facts) {
  const session::Session& session = facts.session();
  return escaped(sentence(report::front_sentence(session, facts.answer().front))) + " " +
         escaped(sentence("The recommended one is " + report::pick_text(session, facts.answer())));
}

// `index`: of the other objective, in the order of the session.
std::string against(const RunFacts& facts, std::size_t index, const std::string& numbers) {
  const session::Objective& other = facts.session().others[index];
  Marks measured{"measured", Shape::kRing, 0, {}};
  Marks members{"on the front", Shape::kDot, 2, {}};
  Marks picked{"recommended", Shape::kDiamond, 1, {}};
  std::vector<double> xs, ys;
  for (const journal::Trial* trial : facts.closed()) {
    const std::optional<double> value = facts.value_of(*trial);
    const std::optional<double> beside = search::value_of(*trial, other);
    if (!value || !beside) continue;
    xs.push_back(number_on_axis(other, *beside));
    ys.push_back(facts.shown(*value));
    const bool is_pick = is_picked(facts, *trial);
    const bool is_member = std::any_of(facts.answer().front.begin(), facts.answer().front.end(), [&](const auto& one) {
      return one.configuration == trial->proposal.configuration;
    });
    (is_pick     ? picked
     : is_member ? members
                 : measured)
        .marks.push_back({.x = xs.back(), .y = ys.back(), .tip = facts.tip_of(*trial), .link = facts.link_of(*trial)});
  }
  Chart drawing;
  drawing.title = fmt::format("{} against {}", facts.objective().metric, other.metric);
  drawing.description = "Each mark is a trial that ran; the table has the members of the front";
  drawing.x = axis_around(axis_title(other), xs);
  drawing.y = axis_around(facts.value_title(), ys);
  drawing.marks = {measured, members, picked};
  return figure({drawing.title, chart(drawing), sentences_of(facts), numbers});
}

}  // namespace

std::string front(const RunFacts& facts) {
  if (facts.answer().front.empty()) return "";
  std::vector<std::string> all;
  for (std::size_t i = 0; i < facts.session().others.size(); ++i) {
    all.push_back(against(facts, i, i == 0 ? front_table(facts) : ""));
  }
  return figures(all);
}

}  // namespace krigtune::page
