#pragma once
#include <boost/program_options.hpp>

#include "programs/krigtune/command.h"

namespace krigtune::cli {

void declare_measuring(boost::program_options::options_description& options);

/// Throws UserError if options of the measurement are given without --measure.
void check_measuring(const Arguments& arguments);

/// Executes doctor --measure and returns the exit code.
int measure_rates_of_machine(const Context& context);

}  // namespace krigtune::cli
