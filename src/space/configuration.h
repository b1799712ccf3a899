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

/// For people and CSV: true/false, integers without exponent, shortest round-trip doubles, text as it is.
std::string to_string(const Value& value);
bool is_number(const Value& value);    ///< an integer or a real
double as_number(const Value& value);  ///< booleans are 0 and 1; text is a bug (assert)
/// Equal as a user means it: 4 and 4.0 are the same value.
bool same_value(const Value& a, const Value& b);
nlohmann::ordered_json to_json(const Value& value);
/// Scalars only; whole doubles become integers. Throws UserError naming `where`.
Value value_from_json(const nlohmann::ordered_json& json, const std::string& where);
/// 4.0 becomes the integer 4, so that one value has one form in the journal, in tables and in names of directories.
Value number_value(double number);
/// Empty for what is no integer, nor a double that is one.
std::optional<std::int64_t> integer_of(const Value& value);
/// The value that a CSV field or a command line means: true/false, a number, else text.
Value value_from_text(const std::string& text);

/// One point of a space: parameter names and values, in the order in which they were set.
class Configuration {
 public:
  using Entry = std::pair<std::string, Value>;

  Configuration() = default;
  Configuration(std::initializer_list<Entry> entries) : entries_(entries) {}

  const Value* find(const std::string& name) const;  ///< nullptr when absent
  bool has(const std::string& name) const { return find(name) != nullptr; }
  void set(const std::string& name, Value value);  ///< replaces in place, or appends
  void erase(const std::string& name);             ///< nothing happens where it is absent
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

  /// The value as an integer, or the fallback when absent. A value of another kind is a UserError.
  std::int64_t integer(const std::string& name, std::int64_t fallback) const;
  bool boolean(const std::string& name, bool fallback) const;

  /// "zero_stage=3 micro_batch=4": equal for configurations that mean the same in the same order of names.
  std::string text() const;

  /// Same names with same values; the order of names does not matter.
  friend bool operator==(const Configuration& a, const Configuration& b);

 private:
  std::vector<Entry> entries_;
};

nlohmann::ordered_json to_json(const Configuration& configuration);
/// An object of scalars. Throws UserError naming `source` and the JSON pointer.
Configuration configuration_from_json(const nlohmann::ordered_json& json, const std::string& source,
                                      const std::string& pointer);

}  // namespace krigtune::space
