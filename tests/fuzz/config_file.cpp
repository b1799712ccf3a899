#include <algorithm>
#include <filesystem>

#include "fuzz/fuzz.h"
#include "jobs/recipe/config_values.h"
#include "runner/in_place_edit.h"

// The first line is the name of a job's file and the key of a value in it; the rest is the file.
KRIGTUNE_FUZZ(config_file) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::size_t space = std::min(text.find(' '), end);
  const std::string document = text.substr(std::min(end + 1, text.size()));
  const std::string key = text.substr(std::min(space + 1, end), end - std::min(space + 1, end));
  const std::filesystem::path file(text.substr(0, space));
  const auto format = krigtune::runner::file_format_of(file);
  if (!format) return;
  static_cast<void>(krigtune::jobs::config_values_of(document, file.extension().string(), file.string()));
  static_cast<void>(krigtune::runner::with_value(*format, document, key, {"4"}, krigtune::runner::IfMissing::kAdd));
}
