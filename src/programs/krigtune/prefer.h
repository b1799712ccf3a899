#pragma once
#include <boost/program_options/options_description.hpp>
#include <optional>

#include "programs/krigtune/session_state.h"

namespace krigtune::cli {

/// --prefer "METRIC >= NUMBER [best]": the user's choice among the front of a session with several objectives.
inline constexpr const char* kPrefer = "prefer";
void declare_prefer(boost::program_options::options_description& options);

/// Returns the index in the front of what --prefer chooses; without the option the first, which is the best by the
/// first objective. Empty if there is no front. Throws UserError if the text is not a preference or no member is within
/// it.
std::optional<std::size_t> preferred_member(const Context& context, const report::RunView& run);

/// Returns the trial that --prefer chooses, which must be given. Throws UserError if `has_trial`: --trial is given too.
std::int64_t preferred_trial(const Context& context, const LoadedRun& loaded, bool has_trial);

}  // namespace krigtune::cli
