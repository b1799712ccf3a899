// Compares what a space says without walking with a walk over every point of its lattice that evaluates every rule as
// it is written.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "space/random_spaces.h"
#include "user_error.h"

namespace krigtune::lattice_test {

// Returns the value of a name as the documentation defines it.
std::optional<space::Value> value_of(const space::Space& space, const space::Configuration& c,
                                     const std::string& name) {
  if (const space::Value* value = c.find(name)) return *value;
  const space::JobFacts& facts = space.facts();
  if (name == "ranks") return space::Value(facts.ranks);
  for (const auto& [fact, number] : facts.numbers) {
    if (fact == name) return space::Value(number);
  }
  if (name != "dp") return std::nullopt;
  const auto ways = [&](const char* by) { return c.has(by) ? space::as_number(*c.find(by)) : 1.0; };
  return space::Value(static_cast<double>(facts.ranks) / (ways("tensor_parallel") * ways("pipeline_parallel")));
}

// Returns the index of the first constraint that the configuration violates, or nothing.
std::optional<std::size_t> broken(const space::Space& space, const space::Configuration& c) {
  for (std::size_t i = 0; i < space.constraints().size(); ++i) {
    std::map<std::string, std::optional<space::Value>> values;
    for (const std::string& name : space.constraints()[i].names()) values[name] = value_of(space, c, name);
    const auto holds = space.constraints()[i].holds([&](std::string_view name) {
      const auto& value = values.at(std::string(name));
      return value ? &*value : nullptr;
    });
    if (holds == false) return i;
  }
  return std::nullopt;
}

struct Walked {
  std::map<std::string, space::Configuration> configurations;
  std::map<std::pair<space::Exclusion, std::string>, std::int64_t> exclusions;
};

Walked walked(const space::Space& space) {
  Walked result;
  for (const space::Configuration& point : lattice_of(space.parameters())) {
    space::Configuration completed = point;
    space::Exclusion reason = space.complete(completed);
    std::string constraint;
    if (const auto first = reason == space::Exclusion::kNone ? broken(space, completed) : std::nullopt) {
      reason = space::Exclusion::kConstraint;
      constraint = fmt::format("{}: {}", *first, space.constraints()[*first].text());
    }
    ++result.exclusions[{reason, constraint}];
    if (reason == space::Exclusion::kNone) result.configurations[completed.text()] = completed;
  }
  return result;
}

std::string described(const space::Space& space) {
  std::string text = fmt::format("ranks {} batch {} count {} known {}\n", space.facts().ranks,
                                 space.facts().train_batch_size.value_or(0), space.facts().parameter_count.value_or(0),
                                 space.facts().well_known);
  for (const space::Parameter& p : space.parameters()) text += p.name + ": " + space::to_json(p).dump() + "\n";
  for (const space::Expression& constraint : space.constraints()) text += constraint.text() + "\n";
  return text;
}

// Calls check(space, walked) for some hundred spaces.
void for_random_spaces(int count, const std::function<void(const space::Space&, const Walked&)>& check) {
  Rng rng(20, 0);
  int made = 0;
  while (made < count && !testing::Test::HasFailure()) {
    const std::optional<space::Space> space = random_space(rng);
    if (!space || space->lattice_count() > 2000) continue;
    ++made;
    SCOPED_TRACE(described(*space));
    check(*space, walked(*space));
  }
}

TEST(Lattice, IsCountedAsAWalkCountsIt) {
  int with_some = 0;
  for_random_spaces(2000, [&](const space::Space& space, const Walked& walked) {
    EXPECT_EQ(space.count(), static_cast<std::int64_t>(walked.configurations.size()));
    EXPECT_EQ(space.is_empty(), walked.configurations.empty());
    with_some += walked.configurations.size() > 1 ? 1 : 0;
  });
  EXPECT_GT(with_some, 1000) << "the spaces are too often empty to show anything";
}

TEST(Lattice, IsVisitedInItsOrderAndWholly) {
  for_random_spaces(1000, [](const space::Space& space, const Walked& walked) {
    std::set<std::string> visited;
    std::vector<int> last;
    space.for_each([&](const space::Configuration& c) {
      EXPECT_TRUE(walked.configurations.count(c.text()) == 1) << c.text();
      EXPECT_TRUE(visited.insert(c.text()).second) << "twice: " << c.text();
      std::vector<int> digits;
      for (const space::Parameter& p : space.parameters())
        digits.push_back(c.has(p.name) ? p.index_of(*c.find(p.name)) : 0);
      EXPECT_LT(last, digits) << c.text();
      last = digits;
      return true;
    });
    EXPECT_EQ(visited.size(), walked.configurations.size());
  });
}

TEST(Lattice, IsExcludedForTheReasonsThatAWalkFinds) {
  for_random_spaces(1000, [](const space::Space& space, const Walked& walked) {
    std::int64_t sum = 0;
    std::size_t number = 0;
    for (const space::ExclusionCount& excluded : space.exclusions()) {
      std::pair key(excluded.reason, std::string());
      if (excluded.reason == space::Exclusion::kConstraint)
        key.second = fmt::format("{}: {}", number++, excluded.constraint);
      const auto found = walked.exclusions.find(key);
      EXPECT_EQ(excluded.count, found == walked.exclusions.end() ? 0 : found->second)
          << space::to_string(excluded.reason) << " " << key.second;
      sum += excluded.count;
    }
    EXPECT_EQ(sum, space.lattice_count());
  });
}

TEST(Lattice, IsRestrictedPointByPoint) {
  for_random_spaces(1000, [](const space::Space& space, const Walked& walked) {
    space::Space restricted = space;
    restricted.restrict_to([](const space::Configuration& c) { return c.text().size() % 3 != 0; });
    std::int64_t kept = 0;
    for (const auto& [text, c] : walked.configurations) kept += text.size() % 3 != 0 ? 1 : 0;
    EXPECT_EQ(restricted.count(), kept);
    EXPECT_EQ(restricted.is_empty(), kept == 0);
    std::int64_t points = 0;
    for (const space::Configuration& point : lattice_of(space.parameters())) {
      space::Configuration c = point;
      points += space.complete(c) == space::Exclusion::kNone && !broken(space, c) && c.text().size() % 3 == 0 ? 1 : 0;
    }
    EXPECT_EQ(restricted.exclusions().back().count, points);
  });
}

TEST(Lattice, ContainsWhatAWalkFindsAndNothingElse) {
  for_random_spaces(1000, [](const space::Space& space, const Walked& walked) {
    for (const space::Configuration& point : lattice_of(space.parameters())) {
      space::Configuration completed = point;
      const bool none = space.complete(completed) == space::Exclusion::kNone;
      const bool member = none && walked.configurations.count(completed.text()) == 1;
      EXPECT_EQ(space.contains(completed), member) << completed.text();
      EXPECT_EQ(space.contains(point), member && point == completed) << point.text();
    }
  });
}

TEST(Lattice, IsSampledOverAllOfItAndNothingElse) {
  for_random_spaces(1000, [](const space::Space& space, const Walked& walked) {
    if (walked.configurations.empty() || walked.configurations.size() > 60) return;
    Rng rng(3, 1);
    std::map<std::string, double> drawn;
    constexpr double kEach = 40.0;
    const double cells = static_cast<double>(walked.configurations.size());
    for (int i = 0; i < static_cast<int>(kEach * cells); ++i) drawn[space.sample(rng).text()] += 1.0;
    double chi_squared = 0.0;
    for (const auto& [text, c] : walked.configurations) chi_squared += std::pow(drawn[text] - kEach, 2) / kEach;
    EXPECT_EQ(drawn.size(), walked.configurations.size());
    // The mean is n - 1, and the standard deviation sqrt(2 (n - 1)). Six of them, plus two for the skewness at few
    // degrees of freedom.
    EXPECT_LE(chi_squared, cells - 1.0 + 6.0 * std::sqrt(2.0 * cells) + 8.0);
  });
}

TEST(Lattice, HasNeighboursWithinItself) {
  for_random_spaces(1000, [](const space::Space& space, const Walked& walked) {
    for (const auto& [text, c] : walked.configurations) {
      for (const space::Configuration& neighbour : space.neighbours(c)) {
        EXPECT_EQ(walked.configurations.count(neighbour.text()), 1U) << text << " -> " << neighbour.text();
        EXPECT_FALSE(neighbour == c);
      }
    }
  });
}

}  // namespace krigtune::lattice_test
