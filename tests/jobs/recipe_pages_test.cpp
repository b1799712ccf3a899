// docs/jobs/NAME.md is the output of `krigtune recipes NAME`. `test_jobs_recipe_pages --write-reference docs/jobs`
// writes it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "core/files.h"
#include "jobs/recipe/recipe_page.h"

namespace krigtune::jobs {
namespace {

const std::filesystem::path kPages = std::filesystem::path(KRIGTUNE_ROOT) / "docs/jobs";

TEST(RecipePages, AreWhatTheProgramPrints) {
  std::set<std::string> names;
  for (const Recipe& recipe : shipped_recipes()) {
    EXPECT_EQ(read_text(kPages / (recipe.name + ".md")), recipe_page(recipe)) << recipe.name;
    names.insert(recipe.name + ".md");
  }
  for (const auto& entry : std::filesystem::directory_iterator(kPages)) {
    EXPECT_TRUE(names.contains(entry.path().filename().string())) << entry.path() << " is of no recipe";
  }
}

TEST(RecipePages, NameEachParameterMeasurementAndNote) {
  for (const Recipe& recipe : shipped_recipes()) {
    const std::string page = recipe_page(recipe);
    for (const RecipeValue& value : recipe.parameters) {
      EXPECT_NE(page.find("| `" + value.name + "` |"), std::string::npos) << recipe.name << ": " << value.name;
    }
    for (const auto& [name, metric] : recipe.measure.items()) {
      EXPECT_NE(page.find("| `" + name + "` |"), std::string::npos) << recipe.name << ": " << name;
    }
    for (const std::string& note : recipe.notes) EXPECT_NE(page.find(note), std::string::npos) << note;
  }
}

}  // namespace
}  // namespace krigtune::jobs

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 3 && std::string(argv[1]) == "--write-reference") {
    for (const auto& recipe : krigtune::jobs::shipped_recipes()) {
      std::ofstream(std::filesystem::path(argv[2]) / (recipe.name + ".md")) << krigtune::jobs::recipe_page(recipe);
    }
    return 0;
  }
  return RUN_ALL_TESTS();
}
