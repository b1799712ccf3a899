#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "krigtune/rng.h"
#include "space/spaces.h"

namespace krigtune {

/// Writes conditions over parameters of all kinds, like a person who tries everything.
class RandomConditions {
 public:
  RandomConditions(Rng& rng, const std::vector<space::Parameter>& parameters) : rng_(rng) {
    for (const space::Parameter& parameter : parameters) {
      const space::Value& value = parameter.continuous() ? space::Value(0.5) : parameter.values.front();
      (parameter.categorical                 ? texts_
       : std::holds_alternative<bool>(value) ? flags_
                                             : numbers_)
          .push_back(parameter.name);
    }
    for (const char* fact : {"dp", "ranks", "hidden"}) numbers_.emplace_back(fact);
  }

  std::string condition(int depth) {
    switch (rng_.below(depth > 0 ? 8 : 4)) {
      case 0:
        if (!texts_.empty())
          return fmt::format("{} {} '{}'", any(texts_), any({"==", "!="}), any({"cpu", "none", "x"}));
        [[fallthrough]];
      case 1:
        if (!flags_.empty()) return any(flags_);
        [[fallthrough]];
      case 2:
      case 3:
        return fmt::format("{} {} {}", number(depth), any({"==", "!=", "<", "<=", ">", ">="}), number(depth));
      case 4:
        return fmt::format("!({})", condition(depth - 1));
      case 5:
      case 6:
        return fmt::format("({} && {})", condition(depth - 1), condition(depth - 1));
      default:
        return fmt::format("({} || {})", condition(depth - 1), condition(depth - 1));
    }
  }

 private:
  std::string number(int depth) {
    switch (rng_.below(depth > 0 ? 8 : 3)) {
      case 0:
        return any({"0", "1", "2", "3", "4.5", "16"});
      case 1:
      case 2:
        return any(numbers_);
      case 3:
        return fmt::format("{}({}, {}, {})", any({"min", "max"}), number(depth - 1), number(depth - 1), number(0));
      case 4:
        return fmt::format("-{}", number(0));
      default:
        return fmt::format("({} {} {})", number(depth - 1), any({"+", "+", "-", "*", "/", "%"}), number(depth - 1));
    }
  }
  std::string any(const std::vector<std::string>& of) { return of[rng_.below(of.size())]; }

  Rng& rng_;
  std::vector<std::string> numbers_;
  std::vector<std::string> flags_;
  std::vector<std::string> texts_;
};

inline std::vector<space::Value> random_values(Rng& rng, const std::string& name) {
  const auto pick = [&](std::vector<space::Value> values) {
    rng.shuffle(values);
    values.resize(1 + rng.below(values.size()));
    return values;
  };
  const auto i = [](std::int64_t value) { return space::Value(value); };
  if (name == "zero_stage") return pick({i(0), i(1), i(2), i(3)});
  if (name == "overlap_comm" || name == "flag") return pick({true, false});
  if (name == "where") return pick({"cpu", "none", "nvme"});
  if (name == "real") return pick({0.1, 0.2, 0.30000000000000004, 1.5});
  if (name == "reduce_bucket_size" || name == "allgather_bucket_size") return pick({i(10), i(200), i(30), i(100)});
  return pick({i(1), i(2), i(3), i(4), i(8)});
}

/// A small space of parameters of all kinds in any order, with conditions and constraints. Empty if they happen to be
/// circular.
inline std::optional<space::Space> random_space(Rng& rng) {
  std::vector<std::string> names = {"zero_stage",
                                    "micro_batch",
                                    "tensor_parallel",
                                    "pipeline_parallel",
                                    "overlap_comm",
                                    "reduce_bucket_size",
                                    "allgather_bucket_size",
                                    "stage3_made_up",
                                    "gradient_accumulation_steps",
                                    "flag",
                                    "where",
                                    "real",
                                    "a",
                                    "b",
                                    "c"};
  rng.shuffle(names);
  names.resize(2 + rng.below(5));
  std::vector<space::Parameter> parameters;
  for (const std::string& name : names) {
    parameters.push_back({name, random_values(rng, name)});
    parameters.back().categorical = name == "where";
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (rng.below(3) != 0 || names[i] == "gradient_accumulation_steps") continue;
    std::vector<space::Parameter> others = parameters;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    parameters[i].when = space::Expression::parse(RandomConditions(rng, others).condition(1));
  }
  space::JobFacts facts{.ranks = std::int64_t{1} << rng.below(4), .numbers = {{"hidden", 5.0}}};
  if (rng.below(2) == 0) facts.train_batch_size = 16 * static_cast<std::int64_t>(1 + rng.below(3));
  if (rng.below(2) == 0) facts.parameter_count = 50;
  facts.well_known = rng.below(5) != 0;
  std::vector<space::Expression> constraints;
  for (std::uint64_t i = rng.below(3); i > 0; --i) {
    constraints.push_back(space::Expression::parse(RandomConditions(rng, parameters).condition(2)));
  }
  try {
    return space::Space(parameters, facts, constraints);
  } catch (const UserError& error) {
    if (std::string(error.what()).find("circle") == std::string::npos) throw;
    return std::nullopt;
  }
}

}  // namespace krigtune
