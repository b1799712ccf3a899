#pragma once
#include <boost/program_options/options_description.hpp>

#include "programs/krigtune/session_state.h"

namespace krigtune::cli {

/// --prefer "METRIC >= NUMBER [best]": the user's choice among the front of a session with several objectives.
inline constexpr const char* kPrefer = "prefer";
void declare_prefer(boost::program_options::options_description& options);

/// Replaces the preference of the session by that of --prefer, if it is given. Throws UserError if the text is not a
/// preference.
void apply_prefer(const Context& context, session::Session& session);

/// Throws UserError if --prefer is given and no member of the front is within it.
void require_preferred(const Context& context, const session::Session& session,
                       const std::vector<search::FrontMember>& front);

}  // namespace krigtune::cli
