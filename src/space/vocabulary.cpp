#include "space/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "core/text.h"
#include "space/parallel_layout.h"
#include "space/usual_names.h"
#include "space/well_known.h"

namespace krigtune::space {
namespace {

double number_or(const Configuration& configuration, const std::string& name, double fallback) {
  const Value* value = configuration.find(name);
  return value == nullptr || std::holds_alternative<std::string>(*value) ? fallback : as_number(*value);
}

}  // namespace

Vocabulary::Vocabulary(const std::vector<Parameter>& parameters, const JobFacts& facts)
    : parameters_(parameters), facts_(facts) {
  for (const auto& [name, number] : facts.numbers) constants_[name] = number;
  constants_["ranks"] = facts.ranks;
  if (facts.train_batch_size) constants_["train_batch_size"] = *facts.train_batch_size;
  if (!facts.well_known) return;
  for (const WellKnownParameter& known : well_known_parameters())
    constants_.try_emplace(known.name, known.default_value);
}

bool Vocabulary::derives_accumulation() const {
  return facts_.accumulation_follows() && find_usual(parameters_, kAccumulation) == nullptr;
}

Vocabulary::Meaning Vocabulary::meaning_of(std::string_view name) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].name == name) return {Meaning::Is::kParameter, i, false};
  }
  if (name == "dp") return {Meaning::Is::kDp, 0, false};
  if (const Parameter* other = facts_.well_known ? find_usual(parameters_, name) : nullptr) {
    return {Meaning::Is::kParameter, static_cast<std::size_t>(other - parameters_.data()), false};
  }
  if (name == kAccumulation && derives_accumulation()) return {Meaning::Is::kAccumulationSteps, 0, false};
  const auto constant = constants_.find(name);
  if (constant == constants_.end()) return {};
  return {Meaning::Is::kConstant, 0, constant->second};
}

Kind Vocabulary::kind_of(const Meaning& meaning) const {
  const auto kind_of_value = [](const Value& value) {
    if (std::holds_alternative<std::string>(value)) return Kind::kText;
    return std::holds_alternative<bool>(value) ? Kind::kCondition : Kind::kNumber;
  };
  switch (meaning.is) {
    case Meaning::Is::kParameter: {
      const Parameter& parameter = parameters_[meaning.parameter];
      return parameter.values.empty() ? Kind::kNumber : kind_of_value(parameter.values.front());
    }
    case Meaning::Is::kConstant:
      return kind_of_value(meaning.constant);
    default:
      return Kind::kNumber;
  }
}

const Value* Vocabulary::default_of(std::string_view name) const {
  const WellKnownParameter* known = find_well_known(name);
  return known != nullptr ? &known->default_value : nullptr;
}

std::vector<std::string> Vocabulary::names() const {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters_) names.push_back(parameter.name);
  names.emplace_back("dp");
  for (const auto& [name, value] : constants_) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

void Vocabulary::fail_unknown(const Expression::Node& name) const {
  fail_at(name.at, fmt::format("unknown name '{}'", name.text), suggestion(name.text, names()));
}

std::string Vocabulary::name_of(const char* known) const {
  const Parameter* parameter = facts_.well_known ? find_usual(parameters_, known) : nullptr;
  return parameter != nullptr ? parameter->name : known;
}

// The identities of space/well_known.h and space/parallel_layout.h in real numbers, because a condition may involve
// ranks that do not divide.
double Vocabulary::dp(const Configuration& configuration) const {
  double ways = 1.0;
  for (const char* divisor : rank_divisors()) ways *= number_or(configuration, name_of(divisor), 1.0);
  return arithmetic(Operator::kDivide, static_cast<double>(facts_.ranks), ways);
}

const Value* Vocabulary::look_up(std::string_view name, const Configuration& configuration, bool defaults,
                                 Value& scratch) const {
  if (const Value* value = configuration.find(std::string(name))) return value;
  const Meaning meaning = meaning_of(name);
  switch (meaning.is) {
    case Meaning::Is::kNothing:
      return nullptr;
    case Meaning::Is::kParameter:
      if (const Value* value = configuration.find(parameters_[meaning.parameter].name)) return value;
      return defaults ? default_of(name) : nullptr;
    case Meaning::Is::kConstant:
      scratch = meaning.constant;
      return &scratch;
    case Meaning::Is::kDp:
      scratch = dp(configuration);
      return &scratch;
    case Meaning::Is::kAccumulationSteps:
      break;
  }
  const double micro_batches = arithmetic(Operator::kDivide, static_cast<double>(*facts_.train_batch_size),
                                          number_or(configuration, name_of(kMicroBatch), 1.0));
  scratch = arithmetic(Operator::kDivide, micro_batches, dp(configuration));
  return &scratch;
}

std::optional<bool> Vocabulary::holds(const Expression& condition, const Configuration& configuration,
                                      bool defaults) const {
  // A place for the value of each name: two of them may be compared.
  std::vector<std::pair<std::string, Value>> scratch;
  for (const std::string& name : condition.names()) scratch.emplace_back(name, false);
  return condition.holds([&](std::string_view name) {
    const auto place = std::find_if(scratch.begin(), scratch.end(), [&](const auto& s) { return s.first == name; });
    return look_up(name, configuration, defaults, place->second);
  });
}

// Two configurations that differ only in a knob without effect must not both be measured. Each knob's row in
// well_known.cpp says when it has no effect.
namespace {

using Conditions = std::map<std::string_view, Expression>;

const Conditions& conditions_by_name() {
  static const Conditions kConditions = [] {
    Conditions conditions;
    for (const WellKnownParameter& known : well_known_parameters()) {
      if (*known.no_effect_if != '\0') conditions.emplace(known.name, Expression::parse(known.no_effect_if));
    }
    return conditions;
  }();
  return kConditions;
}

// DeepSpeed has more stage-3 knobs than the table has rows; all their names have the same prefix.
const Expression* condition_of_family(std::string_view knob) {
  static const Expression kBelowStage3 = Expression::parse("zero_stage < 3");
  return knob.rfind("stage3_", 0) == 0 ? &kBelowStage3 : nullptr;
}

// Never returns a smaller bucket than `value`.
Value held_value(const Parameter& bucket, double elems, const Value& value) {
  if (bucket.range) return bucket.range->max < elems ? value : number_value(std::max(elems, bucket.range->min));
  const int smallest = smallest_that_fits(bucket, elems);
  return smallest < 0 ? value : bucket.values[static_cast<std::size_t>(smallest)];
}

}  // namespace

const Expression* condition_of_no_effect(const std::string& knob) {
  const auto found = conditions_by_name().find(knob);
  return found == conditions_by_name().end() ? condition_of_family(knob) : &found->second;
}

bool is_bucket(const std::string& knob) {
  const WellKnownParameter* known = find_well_known(knob);
  return known != nullptr && known->is_bucket;
}

int smallest_that_fits(const Parameter& bucket, double elems) {
  int smallest = -1;
  for (std::size_t i = 0; i < bucket.values.size(); ++i) {
    if (!is_number(bucket.values[i]) || as_number(bucket.values[i]) < elems) continue;
    const bool smaller =
        smallest < 0 || as_number(bucket.values[i]) < as_number(bucket.values[static_cast<std::size_t>(smallest)]);
    if (smaller) smallest = static_cast<int>(i);
  }
  return smallest;
}

Value first_value(const Parameter& parameter) {
  return parameter.range ? number_value(parameter.range->min) : parameter.values.front();
}

Value canonical_value(const Parameter& knob, const Value& value, bool no_effect,
                      const std::optional<std::int64_t>& parameter_count) {
  if (no_effect) return first_value(knob);
  if (!parameter_count || !is_bucket(knob.name) || !is_number(value)) return value;
  const auto all = static_cast<double>(*parameter_count);
  return as_number(value) < all ? value : held_value(knob, all, value);
}

}  // namespace krigtune::space
