// A rewritten command has the meaning for which it was rewritten: reading it again gives the same configuration.
#include <gtest/gtest.h>

#include <fstream>

#include "core/text.h"
#include "jobs/recipe_cases.h"
#include "krigtune/rng.h"
#include "space/parallel_layout.h"
#include "space/well_known.h"

namespace krigtune::jobs::recipe_round_trip_test {
namespace {

using space::Configuration;

// Returns 4 of "dp / (q + dp * (q == 0))" with 8 of 32 data-parallel ranks, or 8 of "q + dp * (q == 0)".
std::string evaluated_group(const std::string& placeholder, const Configuration& values) {
  const std::int64_t dp = values.integer("dp", 1);
  const bool is_number_of_groups = placeholder.starts_with("dp / (");
  const std::size_t begin = is_number_of_groups ? 6 : 0;
  const std::int64_t stated = values.integer(placeholder.substr(begin, placeholder.find(' ', begin) - begin), -1);
  const std::int64_t size = stated == 0 ? dp : stated;
  return std::to_string(is_number_of_groups ? dp / size : size);
}

// Evaluates a placeholder: a name, a product of names, a name divided by a number and rounded, comparisons joined by
// ||, or the number or the size of groups.
std::string evaluated(const std::string& placeholder, const Configuration& values) {
  const auto text_of = [&](const std::string& name) { return space::to_string(*values.find(name)); };
  if (placeholder.ends_with("== 0)") || placeholder.ends_with("== 0))")) return evaluated_group(placeholder, values);
  if (const std::size_t star = placeholder.find('*'); star != std::string::npos) {
    return std::to_string(std::stoll(text_of(placeholder.substr(0, star))) *
                          std::stoll(text_of(placeholder.substr(star + 1))));
  }
  const std::size_t slash = placeholder.find('/');
  if (slash != std::string::npos) {
    const double quotient =
        space::as_number(*values.find(placeholder.substr(0, slash))) / std::stod(placeholder.substr(slash + 1));
    return std::to_string(std::llround(quotient));
  }
  if (placeholder.find("==") == std::string::npos) return text_of(placeholder);
  std::string rest = placeholder;
  while (!rest.empty()) {
    const std::size_t bar = std::min(rest.find(" || "), rest.size());
    const std::string one = rest.substr(0, bar);
    const std::size_t equals = one.find(" == ");
    std::string wanted = one.substr(equals + 4);
    std::erase(wanted, '\'');
    if (text_of(one.substr(0, equals)) == wanted) return "true";
    rest = rest.substr(std::min(bar + 4, rest.size()));
  }
  return "false";
}

// Returns the words of a trial. Fills in placeholders as the runner does, but slowly.
std::string filled_in(const std::string& word, const Configuration& values, const std::string& dir) {
  std::string filled;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const bool is_brace = word[i] == '{' || word[i] == '}';
    if (is_brace && i + 1 < word.size() && word[i + 1] == word[i]) {
      filled += word[i++];
    } else if (word[i] == '{') {
      const std::size_t close = word.find('}', i);
      const std::string name = word.substr(i + 1, close - i - 1);
      filled += name == "dir" ? dir : evaluated(name, values);
      i = close;
    } else {
      filled += word[i];
    }
  }
  return filled;
}

void set_key(ConfigValues& values, std::string key, const std::string& text) {
  if (key.front() == '+') key = key.substr(1);
  values[key] = space::value_from_text(text);
}

// JSON is also YAML; TOML accepts dotted keys.
void write_values(const ConfigValues& values, const std::filesystem::path& file) {
  std::ofstream out(file);
  Json json = Json::object();
  for (const auto& [key, value] : values) {
    std::string pointer = "/" + key;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    if (file.extension() == ".toml") {
      out << key << " = " << space::to_json(value).dump() << "\n";
    } else {
      json[Json::json_pointer(pointer)] = space::to_json(value);
    }
  }
  if (file.extension() != ".toml") out << json.dump();
}

// Elements of lists become keys of an object, which no recipe reads.
std::vector<std::string> words_of_trial(const RecipeJob& job, const Json& block, Configuration values,
                                        const TemporaryDirectory& dir) {
  std::vector<std::string> words;
  for (const Json& json : block.at("argv")) {
    if (json == "{flags}") {
      for (const auto& [name, lists] : block.at("flags").items()) {
        for (const Json& word : lists.at(space::to_string(*values.find(name)))) {
          words.push_back(filled_in(word.get<std::string>(), values, dir.path().string()));
        }
      }
    } else {
      words.push_back(filled_in(json.get<std::string>(), values, dir.path().string()));
    }
  }
  if (!block.contains("set")) return words;
  for (const auto& [path, keys] : block.at("set").items()) {
    ConfigValues file = read_config_values(job.inputs.directory / path);
    for (const auto& [key, text] : keys.items()) {
      set_key(file, key, filled_in(text.get<std::string>(), values, dir.path().string()));
    }
    write_values(file, dir / std::filesystem::path(path).filename().string());
  }
  return words;
}

Configuration with_facts(const OwnValues& own, const RecipeJob& job) {
  Configuration values = own.configuration;
  if (job.ranks) {
    const auto dp = space::data_parallel_ranks(*job.ranks, values);
    if (dp) values.set("dp", *dp);
    values.set("ranks", *job.ranks);
  }
  return values;
}

TEST(RecipeRoundTrip, TheCommandOfATrialWithTheCommandsOwnValuesMeansTheSame) {
  int count = 0;
  for (const Recipe& recipe : shipped_recipes()) {
    for (const Json& json : cases_of(recipe.name)) {
      const RecipeCase one(json);
      const RecipeJob job = read_job(recipe, one.inputs());
      const OwnValues own = own_values(recipe, job);
      const TemporaryDirectory dir;
      const Json block = runner_block(recipe, job, varied_by_default(recipe, job)).block;
      const auto words = words_of_trial(job, block, with_facts(own, job), dir);
      const OwnValues again = own_values(recipe, read_job(recipe, one.inputs(words)));
      EXPECT_EQ(space::to_json(again.configuration).dump(), space::to_json(own.configuration).dump())
          << recipe.name << ": " << json.at("what") << "\n"
          << shell_line(words);
      EXPECT_EQ(again.train_batch_size, own.train_batch_size) << recipe.name << ": " << json.at("what");
      ++count;
    }
  }
  EXPECT_GE(count, 24);
}

// Draws a value from the list of each parameter, and derives accumulation if the command has a batch size.
std::optional<Configuration> drawn(const Json& space, const RecipeJob& job, const OwnValues& own, Rng& rng) {
  Configuration configuration;
  for (const auto& [name, range] : space.items()) {
    const Json& values = range.is_array() ? range : range.at("values");
    configuration.set(name, space::value_from_json(values[rng.below(values.size())], name));
  }
  if (!own.configuration.has(space::kAccumulation) || !job.ranks) return configuration;
  Configuration split = own.configuration;
  for (const auto& [name, value] : configuration) split.set(name, value);
  const auto dp = space::data_parallel_ranks(*job.ranks, split);
  if (!dp) return std::nullopt;
  configuration.set(space::kAccumulation, std::int64_t{1} << rng.below(4));
  return configuration;
}

std::vector<std::string> with_files_written(const RecipeJob& job, const OptimalCommand& optimal,
                                            const TemporaryDirectory& dir) {
  std::vector<std::string> words = optimal.argv;
  for (std::string& word : words) {
    const std::size_t at = word.find("{dir}");
    if (at != std::string::npos) word.replace(at, 5, dir.path().string());
  }
  for (const auto& [path, keys] : optimal.set) {
    ConfigValues file = read_config_values(job.inputs.directory / path);
    for (const auto& [key, text] : keys) set_key(file, key, text);
    write_values(file, dir / std::filesystem::path(path).filename().string());
  }
  return words;
}

// Sessions only try groups of some of the data-parallel ranks that divide them.
bool has_equal_groups(Configuration values, const RecipeJob& job, const Configuration& wanted) {
  for (const auto& [name, value] : wanted) values.set(name, value);
  const std::int64_t size = values.integer(space::kHybridShard, 0);
  if (size == 0 || !job.ranks) return size == 0;
  const auto dp = space::data_parallel_ranks(*job.ranks, values);
  return dp && size < *dp && *dp % size == 0;
}

TEST(RecipeRoundTrip, TheCommandThatTrainsHasTheConfiguration) {
  constexpr std::uint64_t kSeed = 24;
  int count = 0;
  for (const Recipe& recipe : shipped_recipes()) {
    for (const Json& json : cases_of(recipe.name)) {
      const RecipeCase one(json);
      const RecipeJob job = read_job(recipe, one.inputs());
      const OwnValues own = own_values(recipe, job);
      const Json space = space_block(recipe, job, varied_by_default(recipe, job));
      Rng rng(kSeed, 0);
      for (int i = 0; i < 40 && !space.empty(); ++i) {
        const std::optional<Configuration> wanted = drawn(space, job, own, rng);
        if (!wanted || !has_equal_groups(own.configuration, job, *wanted)) continue;
        const TemporaryDirectory dir;
        const OptimalCommand optimal = optimal_command(recipe, job, *wanted);
        const auto words = with_files_written(job, optimal, dir);
        Configuration expected = own.configuration;
        for (const auto& [name, value] : *wanted) expected.set(name, value);
        const OwnValues again = own_values(recipe, read_job(recipe, one.inputs(words)));
        ASSERT_EQ(again.configuration, expected) << recipe.name << ": " << json.at("what") << ", seed " << kSeed << "\n"
                                                 << expected.text() << "\n"
                                                 << again.configuration.text() << "\n"
                                                 << shell_line(words);
        ++count;
      }
    }
  }
  EXPECT_GE(count, 500);
}

TEST(RecipeRoundTrip, TheCommandThatTrainsIsTheUsersWhereNothingChanges) {
  for (const Recipe& recipe : shipped_recipes()) {
    for (const Json& json : cases_of(recipe.name)) {
      const RecipeCase one(json);
      const RecipeJob job = read_job(recipe, one.inputs());
      EXPECT_EQ(optimal_words(recipe, job, own_values(recipe, job).configuration), one.argv())
          << recipe.name << ": " << json.at("what");
    }
  }
}

}  // namespace
}  // namespace krigtune::jobs::recipe_round_trip_test
