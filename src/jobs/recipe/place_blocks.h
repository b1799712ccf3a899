#pragma once
#include <string>
#include <vector>

#include "core/block.h"
#include "jobs/recipe/recipe.h"

namespace krigtune::jobs {

/// Accepts a list of texts, none of which is empty.
Codec<std::vector<std::string>> words_said();
/// Accepts one such text or a list of them.
Codec<std::vector<std::string>> text_or_texts();

/// The keys of a pattern of commands.
Block<CommandPattern> pattern_block();
/// The keys of a place.
Block<Place> place_block();

}  // namespace krigtune::jobs
