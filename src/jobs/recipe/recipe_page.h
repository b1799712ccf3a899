#pragma once
#include <string>

#include "jobs/recipe/recipe.h"

namespace krigtune::jobs {

/// A recipe for people, in Markdown: what `krigtune recipes NAME` prints, and docs/jobs/NAME.md.
std::string recipe_page(const Recipe& recipe);

}  // namespace krigtune::jobs
