#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "search/model/best.h"
#include "session/session.h"

namespace krigtune::report {

/// "12 % faster (4.1 % to 21 %)", "1.8 times faster (1.6 to 2.0)", "no clear effect (-2.0 % to 3.1 %)": the 95 %
/// interval in brackets. "better" and "worse" where the objective is no speed.
std::string gain_sentence(const session::Objective& objective, const search::Gain& gain);
/// What is known of the change alone: its gain, or why there is none.
std::string change_sentence(const session::Objective& objective, const search::Change& change);

/// "zero_stage 2 -> 3: 12 % faster (4.1 % to 21 %)", a line for each change; then, of several, "all together: ...".
std::vector<std::string> change_lines(const session::Objective& objective, const search::Changes& changes);
/// The same for programs: an object, or null where nothing is changed.
nlohmann::ordered_json changes_json(const search::Changes& changes);

}  // namespace krigtune::report
