#include "forecast/roles.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "space/configuration.h"
#include "space/parameter.h"
#include "space/well_known.h"

namespace krigtune::forecast {
namespace {

constexpr std::size_t kMostGuesses = 64;
constexpr std::size_t kFewestRoles = 2;      // parameters with a role: one alone may be anything
constexpr std::size_t kMostParameters = 10;  // that have roles: more are a program of another kind
constexpr const char* kNothing = "";

struct Role {
  const char* name;
  double weight;  ///< relative to the other roles of the parameter
};

std::optional<std::vector<std::int64_t>> integers_of(const space::Parameter& parameter) {
  std::vector<std::int64_t> integers;
  for (const space::Value& value : parameter.values) {
    const auto* integer = std::get_if<std::int64_t>(&value);
    if (integer == nullptr) return std::nullopt;
    integers.push_back(*integer);
  }
  return integers;
}

bool is_power_of_two(std::int64_t number) { return number > 0 && (number & (number - 1)) == 0; }

std::vector<Role> roles_of_integers(const std::vector<std::int64_t>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (*least == 0 && *most <= 3) return {{space::kZeroStage, 1.0}, {kNothing, 0.3}};
  if (*least < 1 || !std::all_of(values.begin(), values.end(), is_power_of_two)) return {};
  std::vector<Role> roles;
  if (*least <= 2 && *most <= 16) roles.push_back({space::kTensorParallel, 1.0});
  if (*least <= 2 && *most <= 64) roles.push_back({space::kPipelineParallel, 0.8});
  if (*least <= 16 && *most <= 1024) roles.push_back({space::kMicroBatch, 1.0});
  if (*least <= 16 && *most <= 4096) roles.push_back({space::kAccumulation, 0.3});
  if (!roles.empty()) roles.push_back({kNothing, 0.3});
  return roles;
}

// Words that only one parameter has.
std::vector<Role> roles_of_words(const std::set<std::string>& words) {
  const auto are_among = [&](std::initializer_list<const char*> known) {
    return std::all_of(words.begin(), words.end(), [&](const std::string& word) {
      return std::find(known.begin(), known.end(), word) != known.end();
    });
  };
  if (are_among({"none", "selective", "full"})) return {{space::kCheckpointing, 1.0}};
  if (are_among({"none", "cpu"})) return {{space::kOffloadOptimizer, 1.0}, {kNothing, 0.3}};
  return {};
}

// Empty: nothing that a training step has.
std::vector<Role> roles_of(const space::Parameter& parameter) {
  if (parameter.continuous() || parameter.values.size() < 2) return {};
  if (const auto integers = integers_of(parameter)) return roles_of_integers(*integers);
  std::set<std::string> words;
  bool are_flags = true;
  for (const space::Value& value : parameter.values) {
    words.insert(space::to_string(value));
    are_flags = are_flags && std::holds_alternative<bool>(value);
  }
  if (are_flags) return {{space::kSequenceParallel, 0.4}, {space::kCheckpointing, 0.4}, {kNothing, 1.0}};
  return roles_of_words(words);
}

// All ways to give each parameter one of its roles, with no role twice.
class Assignments {
 public:
  void add(std::string name, std::vector<Role> roles) { parameters_.push_back({std::move(name), std::move(roles)}); }

  std::vector<RoleGuess> all() {
    if (parameters_.size() > kMostParameters) return {};
    assign(0, 1.0);
    return std::move(guesses_);
  }

 private:
  struct Unknown {
    std::string name;
    std::vector<Role> roles;
  };

  void assign(std::size_t index, double weight) {
    if (index == parameters_.size()) {
      if (taken_.size() >= kFewestRoles) guesses_.push_back({chosen_, weight});
      return;
    }
    const Unknown& parameter = parameters_[index];
    double sum = 0.0;
    for (const Role& role : parameter.roles) sum += role.weight;
    for (const Role& role : parameter.roles) {
      const std::string name = role.name;
      if (!name.empty() && !taken_.insert(name).second) continue;
      if (!name.empty()) chosen_.emplace(parameter.name, name);
      assign(index + 1, weight * role.weight / sum);
      if (name.empty()) continue;
      chosen_.erase(parameter.name);
      taken_.erase(name);
    }
  }

  std::vector<Unknown> parameters_;
  Roles chosen_;
  std::set<std::string> taken_;
  std::vector<RoleGuess> guesses_;
};

}  // namespace

std::vector<RoleGuess> possible_roles(const space::Space& space) {
  Assignments assignments;
  for (const space::Parameter& parameter : space.parameters()) {
    std::vector<Role> roles = roles_of(parameter);
    if (!roles.empty()) assignments.add(parameter.name, std::move(roles));
  }
  std::vector<RoleGuess> guesses = assignments.all();
  std::stable_sort(guesses.begin(), guesses.end(),
                   [](const RoleGuess& a, const RoleGuess& b) { return a.probability > b.probability; });
  if (guesses.size() > kMostGuesses) guesses.resize(kMostGuesses);
  double sum = 0.0;
  for (const RoleGuess& guess : guesses) sum += guess.probability;
  for (RoleGuess& guess : guesses) guess.probability /= sum;
  return guesses;
}

}  // namespace krigtune::forecast
