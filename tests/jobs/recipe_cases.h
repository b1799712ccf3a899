#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/json.h"
#include "jobs/recipe/rewriting.h"
#include "trial/temporary_directory.h"

// Commands that people type, and what recipes make of them: tests/golden/jobs/commands/<recipe>.json.
namespace krigtune::jobs {

/// One of the commands, in a directory of its own with the files that it names.
class RecipeCase {
 public:
  explicit RecipeCase(const Json& json) : json_(json) {
    const Json files = json.value("files", Json::object());
    for (const auto& [name, lines] : files.items()) {
      std::filesystem::create_directories((directory_ / name).parent_path());
      directory_.write(name, text_of_lines(lines));
    }
  }

  std::vector<std::string> argv() const { return json_.at("argv").get<std::vector<std::string>>(); }
  const std::filesystem::path& directory() const { return directory_.path(); }
  JobInputs inputs() const { return inputs(argv()); }
  JobInputs inputs(std::vector<std::string> words) const {
    JobInputs inputs{std::move(words), directory()};
    if (json_.contains("ranks")) inputs.ranks = json_.at("ranks").get<std::int64_t>();
    return inputs;
  }
  const Json& json() const { return json_; }

 private:
  static std::string text_of_lines(const Json& lines) {
    std::string text;
    for (const Json& line : lines) text += line.get<std::string>() + "\n";
    return text;
  }

  Json json_;
  TemporaryDirectory directory_;
};

inline std::filesystem::path cases_directory() {
  return std::filesystem::path(KRIGTUNE_TEST_DIR) / "golden/jobs/commands";
}
inline Json cases_of(const std::string& recipe) { return load_json(cases_directory() / (recipe + ".json")); }

}  // namespace krigtune::jobs
