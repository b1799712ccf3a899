#pragma once
#include <string>
#include <vector>

#include "search/model/best.h"
#include "session/session.h"

namespace krigtune::report {

/// A key of a file, a flag or a variable that the best configuration changes; as Markdown.
struct ChangedPlace {
  std::string place;   ///< "`--mbs`"
  std::string before;  ///< empty: it was not there
  std::string after;
  std::string gain;  ///< what is known of this change alone
};

/// A page that says what is different in what the user has, and what each change is worth.
struct ChangesPage {
  std::string title;                  ///< "What is changed in ds_config.json"
  std::vector<std::string> warnings;  ///< before anything else
  std::string places;                 ///< heading of the first column: "key or flag"
  std::vector<ChangedPlace> changes;
  std::vector<std::string> notes;  ///< behind the table
};

/// Markdown. Gains are those of `best`.
std::string changes_page(const ChangesPage& page, const session::Objective& objective,
                         const search::Recommendation& best);

/// What is known of the change of that parameter alone; where it is none of the changes, that trial 0 had it too.
std::string gain_of_parameter(const session::Objective& objective, const search::Recommendation& best,
                              const std::string& parameter);

}  // namespace krigtune::report
