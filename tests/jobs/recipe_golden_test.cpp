// Compares what recipes make of typical commands with tests/golden/jobs/commands. `test_jobs_recipe_golden
// --write-expectations` writes the present results; read the difference before you commit it.
#include <gtest/gtest.h>

#include <fstream>

#include "jobs/recipe_cases.h"

namespace krigtune::jobs {
namespace {

Json without_measurements(Json block) {
  for (const char* key : {"kind", "measure", "checks", "oom_patterns", "warmup_steps", "measure_steps", "recipe"}) {
    block.erase(key);
  }
  return block;
}

Json pairs_as_json(const std::vector<std::pair<std::string, std::string>>& pairs) {
  Json json = Json::object();
  for (const auto& [name, value] : pairs) json[name] = value;
  return json;
}

Json optimal_as_json(const OptimalCommand& optimal) {
  Json json = {{"argv", optimal.argv}};
  if (!optimal.env.empty()) json["env"] = pairs_as_json(optimal.env);
  for (const auto& [file, keys] : optimal.set) json["set"][file] = pairs_as_json(keys);
  return json;
}

// Removes the name of the case's directory.
Json without_directory(const Json& json, const RecipeCase& one) {
  std::string text = json.dump();
  const std::string directory = one.directory().string();
  for (std::size_t at = text.find(directory); at != std::string::npos; at = text.find(directory)) {
    text.replace(at, directory.size(), "DIR");
  }
  return Json::parse(text);
}

Json made_of(const Recipe& recipe, const RecipeCase& one) {
  const RecipeJob job = read_job(recipe, one.inputs());
  const OwnValues own = own_values(recipe, job);
  const std::vector<std::string> varied = varied_by_default(recipe, job);
  const RunnerBlock runner = runner_block(recipe, job, varied);
  Json made = {{"own", space::to_json(own.configuration)}};
  if (own.train_batch_size) made["train_batch_size"] = *own.train_batch_size;
  std::string why;
  const Json workload = model_facts(recipe, job, &why);
  made["workload"] = workload.is_null() ? Json(why) : workload;
  made["space"] = space_block(recipe, job, varied);
  made["fixed"] = fixed_block(recipe, job, varied);
  made["constraints"] = constraints_block(recipe, job, varied);
  made["runner"] = without_measurements(runner.block);
  made["remarks"] = own.remarks;
  for (const std::string& remark : runner.remarks) made["remarks"].push_back(remark);
  const auto best = space::configuration_from_json(one.json().at("best"), "best", "");
  made["optimal"] = optimal_as_json(optimal_command(recipe, job, best));
  return without_directory(made, one);
}

TEST(RecipesGolden, AreWhatTheFilesSay) {
  for (const Recipe& recipe : shipped_recipes()) {
    const Json cases = cases_of(recipe.name);
    EXPECT_GE(cases.size(), 2U) << recipe.name;
    for (const Json& one : cases) {
      const Json made = made_of(recipe, RecipeCase(one));
      EXPECT_EQ(made.dump(1), one.value("expected", Json()).dump(1)) << recipe.name << ": " << one.at("what");
    }
  }
}

TEST(RecipesGolden, CommandsAreRecognised) {
  for (const Recipe& recipe : shipped_recipes()) {
    for (const Json& json : cases_of(recipe.name)) {
      const RecipeCase one(json);
      const std::filesystem::path before = std::filesystem::current_path();
      std::filesystem::current_path(one.directory());
      const Recipe* found = recognise(one.argv(), shipped_recipes());
      std::filesystem::current_path(before);
      ASSERT_NE(found, nullptr) << recipe.name << ": " << json.at("what");
      EXPECT_EQ(found->name, recipe.name) << json.at("what");
    }
  }
}

// Lists of words fill the lines; objects have one line for each key.
void write_words(std::ostream& out, const Json& words, const std::string& indent) {
  constexpr std::size_t kWidth = 118;
  std::string line = indent + "  ";
  out << "[\n";
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i].dump() + (i + 1 < words.size() ? "," : "");
    if (line.size() + word.size() > kWidth) {
      out << line << "\n";
      line = indent + "  ";
    }
    line += (line.size() > indent.size() + 2 ? " " : "") + word;
  }
  out << line << "\n" << indent << "]";
}

void write_value(std::ostream& out, const Json& json, const std::string& indent) {
  constexpr std::size_t kFlat = 110;
  if (!json.is_structured() || json.empty() || json.dump().size() + indent.size() < kFlat) {
    out << json.dump();
    return;
  }
  if (json.is_array() && json.front().is_string()) return write_words(out, json, indent);
  out << (json.is_array() ? "[" : "{");
  bool is_first = true;
  for (const auto& [key, value] : json.items()) {
    out << (is_first ? "\n" : ",\n") << indent << "  ";
    if (json.is_object()) out << Json(key).dump() << ": ";
    write_value(out, value, indent + "  ");
    is_first = false;
  }
  out << "\n" << indent << (json.is_array() ? "]" : "}");
}

void write_expectations() {
  for (const Recipe& recipe : shipped_recipes()) {
    Json cases = cases_of(recipe.name);
    for (Json& one : cases) one["expected"] = made_of(recipe, RecipeCase(one));
    std::ofstream out(cases_directory() / (recipe.name + ".json"));
    write_value(out, cases, "");
    out << "\n";
  }
}

}  // namespace
}  // namespace krigtune::jobs

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 2 && std::string(argv[1]) == "--write-expectations") {
    krigtune::jobs::write_expectations();
    return 0;
  }
  return RUN_ALL_TESTS();
}
