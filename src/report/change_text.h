#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "search/model/best.h"
#include "session/session.h"

namespace krigtune::report {

/// Returns "12 % faster (4.1 % to 21 %)", "1.8 times faster (1.6 to 2.0)" or "no clear effect (-2.0 % to 3.1 %)", with
/// the 95 % interval in brackets; "better" and "worse" if the objective is not a speed.
std::string gain_sentence(const session::Objective& objective, const search::Gain& gain);
/// Returns the gain of a single change, or why it is unknown.
std::string change_sentence(const session::Objective& objective, const search::Change& change);

/// Returns "zero_stage 2 -> 3: 12 % faster (4.1 % to 21 %)", a line for each change; for several changes also "all
/// together: ...".
std::vector<std::string> change_lines(const session::Objective& objective, const search::Changes& changes);
/// The same for programs: an object, or null if nothing changed.
nlohmann::ordered_json changes_json(const search::Changes& changes);

/// Returns "this gain is not certain: its 95 % interval, 0.74 to 3.1 times, includes 1; krigtune tune --repeat 5
/// measures both again" if the model cannot tell the recommended configuration from its reference; otherwise "".
std::string doubt_about_gain(const search::Recommendation& best);
/// Returns "1.25x trial 0, 95 % interval 1.19x to 1.31x": the gain by all trials together, or "".
std::string expected_gain_text(const search::Recommendation& best);

}  // namespace krigtune::report
