// Regular expressions of the shipped recipes on recorded lines: tests/golden/jobs/logs/<recipe>.log. A line "#= METRIC
// TEXT" says what the line above must give; "-" means no match, "*" any match.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

#include "core/files.h"
#include "core/text.h"
#include "jobs/recipe_cases.h"

namespace krigtune::jobs::recipe_log_test {
namespace {

// Returns each measurement that is read from lines, and each check as "check:WHAT".
std::map<std::string, std::string> regexes_of(const Recipe& recipe) {
  std::map<std::string, std::string> regexes;
  for (const auto& [name, metric] : recipe.measure.items()) {
    for (const char* key : {"regex", "wall"}) {
      if (metric.contains(key)) regexes[name] = metric.at(key);
    }
  }
  for (const Json& check : recipe.checks) regexes["check:" + check.at("what").get<std::string>()] = check.at("regex");
  return regexes;
}

std::string captured(const std::string& regex, const std::string& line) {
  std::smatch match;
  if (!std::regex_search(line, match, std::regex(regex))) return "-";
  return match.size() > 1 ? match[1].str() : "*";
}

TEST(RecipeLogs, EachRegexMatchesARecordedLine) {
  for (const Recipe& recipe : shipped_recipes()) {
    const auto regexes = regexes_of(recipe);
    if (regexes.empty()) continue;
    const std::filesystem::path file = cases_directory().parent_path() / "logs" / (recipe.name + ".log");
    std::istringstream lines(read_text(file));
    std::set<std::string> matched;
    std::string recorded;
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("#= ", 0) != 0) {
        if (line.rfind("# ", 0) != 0) recorded = line;
        continue;
      }
      const std::size_t blank = line.rfind(' ');
      const std::string name = line.substr(3, blank - 3);
      ASSERT_TRUE(regexes.contains(name)) << file << ": " << line;
      EXPECT_EQ(captured(regexes.at(name), recorded), line.substr(blank + 1)) << file << ": " << line;
      if (line.substr(blank + 1) != "-") matched.insert(name);
    }
    for (const auto& [name, regex] : regexes) EXPECT_TRUE(matched.contains(name)) << recipe.name << ": " << name;
  }
}

TEST(RecipeLogs, MeasurementsHaveOneGroup) {
  int count = 0;
  for (const Recipe& recipe : shipped_recipes()) {
    for (const auto& [name, metric] : recipe.measure.items()) {
      if (!metric.contains("regex")) continue;
      EXPECT_EQ(std::regex(metric.at("regex").get<std::string>()).mark_count(), 1U) << recipe.name << ": " << name;
      ++count;
    }
  }
  EXPECT_GE(count, 20);
}

}  // namespace
}  // namespace krigtune::jobs::recipe_log_test
