// krigtune recipes: the list, one recipe, and a recipe of the user's own.
#include <gtest/gtest.h>

#include "cli/cli_fixtures.h"
#include "core/json.h"

namespace krigtune::recipes_test {
namespace {

TEST(Recipes, AreListedWithALineEach) {
  const Said said = run_krigtune({"recipes"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(lines_in(said.out), 24U) << said.out;
  EXPECT_NE(said.out.find("megatron            Megatron-LM: pretrain_gpt.py and its like\n"), std::string::npos)
      << said.out;
}

TEST(Recipes, OneIsShownWhole) {
  const Said said = run_krigtune({"recipes", "megatron"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("`--micro-batch-size`"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("--exit-interval"), std::string::npos) << said.out;
}

TEST(Recipes, AsJsonCanBecomeOneOfTheUsersOwn) {
  const Said said = run_krigtune({"recipes", "nanotron", "--json"});
  const Json document = parse_json(said.out, "stdout");
  EXPECT_EQ(document.at("command"), "recipes");
  const TemporaryDirectory directory;
  Json mine = document.at("recipe");
  mine["name"] = "mine";
  const std::string file = directory.write("mine.json", mine.dump()).string();
  const Said again = run_krigtune({"recipes", file});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out.rfind("# mine\n", 0), 0U) << again.out;
  EXPECT_EQ(parse_json(run_krigtune({"recipes", "--json"}).out, "stdout").at("recipes").size(), 24U);
}

TEST(Recipes, MistakesAreOneLine) {
  const TemporaryDirectory directory;
  const std::string file = directory.write("mine.json", R"({"name": "mine", "paramters": {}})").string();
  const Said wrong_key = run_krigtune({"recipes", file});
  EXPECT_EQ(wrong_key.code, 2);
  EXPECT_NE(wrong_key.err.find("did you mean 'parameters'?"), std::string::npos) << wrong_key.err;
  EXPECT_EQ(lines_in(wrong_key.err), 1U) << wrong_key.err;
  const Said unknown = run_krigtune({"recipes", "megatrn"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("did you mean 'megatron'?"), std::string::npos) << unknown.err;
}

// The Python of these tests answers as the program that it is given tells it to.
std::string python_that_says(const TemporaryDirectory& directory, const std::string& answer) {
  return directory.write_program("python", "cat >\"$4\" <<'END'\n" + answer + "\nEND\n").string();
}

TEST(RecipesCheck, ComparesOneRecipeWithItsFramework) {
  const TemporaryDirectory directory;
  const std::string python = python_that_says(
      directory, R"({"packages": {"ai2-olmo": "9.9"}, "sources": [{"names": [["precision"], ["warp"]], "open": []}]})");
  const Said said = run_krigtune({"recipes", "olmo", "--check", python});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("Installed: ai2-olmo 9.9 (last compared with "), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("2 names of the framework: 1 in the recipe, 0 only by a pattern, 1 not; "), std::string::npos)
      << said.out;
  EXPECT_NE(said.out.find("\n  model.n_layers  (model/layers)\n"), std::string::npos) << said.out;
  const Said as_json = run_krigtune({"recipes", "olmo", "--check", python, "--json"});
  const Json check = parse_json(as_json.out, "stdout").at("checks").at(0);
  EXPECT_EQ(check.at("new").dump(), R"(["warp"])");
  EXPECT_EQ(check.at("framework").at("names").dump(), R"([["precision"],["warp"]])");
}

TEST(RecipesCheck, ComparesAllFrameworksOfAPython) {
  const TemporaryDirectory directory;
  // Only the request for OLMo is answered with a package.
  const std::string python = directory
                                 .write_program("python", R"(case "$3" in
*ai2-olmo*) echo '{"packages": {"ai2-olmo": "9.9"}, "sources": [{"names": [["precision"]]}]}' >"$4" ;;
*) echo '{"packages": {}, "sources": []}' >"$4" ;;
esac
)")
                                 .string();
  const Said said = run_krigtune({"recipes", "--check", python});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(lines_in(said.out), 3U) << said.out;
  EXPECT_NE(said.out.find("\nolmo    ai2-olmo  9.9 "), std::string::npos) << said.out;
}

TEST(RecipesCheck, MistakesAreOneLine) {
  const TemporaryDirectory directory;
  const std::string nothing = python_that_says(directory, R"({"packages": {}, "sources": []})");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"recipes", "torchtitan", "--check", nothing}, "does not have torchtitan"},
      {{"recipes", "--check", nothing}, "has no framework of any recipe"},
      {{"recipes", "nanogpt", "--check", nothing}, "does not say how its framework is asked"},
      {{"recipes", "--check", "/nowhere/python"}, "there is no program '/nowhere/python'"}};
  for (const auto& [words, expected] : cases) {
    const Said said = run_krigtune(words);
    EXPECT_EQ(said.code, 2) << expected;
    EXPECT_EQ(said.out, "");
    EXPECT_EQ(lines_in(said.err), 1U) << said.err;
    EXPECT_NE(said.err.find(expected), std::string::npos) << said.err;
  }
}

}  // namespace
}  // namespace krigtune::recipes_test
