#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace krigtune {

/// Keys keep the order in which they were written: the order of a session's parameters is the order of its columns.
using Json = nlohmann::ordered_json;

/// Parses JSON in which `//` comments and trailing commas are allowed and duplicate keys are not.
/// `source` names the text in errors. Throws UserError with line and column.
Json parse_json(std::string_view text, const std::string& source);

/// parse_json of a file.
Json load_json(const std::filesystem::path& path);

/// A number that prints as an integer when it is one ("500000000", not "500000000.0").
Json json_number(double value);

/// Reads one JSON object of the user's and remembers which keys were asked for, so that `finish` can refuse the rest.
/// Every error is a UserError that names the source, the JSON pointer and the fix. `value` must outlive it.
class JsonObject {
 public:
  /// Throws unless `value` is an object. `pointer`: "" at the root, "/space/zero_stage" below.
  JsonObject(const Json& value, std::string source, std::string pointer);

  bool has(const std::string& key) const;  ///< present and not null
  const Json& require(const std::string& key);
  const Json* find(const std::string& key);  ///< nullptr when absent or null

  double number(const std::string& key, double fallback);
  std::int64_t integer(const std::string& key, std::int64_t fallback);
  bool boolean(const std::string& key, bool fallback);
  std::string text(const std::string& key, const std::string& fallback);
  std::optional<double> optional_number(const std::string& key);
  std::optional<std::int64_t> optional_integer(const std::string& key);
  std::vector<std::string> texts(const std::string& key);  ///< absent: empty
  JsonObject object(const std::string& key);               ///< must be there

  /// Throws if the object has a key that was never asked for, with the nearest known name.
  void finish() const;

  /// An error at `key` of this object ("" = the object itself).
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
