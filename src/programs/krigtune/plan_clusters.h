#pragma once
#include <boost/program_options.hpp>

#include "core/json.h"
#include "programs/krigtune/command.h"

namespace krigtune::cli {

/// Declares the options of a plan of several clusters.
void declare_clusters(boost::program_options::options_description& options);

/// Throws UserError for an option that does not go with --clusters.
void check_clusters_options(const Arguments& arguments);

/// Returns whether a plan is about several clusters: those of --clusters or, without it, those that the session lists.
/// Throws UserError for a deadline without clusters.
bool plans_clusters(const Arguments& arguments, const Json& session);

/// `krigtune plan SESSION --clusters FILE`: the session's job on every cluster. Returns the exit code: kNoResult if
/// nothing fits on any of them, or if none meets the deadline. Throws UserError.
int plan_clusters(const Context& context, const Json& session);

}  // namespace krigtune::cli
