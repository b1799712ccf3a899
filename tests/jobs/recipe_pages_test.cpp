// docs/jobs/NAME.md is the output of `krigtune recipes NAME`, and docs/jobs/README.md compares the recipes with what
// their frameworks answered (golden/jobs/frameworks, which experiments/recipe_check/record.py writes).
// `test_jobs_recipe_pages --write-reference docs/jobs` writes all of them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "core/files.h"
#include "jobs/recipe/name_check.h"
#include "jobs/recipe/recipe_page.h"

namespace krigtune::jobs {
namespace {

const std::filesystem::path kPages = std::filesystem::path(KRIGTUNE_ROOT) / "docs/jobs";

const std::filesystem::path kFrameworks = std::filesystem::path(KRIGTUNE_TEST_DIR) / "golden/jobs/frameworks";

constexpr const char* kOverview = R"(# Recipes and their frameworks

A recipe says where a kind of training job gets its values; each has a page here. Most were written from the sources of
their frameworks. This table says what of it met the framework itself: its flags and keys, compared by
`krigtune recipes NAME --check PYTHON` with those that the installed framework has, and jobs that were run. No recipe
was run on GPUs.

`names`: flags and keys of the framework. `in the recipe`: it reads or changes them, knows that they change nothing, or
says that they are not modelled. `by pattern`: only a pattern of the recipe, as `log_*`, says that they change nothing.
`new`: the recipe does not know them; a command that has one gets a remark. `gone`: names of the recipe that the
framework does not have, beside those that it is known to have had in other versions.

| recipe | written for | compared with | names | in the recipe | by pattern | new | gone | what was run |
|---|---|---|---|---|---|---|---|---|
)";

constexpr const char* kOverviewEnd = R"(
A recipe without a comparison belongs to a framework that is no package (scripts of a repository), or whose arguments
could not be imported here: nanotron 0.4 does not import, Megatron-SWIFT needs Transformer Engine, llm-foundry an older
torch. [experiments/recipe_check](../../experiments/recipe_check/README.md) makes the environments, compares again and
records the answers.
)";

std::string packages_text(const FrameworkNames& framework) {
  std::string text;
  for (const auto& [name, version] : framework.packages) text += (text.empty() ? "" : ", ") + name + " " + version;
  return text;
}

std::string row_of(const Recipe& recipe) {
  const std::string ran = recipe.installed.ran.empty() ? "nothing" : recipe.installed.ran;
  const std::string begin = "| [" + recipe.name + "](" + recipe.name + ".md) | " + recipe.versions + " | ";
  const std::filesystem::path file = kFrameworks / (recipe.name + ".json");
  if (!std::filesystem::exists(file)) return begin + "nothing | | | | | | " + ran + " |\n";
  const FrameworkNames framework = framework_names_from(load_json(file), file.filename().string());
  const NameCheck check = check_names(recipe, framework);
  std::string row = begin + packages_text(framework);
  for (const std::size_t count :
       {framework.names.size(), check.sorted, check.by_pattern.size(), check.unsorted.size(), check.gone.size()}) {
    row += " | " + std::to_string(count);
  }
  return row + " | " + ran + " |\n";
}

std::string overview() {
  std::string text = kOverview;
  for (const Recipe& recipe : shipped_recipes()) text += row_of(recipe);
  return text + kOverviewEnd;
}

TEST(RecipePages, CompareTheRecipesWithWhatTheirFrameworksAnswered) {
  EXPECT_EQ(read_text(kPages / "README.md"), overview());
}

// The version in the recipe is that of the recorded answer.
TEST(RecipePages, AreComparedWithTheVersionsThatWereRecorded) {
  for (const Recipe& recipe : shipped_recipes()) {
    const std::filesystem::path file = kFrameworks / (recipe.name + ".json");
    ASSERT_EQ(std::filesystem::exists(file), !recipe.installed.sources.empty()) << recipe.name;
    if (recipe.installed.sources.empty()) continue;
    const FrameworkNames framework = framework_names_from(load_json(file), file.filename().string());
    EXPECT_EQ(framework.packages, recipe.installed.packages) << recipe.name;
    EXPECT_TRUE(framework.troubles.empty()) << recipe.name;
  }
}

// What a recipe reads or writes exists.
TEST(RecipePages, NameNothingThatIsGone) {
  for (const auto& entry : std::filesystem::directory_iterator(kFrameworks)) {
    const Recipe recipe = find_recipe(entry.path().stem().string());
    const FrameworkNames framework = framework_names_from(load_json(entry.path()), entry.path().string());
    for (const GoneName& gone : check_names(recipe, framework).gone)
      ADD_FAILURE() << recipe.name << ": " << gone.written;
  }
}

TEST(RecipePages, AreWhatTheProgramPrints) {
  std::set<std::string> names;
  for (const Recipe& recipe : shipped_recipes()) {
    EXPECT_EQ(read_text(kPages / (recipe.name + ".md")), recipe_page(recipe)) << recipe.name;
    names.insert(recipe.name + ".md");
  }
  names.insert("README.md");
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
    std::ofstream(std::filesystem::path(argv[2]) / "README.md") << krigtune::jobs::overview();
    return 0;
  }
  return RUN_ALL_TESTS();
}
