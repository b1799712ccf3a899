#pragma once
#include <boost/program_options.hpp>

#include "programs/krigtune/command.h"

namespace krigtune::cli {

/// Declares the options of a plan of several clusters.
void declare_clusters(boost::program_options::options_description& options);

/// Throws UserError for an option that needs --clusters, or that does not go with it.
void check_clusters_options(const Arguments& arguments);

/// `krigtune plan SESSION --clusters FILE`: the session's job on every cluster of the file. Returns the exit code:
/// kNoResult if nothing fits on any of them, or if none meets the deadline. Throws UserError.
int plan_clusters(const Context& context);

}  // namespace krigtune::cli
