#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace krigtune::space {

/// The value of one parameter.
using Value = std::variant<bool, std::int64_t, double, std::string>;

/// Formats a value for people and CSV: true/false, integers without exponent, doubles in the shortest form that reads
/// back unchanged, text unchanged.
std::string to_string(const Value& value);
bool is_number(const Value& value);    ///< an integer or a double
double as_number(const Value& value);  ///< booleans are 0 and 1; asserts that it is no text
/// Returns whether two values are equal as a user means it: 4 and 4.0 are the same.
bool same_value(const Value& a, const Value& b);
nlohmann::ordered_json to_json(const Value& value);
/// Reads a scalar; whole doubles become integers. Throws UserError naming `where`.
Value value_from_json(const nlohmann::ordered_json& json, const std::string& where);
/// Returns 4.0 as the integer 4, so that a value has the same form in the journal, in tables and in directory names.
Value number_value(double number);
/// Returns the value if it is an integer or a whole double, otherwise nothing.
std::optional<std::int64_t> integer_of(const Value& value);
/// Reads a value from a CSV field or the command line: true/false, a number, otherwise text.
Value value_from_text(const std::string& text);

/// One point of a space: parameter names and values, in the order in which they were set.
class Configuration {
 public:
  using Entry = std::pair<std::string, Value>;

  Configuration() = default;
  Configuration(std::initializer_list<Entry> entries) : entries_(entries) {}

  const Value* find(const std::string& name) const;  ///< nullptr if absent
  bool has(const std::string& name) const { return find(name) != nullptr; }
  void set(const std::string& name, Value value);  ///< replaces in place, or appends
  void erase(const std::string& name);             ///< does nothing if the name is absent
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

  /// Returns the value as an integer, or the fallback if it is absent. Throws UserError if the value has another kind.
  std::int64_t integer(const std::string& name, std::int64_t fallback) const;
  bool boolean(const std::string& name, bool fallback) const;

  /// Returns, for example, "zero_stage=3 micro_batch=4". Configurations with equal values in the same order have equal
  /// texts.
  std::string text() const;

  /// Equal names with equal values; the order of the names does not matter.
  friend bool operator==(const Configuration& a, const Configuration& b);

 private:
  std::vector<Entry> entries_;
};

nlohmann::ordered_json to_json(const Configuration& configuration);
/// Reads an object of scalars. Throws UserError naming `source` and the JSON pointer.
Configuration configuration_from_json(const nlohmann::ordered_json& json, const std::string& source,
                                      const std::string& pointer);

}  // namespace krigtune::space
