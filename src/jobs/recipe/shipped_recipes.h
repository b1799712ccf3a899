#pragma once
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace krigtune::jobs
