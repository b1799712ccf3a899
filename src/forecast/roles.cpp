// What do parameters mean whose names say nothing? Their values make some meanings possible (roles_of). The space says
// more: only some combinations are configurations of it, be it because a table has only these or because a condition
// excludes the others. In a training step the ranks must be divisible by the product of all parallelism, and the batch
// by what all replicas compute at once. With V the share of all combinations that are possible if the parameters have
// the meanings m, and n combinations in the space, all of them possible,
//
//   p(space | m) = V^-n       (each combination is drawn from the possible ones: the size principle of Tenenbaum 1999)
//
// so the meanings that explain most of what is missing are the most probable. Tables miss combinations for other
// reasons too, and these miss many at once: n counts as 20 at most.
#include "forecast/roles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <numeric>
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
constexpr std::size_t kFewestRoles = 2;        // parameters with a role: one alone may be anything
constexpr std::size_t kMostParameters = 10;    // that have roles: more are a program of another kind
constexpr std::size_t kMostWithRareRoles = 7;  // with more there would be too many guesses
constexpr double kRare = 0.1;                  // weight of a role
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

bool has_small_factors(std::int64_t number) {
  while (number % 2 == 0) number /= 2;
  while (number % 3 == 0) number /= 3;
  return number == 1;
}

// A list with 3 or 12 may be anything, but not if that explains which combinations are missing.
constexpr double kIfNoPowersOfTwo = 0.1;

std::vector<Role> roles_of_integers(const std::vector<std::int64_t>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (*least == 0 && *most <= 3) return {{space::kZeroStage, 1.0}, {kNothing, 0.3}};
  if (*least < 1 || !std::all_of(values.begin(), values.end(), has_small_factors)) return {};
  const bool doubles = std::all_of(values.begin(), values.end(), is_power_of_two);
  const double trust = doubles ? 1.0 : kIfNoPowersOfTwo;
  std::vector<Role> roles;
  const auto add = [&](const char* name, double weight) { roles.push_back({name, trust * weight}); };
  if (*least <= 2 && *most <= 64) add(space::kTensorParallel, *most <= 16 ? 1.0 : 0.2);
  if (*least <= 16 && *most <= 256) add(space::kPipelineParallel, *least > 2 ? 0.1 : *most <= 64 ? 0.8 : 0.2);
  if (*least == 1 && *most <= 16) add(space::kVirtualPipeline, 0.1);
  if (*least == 1 && *most <= 16) add(space::kContextParallel, 0.1);
  if (*least <= 16 && *most <= 1024) add(space::kMicroBatch, 1.0);
  if (*least <= 16 && *most <= 4096) add(space::kAccumulation, 0.3);
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

// Of a parameter that has this value everywhere.
std::vector<Role> roles_of_one_word(const space::Value& value) {
  const std::string word = space::to_string(value);
  if (word == "selective" || word == "full") return {{space::kCheckpointing, 1.0}, {kNothing, 0.3}};
  return {};
}

// Empty: nothing that a training step has.
std::vector<Role> roles_of(const space::Parameter& parameter) {
  if (parameter.continuous() || parameter.values.empty()) return {};
  if (parameter.values.size() == 1) return roles_of_one_word(parameter.values.front());
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
    if (parameters_.size() > kMostWithRareRoles) leave_out_rare_roles();
    assign(0, 1.0);
    return std::move(guesses_);
  }

 private:
  struct Unknown {
    std::string name;
    std::vector<Role> roles;
  };

  void leave_out_rare_roles() {
    for (Unknown& parameter : parameters_) {
      std::vector<Role>& roles = parameter.roles;
      roles.erase(std::remove_if(roles.begin(), roles.end(), [](const Role& role) { return role.weight <= kRare; }),
                  roles.end());
    }
  }

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

// The roles that split the ranks and the batch.
enum : std::size_t { kTensor, kPipeline, kContext, kVirtual, kMicro, kMicroSteps };
constexpr std::array<const char*, 6> kSplits{space::kTensorParallel,  space::kPipelineParallel, space::kContextParallel,
                                             space::kVirtualPipeline, space::kMicroBatch,       space::kAccumulation};
/// The column of the listed numbers that has each of these roles.
using Columns = std::array<std::optional<std::size_t>, kSplits.size()>;

Columns columns_of(const ListedNumbers& listed, const Roles& roles) {
  Columns columns;
  for (std::size_t i = 0; i < listed.names.size(); ++i) {
    const auto role = roles.find(listed.names[i]);
    if (role == roles.end()) continue;
    for (std::size_t k = 0; k < kSplits.size(); ++k) {
      if (role->second == kSplits[k]) columns[k] = i;
    }
  }
  return columns;
}

// How whole numbers split the ranks and the batch, if they mean what a guess says.
class Meaning {
 public:
  Meaning(const ListedNumbers& listed, const Columns& columns) : listed_(listed), column_(columns) {
    for (const std::vector<std::int64_t>& row : listed.rows) ranks_ = multiple(ranks_, of(row, kReplica));
    for (const std::vector<std::int64_t>& row : listed.rows) {
      if (ranks_ > 0) batch_ = multiple(batch_, at_once(row));
    }
  }

  /// Returns whether all combinations in the space are possible.
  bool fits() const {
    return ranks_ == 0 || std::all_of(listed_.rows.begin(), listed_.rows.end(),
                                      [&](const std::vector<std::int64_t>& row) { return is_possible(row); });
  }

  /// Returns the share of all combinations that are possible; 1 if that is not known.
  double share_of_possible() const {
    constexpr std::size_t kMostCombinations = 5'000;
    if (ranks_ == 0) return 1.0;
    std::size_t count = 1;
    for (const auto& column : column_) count *= column ? listed_.values[*column].size() : 1;
    if (count > kMostCombinations) return 1.0;
    std::vector<std::int64_t> combination(listed_.names.size(), 1);
    return static_cast<double>(count_possible(0, combination)) / static_cast<double>(count);
  }

 private:
  static constexpr std::initializer_list<std::size_t> kReplica{kTensor, kPipeline, kContext};
  static constexpr std::initializer_list<std::size_t> kBatch{kMicro, kMicroSteps};

  std::int64_t of(const std::vector<std::int64_t>& row, std::initializer_list<std::size_t> roles) const {
    std::int64_t product = 1;
    for (const std::size_t role : roles) product *= column_[role] ? row[*column_[role]] : 1;
    return product;
  }

  // What all replicas compute at once, or in a step if the micro-steps are known too.
  std::int64_t at_once(const std::vector<std::int64_t>& row) const {
    return ranks_ / of(row, kReplica) * of(row, kBatch);
  }

  // 0: no number that a job has.
  static std::int64_t multiple(std::int64_t of, std::int64_t number) {
    constexpr std::int64_t kMost = 1'000'000;
    const std::int64_t common = std::lcm(of, number);
    return common > kMost ? 0 : common;
  }

  bool is_possible(const std::vector<std::int64_t>& row) const {
    if (ranks_ % of(row, kReplica) != 0) return false;
    if (of(row, {kVirtual}) > 1 && of(row, {kPipeline}) == 1) return false;
    return batch_ == 0 || batch_ % at_once(row) == 0;
  }

  std::size_t count_possible(std::size_t role, std::vector<std::int64_t>& combination) const {
    if (role == column_.size()) return is_possible(combination) ? 1 : 0;
    if (!column_[role]) return count_possible(role + 1, combination);
    std::size_t count = 0;
    for (const std::int64_t value : listed_.values[*column_[role]]) {
      combination[*column_[role]] = value;
      count += count_possible(role + 1, combination);
    }
    return count;
  }

  const ListedNumbers& listed_;
  Columns column_;
  std::int64_t ranks_ = 1;
  std::int64_t batch_ = 1;
};

/// p(space | meaning). Guesses that differ only in the meaning of other parameters (a ZeRO stage, a flag) share it.
class Evidence {
 public:
  explicit Evidence(const ListedNumbers& listed) : listed_(listed) {}

  double of(const Roles& roles) {
    const Columns columns = columns_of(listed_, roles);
    const auto known = known_.find(columns);
    return known != known_.end() ? known->second : known_.emplace(columns, computed(columns)).first->second;
  }

 private:
  double computed(const Columns& columns) const {
    constexpr std::size_t kMostThatCount = 20;
    const auto count = static_cast<double>(std::min(listed_.rows.size(), kMostThatCount));
    if (count == 0.0) return 1.0;
    const Meaning meaning(listed_, columns);
    return meaning.fits() ? std::pow(meaning.share_of_possible(), -count) : 0.0;
  }

  const ListedNumbers& listed_;
  std::map<Columns, double> known_;
};

}  // namespace

ListedNumbers listed_numbers(const space::Space& space) {
  constexpr std::int64_t kMostWalked = 100'000;
  constexpr std::size_t kMostRows = 1'000;
  ListedNumbers listed;
  for (const space::Parameter& parameter : space.parameters()) {
    if (parameter.continuous() || parameter.values.size() < 2) continue;
    const auto integers = integers_of(parameter);
    if (!integers || *std::min_element(integers->begin(), integers->end()) < 1) continue;
    listed.names.push_back(parameter.name);
    listed.values.push_back(*integers);
  }
  if (listed.names.empty() || !space.listable() || space.lattice_count() > kMostWalked) return listed;
  std::set<std::vector<std::int64_t>> rows;
  space.for_each([&](const space::Configuration& configuration) {
    std::vector<std::int64_t> row;
    for (const std::string& name : listed.names) row.push_back(configuration.integer(name, 1));
    rows.insert(std::move(row));
    return rows.size() <= kMostRows;
  });
  if (rows.size() <= kMostRows) listed.rows.assign(rows.begin(), rows.end());
  return listed;
}

std::vector<RoleGuess> possible_roles(const space::Space& space, const ListedNumbers& listed) {
  constexpr double kNegligible = 1e-3;  // of the most probable guess
  Assignments assignments;
  for (const space::Parameter& parameter : space.parameters()) {
    std::vector<Role> roles = roles_of(parameter);
    if (!roles.empty()) assignments.add(parameter.name, std::move(roles));
  }
  std::vector<RoleGuess> guesses = assignments.all();
  Evidence evidence(listed);
  for (RoleGuess& guess : guesses) guess.probability *= evidence.of(guess.roles);
  std::stable_sort(guesses.begin(), guesses.end(),
                   [](const RoleGuess& a, const RoleGuess& b) { return a.probability > b.probability; });
  if (guesses.size() > kMostGuesses) guesses.resize(kMostGuesses);
  const double least = guesses.empty() ? 0.0 : kNegligible * guesses.front().probability;
  while (!guesses.empty() && !(guesses.back().probability > least)) guesses.pop_back();
  double sum = 0.0;
  for (const RoleGuess& guess : guesses) sum += guess.probability;
  for (RoleGuess& guess : guesses) guess.probability /= sum;
  return guesses;
}

}  // namespace krigtune::forecast
