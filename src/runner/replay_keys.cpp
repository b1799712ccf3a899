#include "replay_keys.h"

#include <fmt/format.h>

#include <cstdlib>

#include "krigtune/core/text.h"

namespace krigtune {
namespace {

constexpr char kSeparator = '\x1f';  // ASCII's unit separator

std::string spelling(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? number_text(as_number(value)) : *text;
}

// A field as other programs write it: Python's True and False are booleans too.
Value value_of_field(const std::string& field) {
  const bool boolean = field.size() >= 4 && field.size() <= 5 && (field[0] == 'T' || field[0] == 'F');
  const std::string word = boolean ? lower_case(field) : field;
  return value_from_text(word == "true" || word == "false" ? word : field);
}

std::string key_part(const Value& value, bool other_units) {
  return (other_units && is_number(value) ? number_text(rounded(as_number(value))) : spelling(value)) + kSeparator;
}

}  // namespace

// Not stod, which throws where a number is subnormal.
double rounded(double number) { return std::strtod(fmt::format("{:.12g}", number).c_str(), nullptr); }

std::string spelling_of_field(const std::string& field) { return spelling(value_of_field(field)); }

ReplayKeys::ReplayKeys(const ReplaySpec& spec, const std::vector<std::string>& parameters) {
  for (const std::string& parameter : parameters) {
    parts_.push_back({parameter, 1.0});
    for (const auto& [name, column] : spec.columns) {
      if (name == parameter) parts_.back().times = column.times;
    }
  }
}

std::string ReplayKeys::of(const Configuration& configuration) const {
  std::string key;
  for (const Part& part : parts_) {
    const Value* value = configuration.find(part.parameter);
    key += value == nullptr ? std::string(1, kSeparator) : key_part(*value, part.times != 1.0);
  }
  return key;
}

std::string ReplayKeys::of(std::vector<std::string>& fields) const {
  std::string key;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Value value = value_of_field(fields[i]);
    const bool other_units = parts_[i].times != 1.0;
    if (other_units && is_number(value)) value = rounded(as_number(value) * parts_[i].times);
    fields[i] = to_string(value);
    key += key_part(value, other_units);
  }
  return key;
}

}  // namespace krigtune
