#pragma once
#include <string>

#include "command.h"

namespace krigtune {

std::string general_help();
std::string help_of(const Command& command);
std::string version_text();

}  // namespace krigtune
