#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

// The files of src/jobs/recipes, which the build compiles into a source (src/jobs/recipes/shipped.cpp.in).
namespace krigtune::jobs {

struct ShippedText {
  std::string name;    ///< name of the recipe and of its file, without .json
  std::string source;  ///< for messages
  std::string_view text;
};

/// In alphabetical order.
const std::vector<ShippedText>& shipped_texts();
const ShippedText* find_shipped_text(std::string_view name);  ///< nullptr if there is none
std::vector<std::string> shipped_names();

/// Completes a recipe: takes from the shipped recipe `like` what `json` does not state, adds the caveats of
/// `caveats_of`, and leaves out those of them that `modelled` names. Throws UserError with the JSON pointer.
Json completed_recipe(const Json& json, const std::string& source);

}  // namespace krigtune::jobs
