#include "jobs/recipe/shipped_recipes.h"

#include <algorithm>

namespace krigtune::jobs {

const ShippedText* find_shipped_text(std::string_view name) {
  const auto& texts = shipped_texts();
  const auto found =
      std::find_if(texts.begin(), texts.end(), [&](const ShippedText& text) { return text.name == name; });
  return found == texts.end() ? nullptr : &*found;
}

std::vector<std::string> shipped_names() {
  std::vector<std::string> names;
  for (const ShippedText& text : shipped_texts()) names.push_back(text.name);
  return names;
}

}  // namespace krigtune::jobs
