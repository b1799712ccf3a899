#include "report/changes_page.h"

#include <fmt/format.h>

#include "core/text.h"
#include "report/change_text.h"

namespace krigtune::report {

std::string changes_page(const ChangesPage& page, const session::Objective& objective,
                         const search::Recommendation& best) {
  std::string text = fmt::format("# {}\n\n", page.title);
  for (const std::string& warning : page.warnings) text += fmt::format("**Warning:** {}.\n\n", warning);
  text += fmt::format("The best is trial {}, {:.2f} times trial {} as measured.", best.trial, best.gain,
                      best.reference_trial);
  if (best.changes.together) {
    text += fmt::format(" All changes together, by the model: {}.", gain_sentence(objective, *best.changes.together));
  }
  const std::string notes = page.notes.empty() ? "" : fmt::format("\n{}\n", join(page.notes, "\n\n"));
  if (page.changes.empty()) return text + "\n\nNothing: what you have is the best that was found.\n" + notes;
  text += fmt::format("\n\n| {} | before | after | gain |\n|---|---|---|---|\n", page.places);
  for (const ChangedPlace& change : page.changes) {
    text += fmt::format("| {} | {} | {} | {} |\n", change.place, change.before, change.after, change.gain);
  }
  text +=
      "\nA gain is the speedup lost if this one change is reverted, by the model of all trials, with its "
      "95 % interval.\nChanges work on each other: single gains need not multiply to the whole.\n";
  return text + notes;
}

std::string gain_of_parameter(const session::Objective& objective, const search::Recommendation& best,
                              const std::string& parameter) {
  for (const search::Change& change : best.changes.each) {
    if (change.parameter == parameter) return change_sentence(objective, change);
  }
  return "as trial 0 had it";
}

}  // namespace krigtune::report
