#include "python_json.h"

namespace krigtune {
namespace {

// The text with null for the words outside of strings.
std::string without_odd_numbers(std::string_view text) {
  std::string result;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    std::size_t word = 0;
    for (const std::string_view odd : {"NaN", "Infinity", "-Infinity"}) {
      if (!in_string && rest.substr(0, odd.size()) == odd) word = odd.size();
    }
    if (word > 0) {
      result += "null";
      i += word;
      continue;
    }
    if (rest.front() == '"') in_string = !in_string;
    const std::size_t taken = in_string && rest.front() == '\\' ? 2 : 1;
    result += rest.substr(0, taken);
    i += taken;
  }
  return result;
}

}  // namespace

Json parse_python_json(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_discarded()) return json;
  return Json::parse(without_odd_numbers(text), nullptr, false);
}

}  // namespace krigtune
