#pragma once
#include <boost/program_options.hpp>

#include "programs/krigtune/command.h"

namespace krigtune::cli {

void declare_measuring(boost::program_options::options_description& options);

/// Throws UserError for options of the measurement without --measure.
void check_measuring(const Arguments& arguments);

/// doctor --measure. Returns the exit code.
int measure_rates_of_machine(const Context& context);

}  // namespace krigtune::cli
