// krigtune recipes: the list, one recipe, and a recipe of the user's own.
#include <gtest/gtest.h>

#include "cli/cli_fixtures.h"
#include "core/json.h"

namespace krigtune::recipes_test {
namespace {

TEST(Recipes, AreListedWithALineEach) {
  const Said said = run_krigtune({"recipes"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(lines_in(said.out), 23U) << said.out;
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
  EXPECT_EQ(parse_json(run_krigtune({"recipes", "--json"}).out, "stdout").at("recipes").size(), 23U);
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

}  // namespace
}  // namespace krigtune::recipes_test
