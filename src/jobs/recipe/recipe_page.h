#pragma once
#include <string>

#include "jobs/recipe/recipe.h"

namespace krigtune::jobs {

/// Formats a recipe in Markdown: the output of `krigtune recipes NAME`, and docs/jobs/NAME.md.
std::string recipe_page(const Recipe& recipe);

}  // namespace krigtune::jobs
