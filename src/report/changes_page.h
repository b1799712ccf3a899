#pragma once
#include <string>
#include <vector>

#include "search/model/best.h"
#include "session/session.h"

namespace krigtune::report {

/// A key of a file, a flag or a variable that the best configuration changes; in Markdown.
struct ChangedPlace {
  std::string place;   ///< "`--mbs`"
  std::string before;  ///< empty if it was absent
  std::string after;
  std::string gain;  ///< the gain of this change alone, if known
};

/// A page that lists the differences from the user's present settings, and what each change is worth.
struct ChangesPage {
  std::string title;                  ///< "What is changed in ds_config.json"
  std::vector<std::string> warnings;  ///< shown first
  std::string places;                 ///< heading of the first column: "key or flag"
  std::vector<ChangedPlace> changes;
  std::vector<std::string> notes;  ///< shown after the table
};

/// Returns the page in Markdown. The gains are those of `best`.
std::string changes_page(const ChangesPage& page, const session::Objective& objective,
                         const search::Recommendation& best);

/// Returns the gain of changing only that parameter; if it is not among the changes, says that trial 0 already had this
/// value.
std::string gain_of_parameter(const session::Objective& objective, const search::Recommendation& best,
                              const std::string& parameter);

}  // namespace krigtune::report
