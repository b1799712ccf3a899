#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace krigtune {

/// JSON whose keys keep the order in which they were written: the order of a session's parameters is that of its
/// columns.
using Json = nlohmann::ordered_json;

/// Parses JSON. `//` comments and trailing commas are allowed, duplicate keys are not. `source` names the text in
/// errors. Throws UserError with line and column.
Json parse_json(std::string_view text, const std::string& source);

/// Calls parse_json on the contents of a file.
Json load_json(const std::filesystem::path& path);

/// Returns a number that prints as an integer if it is one ("500000000", not "500000000.0").
Json json_number(double value);

/// Reads one JSON object that a user wrote. It remembers which keys the caller looked up, so that `finish` can refuse
/// all others. Every error is a UserError with the source, the JSON pointer and the fix. `value` must outlive the
/// reader.
class JsonObject {
 public:
  /// Throws unless `value` is an object. `pointer`: "" at the root, "/space/zero_stage" below.
  JsonObject(const Json& value, std::string source, std::string pointer);

  bool has(const std::string& key) const;  ///< present and not null
  const Json& require(const std::string& key);
  const Json* find(const std::string& key);  ///< nullptr if absent or null

  double number(const std::string& key, double fallback);
  std::int64_t integer(const std::string& key, std::int64_t fallback);
  bool boolean(const std::string& key, bool fallback);
  std::string text(const std::string& key, const std::string& fallback);
  std::optional<double> optional_number(const std::string& key);
  std::optional<std::int64_t> optional_integer(const std::string& key);
  std::vector<std::string> texts(const std::string& key);  ///< empty if absent
  JsonObject object(const std::string& key);               ///< throws if absent

  /// Throws if the object has a key that was never looked up, and names the nearest known key.
  void finish() const;

  /// Throws an error at `key` of this object ("" means the object itself).
  [[noreturn]] void fail(const std::string& key, const std::string& what, const std::string& hint) const;

  const Json& value() const { return value_; }
  const std::string& source() const { return source_; }
  std::string pointer(const std::string& key = "") const;

 private:
  const Json& value_;
  std::string source_;
  std::string pointer_;
  std::vector<std::string> known_;
};

}  // namespace krigtune
